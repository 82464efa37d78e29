package settings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

func kindNames() string {
	var all []string
	for _, k := range settings.Kinds {
		all = append(all, k.Name)
	}
	return strings.Join(all, ", ")
}

// wrongNamespaces are mistakes in a namespace, with their errors.
var wrongNamespaces = map[string]string{
	"{kind: uuidx}":                             `namespaces.a.kind: "uuidx" is not a valid kind: ` + kindNames() + ` are allowed`,
	"{kind: uuid, version: 5}":                  `namespaces.a.version: "5" is not a valid UUID version: 4 and 7 are allowed`,
	"{kind: uuid, layout: firn}":                "a namespace of kind uuid has no layout: it has version, prefix",
	"{kind: sequence, min_step: 5}":             "a namespace of kind sequence has no min_step",
	"{kind: sequence, from: -5}":                "ids are not negative",
	"{kind: segment, min_step: 5, max_step: 4}": "namespaces.a.max_step: greatest step 4 is out of range",
	"{kind: segment, offset: 4, stride: 4}":     "namespaces.a.offset: offset 4 is out of range",
	"{kind: segment, target: soon}":             `namespaces.a.target: "soon" is not a valid duration`,
	"{kind: number}":                            `namespaces.a.template: "" is not a valid template`,
	`{kind: number, template: "{n:6}{MM}"}`:     "the month and not the year",
	"{kind: serial, width: 5}":                  "namespaces.a.width: width 5 is out of range",
	"{kind: serial, check: md5}":                `namespaces.a.check: "md5" is not a valid check of serials`,
	"{kind: serial, zone: Local}":               "namespaces.a.zone: ",
	"{prefix: Ord}":                             `"Ord" is not a valid prefix`,
	"{veil: {bits: 63}}":                        "a key is needed",
	"{veil: {bits: 64, key_env: KEY}}":          "bits of a veil 64 is out of range: 20 to 63",
	"{veil: {bits: 19, key_env: KEY}}":          "bits of a veil 19 is out of range: 20 to 63",
	"{veil: {key_file: a, key_env: b}}":         "not both",
	"{template: x}":                             "a namespace of kind snowflake has no template",
}

func TestMistakesInKindsAreNamed(t *testing.T) {
	for text, want := range wrongNamespaces {
		path := filepath.Join(t.TempDir(), "firn.yaml")
		if err := os.WriteFile(path, []byte("namespaces:\n  a: "+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := settings.Read(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// wrongFiles are mistakes in a file, with what their errors have.
var wrongFiles = map[string][]string{
	"stroe: x":                                                                       {"line 1: stroe: there is no such setting: store, listen, namespaces"},
	"namespaces:\n  a: {layuot: firn}":                                               {"line 2: namespaces.a.layuot: a namespace of kind snowflake has no layuot: it has pool, layout"},
	"namespaces:\n  a: {layout: 41/9/9/9}":                                           {"line 2", "namespaces.a.layout", "at most 63"},
	"namespaces:\n  a:\n    clock: sundial":                                          {"line 3", "namespaces.a.clock", "steady, wall and virtual"},
	"namespaces:\n  a: {worker: 5000}":                                               {"line 2", "namespaces.a.worker", "0 to 1023"},
	"namespaces:\n  a: {worker: many}":                                               {`line 2: namespaces.a.worker: "many" is not a valid worker number: whole numbers from 0`},
	"namespaces:\n  a: {datacenter: 1}":                                              {"namespaces.a.datacenter", "only 0 is allowed"},
	"namespaces:\n  a: {clock: wall, rollback: [pray]}":                              {"namespaces.a.rollback", "wait [LIMIT"},
	"namespaces:\n  a: {clock: virtual, clock_from: soon}":                           {"namespaces.a.clock_from", `"soon" is not a valid time`},
	"namespaces:\n  a: {clock: virtual, clock_from: 2020-01-01}":                     {"namespaces.a.clock_from", "2025-01-01T00:00:00.000Z to 2094"},
	"namespaces:\n  a: {clock: wall, clock_from: 2026-01-01}":                        {"namespaces.a.clock_from", `is not a valid clock_from: only clock virtual`},
	"namespaces:\n  a: {}\n  b: {clock: virtual, clock_from: 2026-01-01}":            {"line 3", "clock_from (the present, 2026-01-01)"},
	"namespaces:\n  a: {ahead: soon}":                                                {"namespaces.a.ahead", "500ms"},
	"namespaces:\n  a: {kind: uuidx}":                                                {"namespaces.a.kind", "snowflake"},
	"namespaces:\n  a: {unit: 0}":                                                    {"namespaces.a.unit", "1ns"},
	"namespaces:\n  a: {epoch: 2025}":                                                {"namespaces.a.epoch", "2025-01-01"},
	"namespaces:\n  a: {kind: segment, from: abc}":                                   {"line 2", "namespaces.a.from", "abc"},
	"namespaces:\n  a: {worker: 7, clock: wall, rollback: [wait, switch]}":           {"line 2", "namespaces.a.rollback", "the worker is fixed", "name spares for it"},
	"namespaces:\n  a: {worker: 7, spares: [8, 5000]}":                               {"line 2", "namespaces.a.spares: spare 5000 is out of range: 0 to 1023"},
	"namespaces:\n  a: {worker: 7, spares: [8, 7]}":                                  {"line 2", "namespaces.a.spares", `"7" is not a valid spare: that is the worker itself`},
	"namespaces:\n  a: {worker: 7, spares: 8}":                                       {"line 2", "namespaces.a.spares"},
	"namespaces:\n  a: {worker: 7, spares: [many]}":                                  {"line 2", "namespaces.a.spares", "many"},
	"namespaces:\n  a: {spares: [8]}":                                                {"line 2", "namespaces.a.spares", "spares need a fixed worker"},
	"namespaces:\n  a: {clock: wall, rollback: [history], ahead: 5ms}":               {"line 2", "namespaces.a.ahead", "history"},
	"namespaces:\n  a: {window: 1ms}":                                                {"line 2", "namespaces.a.window", "100ms"},
	"namespaces:\n  a/b: {}":                                                         {"namespaces.a/b", "namespace name"},
	"namespaces:\n  a: {}\n  b: {layout: twitter}":                                   {"line 3", "namespaces.b.pool: namespaces a and b share pool default but differ in layout (firn, twitter)"},
	"limits: {connections: -1}":                                                      {"limits.connections", "-1", "1000000"},
	"listen: {resp: 7071}":                                                           {"line 1", "listen.resp", "7071"},
	"limits: {batch: -1}":                                                            {"limits.batch", "-1"},
	"limits: {batch: 0}":                                                             {"line 1", "limits.batch", "0 is out of range", "1 to 10000000"},
	"limits:\n  connections: 0":                                                      {"line 2", "limits.connections", "0 is out of range", "1 to 1000000"},
	"limits:\n  body: 0":                                                             {"line 2", "limits.body", "0 is out of range", "1024 to 16777216"},
	"namespaces: {a: {kind: segment, stride: 0}}":                                    {"line 1", "namespaces.a.stride", `"0" is not a valid stride`, "1 to 1048576"},
	"namespaces: {a: {kind: segment, target: 0s}}":                                   {"line 1", "namespaces.a.target", `"0s" is not a valid duration`, "1ms to 720h"},
	"namespaces: {a: {window: 0}}":                                                   {"line 1", "namespaces.a.window", `"0" is not a valid duration`, "up to 720h"},
	"namespaces: {a: {veil: {key_env: K, bits: 53}}}":                                {"line 1", "namespaces.a.veil", "ids of layout 41/0/10/12 have ", "room for 53", "js53"},
	"namespaces: {a: {kind: sequence, from: 1048576, veil: {key_env: K, bits: 20}}}": {"line 1", "namespaces.a.from", "1048575"},
	"namespaces: {a: {kind: segment, from: 1048576, veil: {key_env: K, bits: 20}}}":  {"line 1", "namespaces.a.from", "1048575"},
	"namespaces: {a: {kind: uuid, version: 0}}":                                      {"line 1", "namespaces.a.version", `"0" is not a valid version`, "4, 7"},
	"namespaces: [":                                              {"line 1, column 13: invalid YAML: "},
	"namespaces:\n\ta: {}":                                       {"line 2, column 1: invalid YAML: ", "indent by spaces, not tabs"},
	"namespaces: [orders]":                                       {"line 1: namespaces: write entries, as in {orders: {kind: segment}}"},
	"namespaces: {a: {knd: segment}}":                            {"namespaces.a.knd", ": did you mean kind?"},
	"namespace: {a: {kind: segment}}":                            {"line 1: namespace: ", ": did you mean namespaces?"},
	"namespaces: {a: {kind: segmnt}}":                            {": did you mean segment?"},
	"namespaces: {a: {kind: uuid4}}":                             {": did you mean kind: uuid with version: 4?"},
	"namespaces: {a: {kind: segment, first: 5}}":                 {"namespaces.a.first", ": did you mean from?"},
	"namespaces: {a: {layout: twiter}}":                          {"namespaces.a.layout", ": did you mean twitter?"},
	"namespaces: {a: {kind: number, template: ORD{yyyy}-{n:6}}}": {"line 1", `put the template in quotes, as in template: "ORD{yyyyMMdd}-{n:6}"`},
	"namespaces: {a: {kind: number, template: {n:6}}}":           {"line 1", "put the template in quotes"},
	"namespaces:\n  a:\n    template: {yyyy}-{n:6}":              {"line 3", "put the template in quotes"},
	"namespaces:\n  a: {}\n  a: {}":                              {"line 3", "write each name once"},
	"listen: 0.0.0.0:7070":                                       {`line 1: listen: "0.0.0.0:7070" is not a valid listen: write its settings: {http, resp, grpc}`},
	"namespaces:\n  a: {layout: x, clock: y, worker: -1}":        {"namespaces.a.layout", "namespaces.a.clock", "namespaces.a.worker"},
}

// refused returns the error of a file with a mistake, which has the words and the path.
func refused(t *testing.T, text string, words []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "firn.yaml")
	write(t, path, text)
	_, err := settings.Read(path)
	if err == nil {
		t.Errorf("%q was accepted", text)
		return ""
	}
	for _, w := range append(words, path) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q: %v\nlacks %q", text, err, w)
		}
	}
	return err.Error()
}

func TestAMistakeInTheConfigurationNamesFileLineAndKey(t *testing.T) {
	for text, want := range wrongFiles {
		refused(t, text, want)
	}
	if _, err := settings.Read(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestANameThatIsThereTwiceHasNothingToDoWithTabs(t *testing.T) {
	_, err := settings.Parse("firn.yaml", []byte("namespaces:\n  a: {}\n  a: {}"))
	if err == nil || strings.Contains(err.Error(), "tabs") {
		t.Errorf("got %v, which must not speak of tabs", err)
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	const text = `listen: {http: nowhere}
limits: {batch: lots, body: 1}
colour: red
namespaces:
  a: {kind: segmnt}
  b: {kind: segment, min_step: many, target: 3x, layout: firn}
  c: 5
  d: {kind: uuid, version: 5}
tokens:
  - {name: t, sha256: abc, namespaces: x}
`
	_, err := settings.Parse("firn.yaml", []byte(text))
	want := []string{
		`line 1: listen.http: "nowhere" is not a valid address`,
		`line 2: limits.batch: "lots" is not a valid batch`, "line 2: limits.body: body 1 is out of range",
		"line 3: colour: there is no such setting",
		`line 5: namespaces.a.kind: "segmnt" is not a valid kind`,
		`line 6: namespaces.b.min_step: "many" is not a valid min_step`, `line 6: namespaces.b.target: "3x" is not a valid duration`,
		"line 6: namespaces.b.layout: a namespace of kind segment has no layout",
		"line 7: namespaces.c: write its settings",
		"line 8: namespaces.d.version: \"5\" is not a valid UUID version",
		"line 10: tokens[0].sha256: this is not a SHA-256", "line 10: tokens[0].namespaces",
	}
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nlacks %q", err, w)
		}
	}
	if err != nil && strings.Count(err.Error(), "\n")+1 != len(want) {
		t.Errorf("it reports what is not a mistake:\n%v", err)
	}
}

func TestNamespacesOfOnePoolAgreeInValuesNotInText(t *testing.T) {
	const both = "namespaces:\n  a: {pool: default, layout: firn, ahead: 1000ms, clock: steady, epoch: 2025-01-01}\n  b: {ahead: %s, epoch: 2025-01-01T00:00:00Z}\n"
	if _, err := settings.Parse("firn.yaml", fmt.Appendf(nil, both, "1s")); err != nil {
		t.Error(err)
	}
	if _, err := settings.Parse("firn.yaml", fmt.Appendf(nil, both, "2s")); err == nil || !strings.Contains(err.Error(), "ahead (1s, 2s)") {
		t.Error(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAListenerMayBeOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(path, []byte("listen: {resp: off}\nlimits: {connections: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := settings.Read(path)
	if err != nil || cfg.Listen.RESP != settings.Off || cfg.Limits.MaxConnections() != 7 {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func TestALimitThatIsNotGivenHasItsDefault(t *testing.T) {
	for _, text := range []string{"store: 'memory:'", "limits:", "limits: {batch: , rate: {a: 5/s}}"} {
		cfg, err := settings.Parse("firn.yaml", []byte(text))
		if l := cfg.Limits; err != nil || l.MaxBatch() != 100_000 || l.MaxBody() != 65_536 || l.MaxConnections() != 10_000 {
			t.Errorf("%q: %d ids, %d bytes, %d connections, %v", text, l.MaxBatch(), l.MaxBody(), l.MaxConnections(), err)
		}
	}
}

func TestAFileWithoutASettingIsRefused(t *testing.T) {
	for _, text := range []string{"", " \n", "# hello\n", "---\n", "---\n# hello\n", "{}", "...", "<<: {}"} {
		if _, err := settings.Parse("firn.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "configuration firn.yaml: there is no setting in it") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"# hello\n---\nstore: 'memory:'\n", "---\ntokens: []\n", "namespaces:\n"} {
		if _, err := settings.Parse("firn.yaml", []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOnlyOneDocumentMayHoldSettings(t *testing.T) {
	for _, text := range []string{"store: redis://h\n---\nlimits: {}\n", "store: redis://h\n--- {}\n", "--- # a\n{}\n---\nstore: x\n"} {
		if _, err := settings.Parse("firn.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "configuration firn.yaml: there are settings after a line that begins with ---") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"---\nstore: redis://h\n", "# of orders\n---\nstore: redis://h\n", "store: redis://h\n---\n# no more\n", "store: redis://h\n...\n"} {
		if cfg, err := settings.Parse("firn.yaml", []byte(text)); err != nil || cfg.Store != "redis://h" {
			t.Errorf("%q: store %q, %v", text, cfg.Store, err)
		}
	}
}
