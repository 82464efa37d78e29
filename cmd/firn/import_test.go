package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store/storetest/servers"
)

const importPassword = "geheim"

// foreignDatabase creates a database, fills it with statements, and returns its URL, with a
// password.
func foreignDatabase(t *testing.T, at *servers.Server, name string, statements ...string) string {
	t.Helper()
	for i, statement := range append([]string{
		"CREATE DATABASE " + name,
		"GRANT SELECT ON " + name + ".* TO reader@'%' IDENTIFIED BY '" + importPassword + "'",
	}, statements...) {
		database := name
		if i == 0 {
			database = "mysql"
		}
		change(t, at, database, statement)
	}
	return "mysql://reader:" + importPassword + "@" + at.Addr() + "/" + name
}

// The tables as the projects create and fill them.
const (
	leafAlloc = `CREATE TABLE leaf_alloc (
		biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT NULL DEFAULT '1', step int(11) NOT NULL,
		description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
		PRIMARY KEY (biz_tag)) ENGINE=InnoDB`
	leafSeed   = `INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('leaf-segment-test', 1, 2000, 'Test leaf Segment Mode Get Id')`
	tinyIDInfo = `CREATE TABLE tiny_id_info (
		id bigint(20) unsigned NOT NULL AUTO_INCREMENT, biz_type varchar(63) NOT NULL DEFAULT '', begin_id bigint(20) NOT NULL DEFAULT '0',
		max_id bigint(20) NOT NULL DEFAULT '0', step int(11) DEFAULT '0', delta int(11) NOT NULL DEFAULT '1', remainder int(11) NOT NULL DEFAULT '0',
		create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
		version bigint(20) NOT NULL DEFAULT '0', PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type)) ENGINE=InnoDB`
	tinyIDToken = `CREATE TABLE tiny_id_token (
		id int(11) unsigned NOT NULL AUTO_INCREMENT, token varchar(255) NOT NULL DEFAULT '', biz_type varchar(63) NOT NULL DEFAULT '',
		remark varchar(255) NOT NULL DEFAULT '', create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
		update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', PRIMARY KEY (id)) ENGINE=InnoDB`
	tinyIDSeeds = `INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, create_time, update_time, version) VALUES
		('test', 1, 1, 100000, 1, 0, now(), now(), 1), ('test_odd', 1, 1, 100000, 2, 1, now(), now(), 3)`
	tinyIDTokens = `INSERT INTO tiny_id_token (token, biz_type, remark) VALUES ('0f673adf80504e2eaa552f5d791b644c', 'test', '1'),
		('0f673adf80504e2eaa552f5d791b644c', 'test_odd', '1'), ('other', 'gone', '1')`
	tokenSHA256 = "dd597b28f6abfa0cca033892db3cd19b61c4f75dc044a2bbdba909defd9f875d"
)

// imported is the JSON that firn import prints.
type imported struct {
	DryRun bool `json:"dry_run"`
	Names  []struct{ Name, Was, Now, Outcome string }
	YAML   string `json:"configuration"`
}

// TestImportTakesOverCounters runs complete imports from a real database.
func TestImportTakesOverCounters(t *testing.T) {
	t.Parallel()
	database := servers.MariaDB(t)
	leafURL := foreignDatabase(t, database, "leaf", leafAlloc, leafSeed)
	tinyURL := foreignDatabase(t, database, "tiny", tinyIDInfo, tinyIDToken, tinyIDSeeds, tinyIDTokens)
	sql := func(name, statement string) { change(t, database, name, statement) }
	run := session(t)
	file := filepath.Join(t.TempDir(), "folder", "firn.db")
	store := "sqlite:" + file
	step := func(url, args string, status int, words ...string) string {
		t.Helper()
		got, out := run([]string{"FIRN_FROM=" + url, "FIRN_STORE=" + store}, append([]string{"import"}, strings.Fields(args)...)...)
		if got != status {
			t.Errorf("firn import %s exits with %d:\n%s", args, got, out)
		}
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("firn import %s does not say %q:\n%s", args, word, out)
			}
		}
		if strings.Contains(out, importPassword) || strings.Contains(out, "0f673adf") {
			t.Errorf("firn import %s prints a secret:\n%s", args, out)
		}
		return out
	}

	for _, args := range []string{"leaf --dry-run", "leaf"} {
		step(leafURL, args, 1, store+": not found: there is no store in it", "firn store make")
	}
	if _, err := os.Stat(filepath.Dir(file)); err == nil {
		t.Error("a takeover made the store")
	}
	if status, out := run(nil, "store", "make", store); status != 0 || out != store+"\n" {
		t.Fatalf("firn store make exits with %d:\n%s", status, out)
	}
	step(strings.Replace(leafURL, "reader", "stranger", 1), "leaf --dry-run", 1, "check user, password")
	step(leafURL, "leaf --dry-run", 0, "leaf-segment-test  leaf-segment-test  1       2000  -       -    2001  created\n",
		"Names: 1 created, 0 raised, 0 unchanged.", "This was a dry run: nothing was written.",
		"Leaf must be stopped before", "\nnamespaces:\n  \"leaf-segment-test\": {kind: segment, min_step: 2000}\n")
	step(leafURL, "leaf", 0, "2001  created")
	step(leafURL, "leaf", 0, "  2001  2001  unchanged")
	step(leafURL, "leaf --margin 0", 0, "  2001  2001  unchanged")
	served := filepath.Join(t.TempDir(), "leaf.yaml")
	step(leafURL, "leaf --config "+served, 0)
	cfg, err := settings.Read(served)
	if n := cfg.Namespaces["leaf-segment-test"]; err != nil || cfg.Store != store || n.Kind != "segment" || n.MinStep != 2000 {
		t.Errorf("firn serve reads %+v, %v", cfg, err)
	}
	sql("leaf", "UPDATE leaf_alloc SET max_id = 10001")
	step(leafURL, "leaf --dry-run", 0, "  2001  12001  raised to 12001")
	step(leafURL, "leaf --margin 5", 0, "  2001  10006  raised to 10006", "Leaf may go on only while its max_id stays below")
	issues(t, store, "leaf-segment-test", segment.Stripe{Stride: 1}, 10006)
	step(leafURL, "leaf --rename leaf-segment-test=orders", 0, "orders  leaf-segment-test", "  -    12001  created", "  orders: {kind: segment,")

	// TinyId: stripes, tokens and a file
	config := filepath.Join(t.TempDir(), "firn.yaml")
	step(tinyURL, "tinyid --dry-run --config "+config, 0, "test_odd", "1 of 2", "100002  created", "100003  created",
		"Left out: 1 of the tokens in tiny_id_token", `sha256: "`+tokenSHA256+`", namespaces: [test, test_odd]`)
	if _, err := os.Stat(config); err == nil {
		t.Error("a dry run wrote the configuration")
	}
	if out := step(tinyURL, "tinyid --config "+config, 0, "The configuration for firn serve is in "+config); strings.Contains(out, "min_step") {
		t.Errorf("the configuration is printed too:\n%s", out)
	}
	step(tinyURL, "tinyid --config "+config, 0, "Names: 0 created, 0 raised, 2 unchanged.")
	step(tinyURL, "tinyid --rename test=probe --config "+config, 1, "already exists and is not overwritten; nothing was imported")
	checkConfig(t, config, store)
	issues(t, store, "test", segment.Stripe{Stride: 1}, 100_002)
	issues(t, store, "test_odd", segment.Stripe{Offset: 1, Stride: 2}, 100_003)
	step(tinyURL, "tinyid --rename test_odd=test --rename test=x", 1, `"test" has offset 0 of stride 1, not offset 1 of stride 2`)
	step(tinyURL, "tinyid --rename test_odd=test", 1, `"test" and "test_odd" would both be named "test"`)
	step(tinyURL, "tinyid --rename nosuch=test2", 1, `--rename "nosuch": the table has no such row`)
	step(tinyURL, "tinyid --margin 9223372036854775807", 1, `"test" is at 1, and a margin of 9223372036854775807 leaves no ids`)
	step(tinyURL, "leaf", 1, `database "tiny" has no table leaf_alloc`, "mysql://…@127.0.0.1")

	// JSON
	var shown imported
	out := step(tinyURL, "tinyid --json --margin 200000", 0)
	if err := json.Unmarshal([]byte(out), &shown); err != nil || len(shown.Names) != 2 || shown.DryRun ||
		shown.Names[1].Now != "200003" || shown.Names[1].Outcome != "raised" || shown.Names[1].Was == "" {
		t.Errorf("%v:\n%s", err, out)
	}

	// all invalid names are reported together, before anything is written
	bad := foreignDatabase(t, database, "bad", leafAlloc, `INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('fine', 1, 1), ('a b', 5, 1), ('shop:orders', 5, 1)`)
	step(bad, "leaf", 1, `"a b" is not a valid segment name`, `"shop:orders" is not a valid segment name`, "--rename OLD=NEW", "nothing was imported")
	store = "sqlite:" + file
	absent(t, store, "fine")
	step(bad, "leaf --rename shop:orders=shop.orders", 1, `"a b" is not a valid segment name`)
	got, output := run([]string{"FIRN_FROM=" + bad, "FIRN_STORE=" + store}, "import", "leaf", "--rename", "a b=a-b", "--rename", "shop:orders=shop.orders")
	if got != 0 || !strings.Contains(output, `"a b"`) || !strings.Contains(output, "3 created") {
		t.Errorf("%d:\n%s", got, output)
	}
	sql("bad", "UPDATE leaf_alloc SET step = -1")
	step(bad, "leaf", 1, `row "a b": step -1 is out of range`, `row "fine": step -1`)
	sql("bad", "DELETE FROM leaf_alloc")
	step(bad, "leaf", 1, "table leaf_alloc has no row to import")

	// skipped rows are left out, whatever they contain
	sql("bad", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('zero', 1, 0), ('', 5, 1), ('a=b', 5, 1), ('top', 9223372036854775807, 1)")
	step(bad, "leaf", 1, `row "zero": step 0 is out of range`)
	step(bad, "leaf --skip zero --rename =none --rename a=b=ab", 1, `"top" is at 9223372036854775807`, "leave it out with --skip")
	step(bad, "leaf --skip zero --skip topp --rename =none --rename a=b=ab", 1, `--skip "topp": table leaf_alloc has no such row`)
	step(bad, "leaf --skip zero --skip TOP --rename =none --rename a=b=ab", 1, `--skip "TOP": table leaf_alloc has no such row, but "top"`)
	step(bad, "leaf --skip zero --skip top --rename =none --rename a=b=ab", 0, "2 created", "  none: {", "  ab: {")
	absent(t, store, "zero")
	absent(t, store, "top")

	// more names than firn serve takes
	sql("bad", "INSERT INTO leaf_alloc (biz_tag, max_id, step) SELECT CONCAT('many', seq), 1, 1 FROM seq_1_to_10001")
	for _, dry := range []string{"", " --dry-run"} {
		step(bad, "leaf --skip zero --skip top --rename =none --rename a=b=ab --config "+filepath.Join(t.TempDir(), "many.yaml")+dry, 1, "nothing was imported", "number of entries 10003 is out of range: 0 to 10000", "--skip")
	}
	absent(t, store, "many1")

	// into a store whose URL has a password
	sql("tiny", "CREATE DATABASE firn")
	sql("tiny", "GRANT ALL ON firn.* TO reader@'%'")
	store = strings.Replace(leafURL, "/leaf", "/firn", 1)
	step(leafURL, "leaf", 0, "12001  created", "# store: the URL given to firn import; it contains a password")
	step(strings.Replace(leafURL, importPassword, "falsch", 1), "leaf", 1, "Access denied")
}

func change(t *testing.T, at *servers.Server, name, statement string) {
	t.Helper()
	db, err := storeurl.OpenMySQL("mysql://root:@" + at.Addr() + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// issues checks that a name continues with first.
func issues(t *testing.T, url, name string, stripe segment.Stripe, first int64) {
	t.Helper()
	s, err := storeurl.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	names, err := segment.New(segment.Config{Store: s, Offset: stripe.Offset, Stride: stripe.Stride})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		if id, err := names.Next(t.Context(), name); err != nil || int64(id) != first+i*stripe.Stride {
			t.Errorf("%s: id number %d is %d, %v, want %d", name, i, id, err, first+i*stripe.Stride)
		}
	}
	if err := names.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// absent checks that a store has no counter of a name.
func absent(t *testing.T, url, name string) {
	t.Helper()
	s, err := storeurl.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := segment.ReadCounter(t.Context(), s, name); err == nil {
		t.Errorf("%s is at %d", name, c.Next)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// checkConfig checks the written configuration.
func checkConfig(t *testing.T, path, store string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := settings.Read(path); err != nil {
		t.Errorf("firn serve refuses it: %v", err)
	}
	type namespace struct {
		Kind    string
		MinStep int64 `yaml:"min_step"`
		Offset  int64
		Stride  int64
	}
	var have struct {
		Store      string
		Namespaces map[string]namespace
		Tokens     []struct {
			Name, SHA256 string
			Namespaces   []string
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &have, yaml.Strict()); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if have.Store != store || len(have.Namespaces) != 2 || have.Namespaces["test"] != (namespace{"segment", 100_000, 0, 0}) ||
		have.Namespaces["test_odd"] != (namespace{"segment", 50_000, 1, 2}) {
		t.Errorf("%+v", have)
	}
	if len(have.Tokens) != 1 || have.Tokens[0].Name != "tinyid-1" || have.Tokens[0].SHA256 != tokenSHA256 ||
		strings.Join(have.Tokens[0].Namespaces, " ") != "test test_odd" {
		t.Errorf("%+v", have.Tokens)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
