package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

// A decoder asks one protocol what is in an id. It returns the fields as texts, or the code of the protocol and the
// error. Times are in UTC, and an empty or zero field is left out.
type decoder func(t *testing.T, v *serving, token, namespace, id string) (fields map[string]string, code, message string)

var decoders = map[string]decoder{"http": overHTTP, "rpc": overRPC, "resp": overRESP}

func overHTTP(t *testing.T, v *serving, token, namespace, id string) (fields map[string]string, code, message string) {
	t.Helper()
	status, body := get(t, fresh(t), "http://"+v.addr+"/v1/decode/"+url.PathEscape(id)+"?namespace="+namespace, token)
	if status != http.StatusOK {
		var failed struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(body), &failed); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return nil, fmt.Sprintf("%d %s", status, failed.Error.Code), failed.Error.Message
	}
	var parts map[string]any
	if err := json.Unmarshal([]byte(body), &parts); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, wide := range []string{"id", "veiled", "tick"} {
		if _, isNumber := parts[wide].(float64); isNumber {
			t.Errorf("%s is a number: JavaScript is inexact above 2^53: %s", wide, body)
		}
	}
	fields = map[string]string{}
	for name, value := range parts {
		if n, ok := value.(float64); ok {
			value = strconv.FormatFloat(n, 'f', -1, 64)
		}
		note(fields, name, fmt.Sprint(value))
	}
	return fields, "", ""
}

func overRPC(t *testing.T, v *serving, token, namespace, id string) (fields map[string]string, code, message string) {
	t.Helper()
	client := firnv1connect.NewIDServiceClient(fresh(t), "http://"+v.addr)
	r := connect.NewRequest(&firnv1.DecodeRequest{Id: id, Namespace: namespace})
	if token != "" {
		r.Header().Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Decode(t.Context(), r)
	if err != nil {
		return nil, connect.CodeOf(err).String(), err.Error()
	}
	fields = map[string]string{}
	answer.Msg.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name, text := string(field.Name()), value.String()
		if field.Message() != nil {
			text = value.Message().Interface().(*timestamppb.Timestamp).AsTime().Format(time.RFC3339Nano)
		}
		if name == "text" {
			name = "id"
		}
		note(fields, name, text)
		return true
	})
	return fields, "", ""
}

func overRESP(t *testing.T, v *serving, token, namespace, id string) (fields map[string]string, code, message string) {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", v.redis)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	send := func(args ...string) string {
		command := fmt.Sprintf("*%d\r\n", len(args))
		for _, arg := range args {
			command += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
		}
		if _, err := io.WriteString(c, command); err != nil {
			t.Fatal(err)
		}
		return line(t, in)
	}
	if token != "" {
		if got := send("AUTH", token); got != "+OK" {
			t.Fatal(got)
		}
	}
	first := send("FIRN.DECODE", namespace, id)
	if failed, ok := strings.CutPrefix(first, "-"); ok {
		words := strings.SplitN(failed, " ", 3)
		return nil, strings.TrimSuffix(strings.Join(words[:2], " "), ":"), failed
	}
	n, err := strconv.Atoi(strings.TrimPrefix(first, "*"))
	if err != nil {
		t.Fatalf("%q: %v", first, err)
	}
	fields = map[string]string{}
	for range n / 2 {
		name := value(t, in)
		note(fields, name, value(t, in))
	}
	return fields, "", ""
}

func line(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	text, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text, "\r\n")
}

// value reads an integer or a bulk string.
func value(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	first := line(t, in)
	if number, ok := strings.CutPrefix(first, ":"); ok {
		return number
	}
	return line(t, in) // no value has a line break
}

// note adds a field unless it is zero, which gRPC does not send.
func note(fields map[string]string, name, text string) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		text = at.UTC().Format(time.RFC3339Nano)
	}
	if text != "" && text != "0" {
		fields[name] = text
	}
}

// everyKind has a namespace for each kind, and for each way in which its ids are hidden or marked.
func everyKind(t *testing.T) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "order.key")
	write(t, key, "1:000102030405060708090a0b0c0d0e0f\n")
	veil := "veil: {key_file: " + key + "}"
	return `
namespaces:
  plain:    {}
  hidden:   {` + veil + `}
  carts:    {prefix: cart}
  secrets:  {prefix: secret, ` + veil + `}
  short:    {kind: segment}
  striped:  {kind: segment, offset: 1, stride: 4}
  ranges:   {kind: segment, ` + veil + `}
  txn:      {kind: sequence}
  marked:   {kind: sequence, prefix: txn}
  invoices: {kind: number, template: "INV/{yyyyMMdd}.{n:5}", zone: "+08:00"}
  boxes:    {kind: number, template: "BOX.{n:4}"}
  sessions: {kind: uuid}
  random:   {kind: uuid, version: 4}
  visits:   {kind: uuid, prefix: visit}
  objects:  {kind: objectid}
  docs:     {kind: objectid, prefix: doc}
  pays:     {kind: serial, prefix: PAY, check: luhn}
  bills:    {kind: serial, zone: "+08:00"}
tokens:
  - {name: shop, sha256: ` + access.Hash("shop") + `, namespaces: ['*']}
  - {name: ops, sha256: ` + access.Hash("ops") + `, namespaces: ['*'], unveil: true}
  - {name: other, sha256: ` + access.Hash("other") + `, namespaces: [plain], unveil: true}
  - {name: admin, sha256: ` + access.Hash("admin") + `, namespaces: ['*'], admin: true}
anonymous: ['hidden', 'plain']
`
}

// issued returns an id of a namespace.
func issued(t *testing.T, v *serving, namespace string) string {
	t.Helper()
	status, body := get(t, fresh(t), "http://"+v.addr+"/v1/ids/"+namespace, "shop")
	var answer struct{ IDs []string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %s", namespace, status, body)
	}
	return answer.IDs[0]
}

const (
	anyNumber = `\d{18,19}`
	anyTime   = `20\d\d-\d\d-\d\dT[0-9:.]+Z`
	uuidText  = `[0-9a-f]{8}-[0-9a-f]{4}-\d[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`
	counter   = "a counter made this id: it has neither a time nor a worker in it"
)

// Each cell of the table kind × protocol: which fields an id has that its namespace reads back.
func TestEachKindIsReadBackOverEachProtocol(t *testing.T) {
	v := serve(t, everyKind(t))
	generated := map[string]string{"id": anyNumber, "layout": "firn", "time": anyTime, "tick": `\d{11,12}`, "worker": `\d+`, "sequence": `\d+`}
	object := map[string]string{"kind": "objectid", "id": "[0-9a-f]{24}", "time": anyTime, "unique": "[0-9a-f]{10}", "counter": `\d+`, "machine": "[0-9a-f]{6}", "process": `\d+`}
	uuid := map[string]string{"kind": "uuid", "id": uuidText, "variant": "RFC4122", "version": "7", "time": anyTime}
	with := func(base map[string]string, more ...string) map[string]string {
		base = maps.Clone(base)
		for i := 0; i < len(more); i += 2 {
			base[more[i]] = more[i+1]
		}
		return base
	}
	random := with(uuid, "version", "4")
	delete(random, "time")
	serial := with(generated, "kind", "serial")
	delete(serial, "layout")
	covered, fields := map[string]bool{}, map[string]bool{}
	for namespace, want := range map[string]map[string]string{
		"plain":    with(generated, "kind", "snowflake"),
		"hidden":   with(generated, "kind", "snowflake", "veiled", `\d{10,19}`),
		"carts":    with(generated, "kind", "snowflake", "prefix", "cart"),
		"secrets":  with(generated, "kind", "snowflake", "prefix", "secret", "veiled", `\d{10,19}`),
		"short":    {"kind": "segment", "id": "1", "note": counter},
		"striped":  {"kind": "segment", "id": `\d+`, "note": counter},
		"ranges":   {"kind": "segment", "id": "1", "veiled": `\d{10,19}`, "note": counter},
		"txn":      {"kind": "sequence", "id": "1", "note": counter},
		"marked":   {"kind": "sequence", "prefix": "txn", "id": "1", "note": counter},
		"invoices": {"kind": "number", "id": `INV/\d{8}\.00001`, "template": regexp.QuoteMeta("INV/{yyyyMMdd}.{n:5}"), "period": "day", "begins": `20\d\d-\d\d-\d\dT16:00:00Z`, "number": "1"},
		"boxes":    {"kind": "number", "id": `BOX\.0001`, "template": regexp.QuoteMeta("BOX.{n:4}"), "number": "1"},
		"sessions": uuid,
		"random":   random,
		"visits":   with(uuid, "prefix", "visit"),
		"objects":  object,
		"docs":     with(object, "prefix", "doc"),
		"pays":     with(serial, "prefix", "PAY", "check", "luhn"),
		"bills":    serial,
	} {
		covered[want["kind"]] = true
		id := issued(t, v, namespace)
		for protocol, ask := range decoders {
			got, code, message := ask(t, v, "ops", namespace, id)
			if code != "" {
				t.Errorf("%s × %s: %s %s", namespace, protocol, code, message)
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(want)) {
				zero := got[name] == "" && regexp.MustCompile(`^(`+want[name]+`)$`).MatchString("0")
				if !zero && !regexp.MustCompile(`^(`+want[name]+`)$`).MatchString(got[name]) {
					t.Errorf("%s × %s: %s is %q, want %s", namespace, protocol, name, got[name], want[name])
				}
			}
			for name, text := range got {
				fields[name] = true
				if want[name] == "" {
					t.Errorf("%s × %s: it has %s %q", namespace, protocol, name, text)
				}
			}
			if got["prefix"] == "" && got["veiled"] == "" && got["kind"] != "serial" && got["id"] != id {
				t.Errorf("%s × %s: the id is %s, want %s", namespace, protocol, got["id"], id)
			}
			if at, err := time.Parse(time.RFC3339Nano, got["time"]); want["time"] != "" && (err != nil || time.Since(at).Abs() > time.Minute) {
				t.Errorf("%s × %s: the time is %s", namespace, protocol, got["time"])
			}
		}
	}
	for _, kind := range settings.Kinds {
		if !covered[kind.Name] {
			t.Errorf("no namespace here has kind %s: add one, with the fields that its ids have", kind.Name)
		}
	}
	_, body := get(t, fresh(t), "http://"+v.addr+"/openapi.json", "")
	var described struct {
		Components struct {
			Schemas struct {
				Decoded struct{ Properties map[string]any }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &described); err != nil {
		t.Fatal(err)
	}
	const labels = "../console/assets/texts.js"
	texts, err := os.ReadFile(labels)
	if err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if described.Components.Schemas.Decoded.Properties[name] == nil {
			t.Errorf("/openapi.json has no field %s of decoded ids: it is in httpapi/schema.go", name)
		}
		if !strings.Contains(string(texts), "\n  "+name+": [") {
			t.Errorf("%s has no label for the field %s", labels, name)
		}
	}
}

// JSON and protobuf have no time after the year 9999, which many numbers have in a layout of wide or long ticks.
func TestATimeAfterTheYear9999IsANoteOverEachProtocol(t *testing.T) {
	v := serve(t, "namespaces: {wide: {layout: 50/0/5/8}, sessions: {kind: uuid}}\nanonymous: ['*']\n")
	for namespace, ids := range map[string]map[string]string{
		"wide": { // the last millisecond of the year, and the first after it
			"2061652878950400000": "", "2061652878950399999": "9999-12-31T23:59:59.999Z", "9223372036854775807": ""},
		"sessions": {"e677d21f-dbff-7fff-8fff-ffffffffffff": "9999-12-31T23:59:59.999Z", "e677d21f-dc00-7fff-8fff-ffffffffffff": "", "ffffffff-ffff-7fff-8fff-ffffffffffff": ""},
	} {
		for id, want := range ids {
			for protocol, ask := range decoders {
				got, code, message := ask(t, v, "", namespace, id)
				if code != "" || got["time"] != want || (got["note"] == "the time is after the year 9999") != (want == "") {
					t.Errorf("%s × %s: %s: %v %s %s", namespace, protocol, id, got, code, message)
				}
			}
		}
	}
	for path, want := range map[string]string{
		"/v1/decode/9223372036854775807?layout=63/0/0/0&unit=9000h":         `"note":"the time is after the year 9999","tick":"9223372036854775807"`,
		"/v1/decode/ffffffff-ffff-7fff-8fff-ffffffffffff":                   `"note":"the time is after the year 9999"}`,
		"/decodeSnowflakeId?snowflakeId=9223372036854775807&namespace=wide": `{"errorMsg":"snowflake Id反解析发生异常!"}`,
		"/decodeSnowflakeId?snowflakeId=1541815603606036480&namespace=wide": `(7989-02-`,
	} {
		if status, body := get(t, fresh(t), "http://"+v.addr+path, ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
}

// The namespaces whose ids have the same form as those of another: no one can tell that they are of another.
var sameForm = map[string]string{
	"plain": "number", "hidden": "number", "short": "number", "ranges": "number", "txn": "number",
}

func TestIDsOfAnotherFormAreRefusedOverEachProtocol(t *testing.T) {
	v := serve(t, everyKind(t))
	_, body := get(t, fresh(t), "http://"+v.addr+"/v1/namespaces", "shop")
	ids := map[string]string{}
	for _, found := range regexp.MustCompile(`"namespace":"(\w+)"`).FindAllStringSubmatch(body, -1) {
		ids[found[1]] = issued(t, v, found[1])
	}
	ids["striped"] = "8" // of another stripe
	cfg, err := settings.Parse("firn.yaml", []byte(everyKind(t)))
	if err != nil || len(ids) != len(cfg.Namespaces) {
		t.Fatalf("%d of %d namespaces are listed, %v: %s", len(ids), len(cfg.Namespaces), err, body)
	}
	refused := map[string]string{"http": "400 bad_id", "rpc": "invalid_argument", "resp": "FIRN bad_id"}
	for _, namespace := range slices.Sorted(maps.Keys(ids)) {
		for from, id := range ids {
			if (from == namespace && from != "striped") || sameForm[from] != "" && sameForm[from] == sameForm[namespace] ||
				from == "bills" && namespace == "random" || // 32 digits are a UUID of version 4 in seconds 40 to 49 of a minute
				from == "striped" && sameForm[namespace] != "" || namespace == "striped" && sameForm[from] != "" {
				continue
			}
			for protocol, ask := range decoders {
				got, code, message := ask(t, v, "ops", namespace, id)
				if code != refused[protocol] || !strings.Contains(message, id) || !strings.Contains(message, "namespace "+namespace+", of kind ") || !strings.Contains(message, " makes ") {
					t.Errorf("%s × %s: an id of %s: %v %s %s", namespace, protocol, from, got, code, message)
				}
			}
		}
	}
	for wrong, namespace := range map[string]string{
		"PAY20261121092742220000032733112": "pays", "0": "txn", "-1": "short", "BOX.0000": "boxes", "INV/20260230.00001": "invoices",
		"": "boxes", "9223372036854775808": "plain", "cart_": "carts", "\xff\x00": "plain",
	} {
		for protocol, ask := range decoders {
			if protocol == "http" && wrong == "" || protocol == "rpc" && wrong == "\xff\x00" { // there is no such request
				continue
			}
			if got, code, message := ask(t, v, "ops", namespace, wrong); code != refused[protocol] {
				t.Errorf("%s × %s: %q: %v %s %s", namespace, protocol, wrong, got, code, message)
			}
		}
	}
}

// The state of a counter is what its veil hides: the latest number, and how many there are.
func TestTheStateOfAVeiledNamespaceIsForThoseWhoMayUnveil(t *testing.T) {
	v := serve(t, everyKind(t))
	secret := regexp.MustCompile(`"(worker|fence|until|fence_seconds|renewals|losses|segment|sequence|last|left|issued)":`)
	for token, sees := range map[string]bool{"": false, "shop": false, "ops": true, "admin": true} {
		for _, namespace := range []string{"hidden", "secrets", "ranges", "plain", "short", "txn"} {
			veiled := slices.Contains([]string{"hidden", "secrets", "ranges"}, namespace)
			status, body := get(t, fresh(t), "http://"+v.addr+"/v1/namespaces/"+namespace, token)
			switch {
			case token == "" && namespace != "hidden" && namespace != "plain":
				if status != 401 {
					t.Errorf("%s: %d %s", namespace, status, body)
				}
			case status != http.StatusOK || secret.MatchString(body) != (sees || !veiled) || strings.Contains(body, `"veil"`) != veiled:
				t.Errorf("token %q × %s: %d %s", token, namespace, status, body)
			}
		}
		_, body := get(t, fresh(t), "http://"+v.addr+"/v1/namespaces", token)
		for _, state := range strings.Split(body, `{"namespace":`)[1:] {
			if veiled := strings.Contains(state, `"veil":`); veiled && secret.MatchString(state) != sees {
				t.Errorf("token %q: %s", token, state)
			}
		}
		r := connect.NewRequest(&firnv1.ListNamespacesRequest{})
		if token != "" {
			r.Header().Set("Authorization", "Bearer "+token)
		}
		answer, err := firnv1connect.NewIDServiceClient(fresh(t), "http://"+v.addr).ListNamespaces(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range answer.Msg.GetNamespaces() {
			if shows := n.GetLease() != nil || n.GetSegment() != nil || n.GetSequence() != nil; n.GetVeil() != "" && shows != sees {
				t.Errorf("token %q: %v", token, n)
			}
		}
	}
}

// A veil hides traffic from everyone without the key, and the server has the key.
func TestOnlyACallerThatMayUnveilReadsVeiledIDs(t *testing.T) {
	v := serve(t, everyKind(t))
	id := issued(t, v, "hidden")
	if status, _ := get(t, fresh(t), "http://"+v.addr+"/v1/ids/hidden", ""); status != http.StatusOK {
		t.Fatalf("anonymous callers get ids: %d", status)
	}
	for token, want := range map[string]map[string]string{
		"":      {"http": "401 unauthorized", "rpc": "unauthenticated", "resp": "NOAUTH"},
		"shop":  {"http": "403 forbidden", "rpc": "permission_denied", "resp": "NOPERM"},
		"ops":   {"http": "", "rpc": "", "resp": ""},
		"other": {"http": "", "rpc": "", "resp": ""}, // hidden is open to all, and this token may unveil
	} {
		for protocol, ask := range decoders {
			got, code, message := ask(t, v, token, "hidden", id)
			if protocol == "resp" {
				code, _, _ = strings.Cut(code, " ")
			}
			if code != want[protocol] || (code == "") != (got["time"] != "") || strings.Contains(message, "20") && code != "" {
				t.Errorf("token %q × %s: %v %s %s, want %s", token, protocol, got, code, message, want[protocol])
			}
			if code != "" && protocol != "resp" && !strings.Contains(message, "unveil: true") {
				t.Errorf("token %q × %s: %s does not say what is needed", token, protocol, message)
			}
			// Of a namespace that the token may not use, unveiling allows nothing.
			if _, code, _ := ask(t, v, "other", "ranges", "5"); code == "" {
				t.Errorf("%s: token other read an id of ranges", protocol)
			}
			// Without a veil, nothing more is needed.
			if _, code, message := ask(t, v, token, "plain", "5"); code != "" {
				t.Errorf("token %q × %s: plain: %s %s", token, protocol, code, message)
			}
		}
	}
	for token, want := range map[string]int{"": 401, "shop": 403, "ops": 200} { // Leaf's endpoint decodes too
		if status, body := get(t, fresh(t), "http://"+v.addr+"/decodeSnowflakeId?namespace=hidden&snowflakeId="+id, token); status != want || (status == 200) != strings.Contains(body, "workerId") {
			t.Errorf("token %q × leaf: %d %s, want %d", token, status, body, want)
		}
	}
	v.log.has(t, "who=anonymous from=127.0.0.1 what=\"unveil namespace hidden\"", "who=shop from=127.0.0.1 what=\"unveil namespace hidden\"")
}

// The layout of namespaces that are made on first use is that of the command line, not of their settings.
func TestANamespaceMadeOnFirstUseIsDecodedByTheLayoutOfTheServer(t *testing.T) {
	layout, err := firn.ParseLayout("41/0/8/14")
	if err != nil {
		t.Fatal(err)
	}
	base := lease.Config{Generator: firn.Config{Layout: layout}}
	_, h := newServerOf(t, server.Config{Base: base, Store: memstore.New(nil)})
	_, id, _ := ask(t, h, "POST", "/v1/ids/orders", "text/plain")
	_, body, _ := ask(t, h, "GET", "/v1/decode/"+strings.TrimSpace(id)+"?namespace=orders", "")
	if !strings.Contains(body, `"layout":"41/0/8/14"`) {
		t.Error(body)
	}
	// Without its namespace a veiled id has any time.
	if _, body, _ := ask(t, h, "GET", "/v1/decode/9000000000000000000", ""); !strings.Contains(body, `"note":"the time is in the future: name the namespace`) {
		t.Error(body)
	}
}
