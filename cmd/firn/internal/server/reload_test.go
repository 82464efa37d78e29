package server_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

func TestAReloadUnderLoadFailsNoRequest(t *testing.T) {
	before, open := runtime.NumGoroutine(), descriptors()
	ca, folder := newAuthority(t, "ca"), t.TempDir()
	// As Kubernetes shows a ConfigMap: a link to a folder, which is replaced whole.
	publish := func(i int) {
		version := filepath.Join(folder, fmt.Sprint("version", i))
		if err := os.Mkdir(version, 0o700); err != nil {
			t.Fatal(err)
		}
		cert, key := ca.valid("server", int64(i+1))
		into(t, version, cert, key)
		write(t, filepath.Join(version, "firn.yaml"), fmt.Sprintf("%s\nnamespaces: {orders: {ahead: %dms}, items: {kind: segment, min_step: %d}}\n"+
			"tokens:\n  - {name: shop, sha256: %s, namespaces: ['*']}\n  - {name: n%d, sha256: %s, admin: true}\n",
			tlsKeys(filepath.Join(folder, "data"), ""), 10+i, 10+i, access.Hash("s"), i, access.Hash(fmt.Sprint(i))))
		next := filepath.Join(folder, "next")
		if err := os.Symlink(version, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(folder, "data")); err != nil {
			t.Fatal(err)
		}
	}
	publish(0)
	v := serveFile(t, filepath.Join(folder, "data", "firn.yaml"))
	stop := make(chan struct{})
	var group sync.WaitGroup
	var requests atomic.Int64
	sets := map[string]*idset.Set{"orders": new(idset.Set), "items": new(idset.Set)}
	for name, set := range sets {
		for range 2 {
			client := ca.client("", "")
			group.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						client.CloseIdleConnections()
						return
					default:
					}
					status, body := get(t, client, fmt.Sprintf("https://%s/v1/ids/%s?count=%d", v.addr, name, 1+n%5), "s")
					if status != 200 {
						t.Errorf("%d %s", status, body)
						return
					}
					requests.Add(1)
					_, list, _ := strings.Cut(body, `"ids":["`)
					list, _, _ = strings.Cut(list, `"]`)
					for text := range strings.SplitSeq(list, `","`) {
						id, err := firn.ParseID(text)
						if err != nil {
							t.Error(err)
							return
						}
						set.Add([]firn.ID{id})
					}
				}
			})
		}
	}
	const versions = 15
	for i := 1; i <= versions; i++ {
		publish(i)
		v.turn()
		for goal := requests.Load() + 20; requests.Load() < goal && !t.Failed(); {
			runtime.Gosched()
		}
		if got := serial(t, ca, v.addr); got != int64(i+1) {
			t.Errorf("certificate %d after version %d", got, i)
		}
	}
	close(stop)
	group.Wait()
	for name, set := range sets {
		if set.Duplicates() != 0 || set.Added() == 0 {
			t.Errorf("%s: %d ids, %d duplicates", name, set.Added(), set.Duplicates())
		}
	}
	if n := strings.Count(v.log.String(), `msg="in force: configuration"`); n != versions {
		t.Errorf("%d configurations came into force, want %d", n, versions)
	}
	_, metrics := get(t, ca.client("", ""), "https://"+v.addr+"/metrics", fmt.Sprint(versions))
	if want := fmt.Sprintf(`firn_config_reloads_total{result="ok"} %d`, versions); !strings.Contains(metrics, want) || !strings.Contains(metrics, "firn_config_last_reload_successful 1") {
		t.Errorf("metrics lack %s", want)
	}
	v.stop()
	settles(t, "descriptors", open, descriptors)
	settles(t, "goroutines", before+2, runtime.NumGoroutine) // two of the client that is still open
}

func TestABadFileLeavesTheOldConfigurationInForceAndIsLogged(t *testing.T) {
	const good = "namespaces: {orders: {}}\nlimits: {batch: 7}\n"
	v := serve(t, good)
	client := fresh(t)
	ask := func(name string, want int) {
		t.Helper()
		if status, body := get(t, client, "http://"+v.addr+"/v1/ids/"+name, ""); status != want {
			t.Errorf("%s: %d %s, want %d", name, status, body, want)
		}
	}
	metric := func(want string) {
		t.Helper()
		if _, body := get(t, client, "http://"+v.addr+"/metrics", ""); !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	v.turn()
	metric("firn_config_last_reload_successful 1")
	failures := 0
	for text, want := range map[string]string{
		"namespaces: {users: {}, orders: {layout: 1/2/3}}": "namespaces.orders.layout",
		"namespaces: {users: ":                             "line 1, column 19: invalid YAML",
		"":                                                 "there is no setting in it",
		"# hello\n":                                        "there is no setting in it",
		good + "store: 'memory:'":                          "store cannot change while the server runs",
		good + "listen: {http: 0.0.0.0:7070}":              "listen.http cannot change while the server runs",
		good + "listen: {resp: 0.0.0.0:7070}":              "listen.resp cannot change",
		good + "audit: {file: audit.log}":                  "audit.file cannot change",
		good + "tls: {cert: a, key: b}":                    "tls cannot change",
		"namespaces:\n  orders: {veil: {key_file: /none}}": "firn.yaml: line 2: namespaces.orders.veil.key_file: key file: open /none",
		"namespaces: {orders: {layout: twitter}}":          "layout",
	} {
		write(t, v.file, text)
		v.turn()
		failures++
		v.log.has(t, want)
		ask("orders", 200)
		ask("users", 404)
		metric("firn_config_last_reload_successful 0")
		metric(fmt.Sprintf(`firn_config_reloads_total{result="failed"} %d`, failures))
	}
	if n := strings.Count(v.log.String(), "not in force: configuration"); n != failures {
		t.Errorf("%d faults were said, want %d:\n%s", n, failures, v.log.String())
	}
	v.log.has(t, "level=WARN msg=done log=audit what=\"reload configuration\" outcome=failed")
	if err := os.Remove(v.file); err != nil {
		t.Fatal(err)
	}
	v.turn()
	v.log.has(t, "no such file")
	ask("orders", 200)

	write(t, v.file, "namespaces: {orders: {}, users: {}}")
	v.turn()
	ask("users", 200)
	metric("firn_config_last_reload_successful 1")
	metric(`firn_config_reloads_total{result="ok"} 1`)
}

// A truncated file must not lift the restrictions.
func TestTheLastTokensAreRemovedOnlyExplicitly(t *testing.T) {
	tokens := "tokens: [{name: shop, sha256: " + access.Hash("s") + ", namespaces: ['*']}]\n"
	for _, before := range []string{tokens, "anonymous: [orders]\n"} {
		v := serve(t, "namespaces: {orders: {}}\n"+before)
		v.turn()
		client := fresh(t)
		for text, want := range map[string]string{
			"# hello\n": "there is no setting in it", "---\n": "there is no setting in it", "{}\n": "there is no setting in it", "": "there is no setting in it",
			"store: \n":                                        "write tokens: []",
			"namespaces: {orders: {}}\n":                       "write tokens: []",
			"namespaces: {orders: {}}\ntokens:\n":              "write tokens: []",
			"namespaces: {orders: {}}\ntokens:\nanonymous: []": "write tokens: []",
		} {
			write(t, v.file, text)
			v.hangup()
			v.log.has(t, want)
			if status, body := get(t, client, "http://"+v.addr+"/v1/ids/other", ""); status != 401 && status != 403 {
				t.Errorf("%q: %d %s", text, status, body)
			}
		}
		write(t, v.file, "namespaces: {other: {}}\ntokens: []\n")
		v.hangup()
		if status, body := get(t, client, "http://"+v.addr+"/v1/ids/other", ""); status != 200 {
			t.Errorf("without tokens on purpose: %d %s", status, body)
		}
		write(t, v.file, "namespaces: {more: {}}\n")
		v.hangup()
		if status, body := get(t, client, "http://"+v.addr+"/v1/ids/more", ""); status != 200 {
			t.Errorf("there were no tokens to lose: %d %s", status, body)
		}
	}
}

func TestTheLastNamespacesAreRemovedOnlyExplicitly(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\n")
	v.turn()
	client := fresh(t)
	for text, want := range map[string]int{"namespaces:\n": 404, "limits: {batch: 5}\n": 404, "namespaces: {}\n": 200} {
		write(t, v.file, "namespaces: {orders: {}}\n")
		v.hangup()
		write(t, v.file, text)
		v.hangup()
		if status, body := get(t, client, "http://"+v.addr+"/v1/ids/other", ""); status != want {
			t.Errorf("%q: %d %s", text, status, body)
		}
	}
	v.log.has(t, "write namespaces: {} if that is meant")
}

func TestAHangupReadsEverythingAgain(t *testing.T) {
	folder := t.TempDir()
	key, records := filepath.Join(folder, "keys"), filepath.Join(folder, "audit.log")
	write(t, key, "1:000102030405060708090a0b0c0d0e0f\n")
	text := func(names string) string {
		return "audit: {file: " + records + "}\nnamespaces:\n  items: {kind: segment, veil: {key_file: " + key + ", bits: 63, version_bits: 2}}\n" + names
	}
	v := serve(t, text(""))
	client := fresh(t)
	veil := func(want string) {
		t.Helper()
		if _, body := get(t, client, "http://"+v.addr+"/v1/namespaces/items", ""); !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", body, want)
		}
	}
	_, one := get(t, client, "http://"+v.addr+"/v1/ids/items", "")
	// Keys are rotated in their own file.
	write(t, key, "1:000102030405060708090a0b0c0d0e0f\n2:0f0e0d0c0b0a09080706050403020100\n")
	v.hangup()
	_, two := get(t, client, "http://"+v.addr+"/v1/ids/items", "")
	if one == two {
		t.Error(two)
	}
	veil(`"veil":"`)
	v.log.has(t, `msg="in force: configuration" cause=SIGHUP`)
	// Reloading the same file is no error; a bad file is reported at each SIGHUP.
	v.hangup()
	write(t, v.file, "namespaces: [")
	v.hangup()
	v.hangup()
	if n := strings.Count(v.log.String(), "not in force: configuration"); n != 2 {
		t.Errorf("said %d times", n)
	}
	// The audit log was moved away. A goroutine of its own writes the records.
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	eventually(t, "both failures are on record", func() bool { return strings.Count(read(records), `"outcome":"failed"`) == 2 })
	if err := os.Rename(records, records+".1"); err != nil {
		t.Fatal(err)
	}
	write(t, v.file, text("  more: {}\n"))
	v.hangup()
	eventually(t, "the reload is on record in the new file", func() bool { return strings.HasSuffix(read(records), "\n") })
	if now := read(records); strings.Count(now, "\n") != 1 || !strings.Contains(now, `"msg":"done","what":"reload configuration","outcome":"ok","cause":"SIGHUP"`) {
		t.Error(now)
	}
	info, err := os.Stat(records)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAFailureWithAnotherCauseThanTheFileIsRetried(t *testing.T) {
	key := filepath.Join(t.TempDir(), "keys")
	v := serve(t, "namespaces: {orders: {}}\n")
	v.turn()
	write(t, v.file, "namespaces: {orders: {}, items: {kind: segment, veil: {key_file: "+key+"}}}\n")
	v.turn()
	v.log.has(t, "key file")
	write(t, key, "1:000102030405060708090a0b0c0d0e0f\n")
	for range 8 { // of two looks each
		v.turn()
	}
	v.log.has(t, `msg="in force: configuration" cause="tried again"`)
	if status, body := get(t, fresh(t), "http://"+v.addr+"/v1/ids/items", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

func TestAHalfWrittenFileIsNotApplied(t *testing.T) {
	v := serve(t, "namespaces: {orders: {}}\ntokens:\n  - {name: a, sha256: "+access.Hash("a")+", namespaces: ['*']}\n")
	v.turn()
	// One look finds the first half, which alone is a valid configuration without tokens.
	client := fresh(t)
	v.once(func() { write(t, v.file, "namespaces: {orders: {}, users: {}}\n") })
	if status, _ := get(t, client, "http://"+v.addr+"/v1/ids/orders", ""); status != 401 {
		t.Errorf("half a file came into force: %d", status)
	}
	v.once(func() {
		write(t, v.file, "namespaces: {orders: {}, users: {}}\ntokens:\n  - {name: b, sha256: "+access.Hash("b")+", namespaces: ['*']}\n")
	})
	if status, _ := get(t, client, "http://"+v.addr+"/v1/ids/orders", ""); status != 401 {
		t.Errorf("half a file came into force: %d", status)
	}
	v.turn()
	if status, body := get(t, client, "http://"+v.addr+"/v1/ids/users", "b"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := get(t, client, "http://"+v.addr+"/v1/ids/users", "a"); status != 401 {
		t.Errorf("a token that was taken out, on the same connection: %d", status)
	}
}

func TestMetricsAreForAdministratorsAndHealthForAll(t *testing.T) {
	text := "namespaces: {orders: {}}\ntokens:\n  - {name: shop, sha256: " + access.Hash("s") + ", namespaces: ['*']}\n  - {name: ops, sha256: " + access.Hash("o") + ", admin: true}\n"
	v := serve(t, text)
	client := fresh(t)
	check := func(path, token string, want int) {
		t.Helper()
		if status, body := get(t, client, "http://"+v.addr+path, token); status != want {
			t.Errorf("%s with %q: %d %.200s, want %d", path, token, status, body, want)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/"} {
		check(path, "", 200)
	}
	for _, path := range []string{"/metrics", "/v1/pools/default/workers", "/v1/store"} {
		check(path, "", 401)
		check(path, "wrong", 401)
		check(path, "s", 403)
		check(path, "o", 200)
	}
	check("/v1/ids/orders", "o", 403)
	check("/v1/decode/1", "", 401)
	check("/v1/decode/1", "o", 200)
	check("/v1/namespaces", "", 401)
	write(t, v.file, text+"anonymous_metrics: true\n")
	v.hangup()
	check("/metrics", "", 200)
	check("/v1/pools/default/workers", "", 401)
}

func TestAnExposedServerWarnsThatItRefusesOtherMachinesOrReceivesTokensUnencrypted(t *testing.T) {
	const refuses, readable = "requests from other machines to [::]:", "unencrypted"
	token := "tokens: [{name: shop, sha256: '" + access.Hash("s") + "', namespaces: [orders]}]\n"
	for text, want := range map[string]string{"namespaces: {orders: {}}\n": refuses, "anonymous: ['*']\n": "", "namespaces: {orders: {}}\n" + token: readable} {
		v := serveOn(t, "0.0.0.0:0", text)
		_, port, err := net.SplitHostPort(v.addr)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.Get("http://127.0.0.1:" + port + "/livez")
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		v.stop() // by then it has warned
		for _, warning := range []string{refuses, readable} {
			if got := strings.Contains(v.log.String(), warning); got != (want == warning) {
				t.Errorf("%q: %v", text, v.log)
			}
		}
	}
}
