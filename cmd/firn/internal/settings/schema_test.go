package settings_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// beyondForm are mistakes that no schema finds: what several settings together must be, and texts that the library parses.
var beyondForm = []string{
	"listen: {resp: 7071}",
	"namespaces: {a: {layout: twiter}}",
	"namespaces:\n  a/b: {}",
	"namespaces:\n  a: {clock: virtual, clock_from: 2020-01-01}",
	"namespaces:\n  a: {clock: virtual, clock_from: soon}",
	"namespaces:\n  a: {clock: wall, clock_from: 2026-01-01}",
	"namespaces:\n  a: {clock: wall, rollback: [history], ahead: 5ms}",
	"namespaces:\n  a: {clock: wall, rollback: [pray]}",
	"namespaces:\n  a: {datacenter: 1}",
	"namespaces:\n  a: {epoch: 2025}",
	"namespaces:\n  a: {kind: number, template: \"{n:6}{MM}\"}",
	"namespaces:\n  a: {kind: segment, min_step: 5, max_step: 4}",
	"namespaces:\n  a: {kind: segment, offset: 4, stride: 4}",
	"namespaces:\n  a: {kind: serial, width: 5}",
	"namespaces:\n  a: {kind: serial, zone: Local}",
	"namespaces:\n  a: {layout: 41/9/9/9}",
	"namespaces:\n  a: {prefix: Ord}",
	"namespaces:\n  a: {spares: [8]}",
	"namespaces:\n  a: {unit: 0}",
	"namespaces: {a: {kind: segment, from: 1048576, veil: {key_env: K, bits: 20}}}",
	"namespaces: {a: {kind: sequence, from: 1048576, veil: {key_env: K, bits: 20}}}",
	"namespaces: {a: {veil: {key_env: K, bits: 53}}}",
	"namespaces:\n  a: {veil: {bits: 63}}",
	"namespaces:\n  a: {veil: {key_file: a, key_env: b}}",
	"namespaces:\n  a: {window: 1ms}",
	"namespaces:\n  a: {worker: 5000}",
	"namespaces:\n  a: {worker: 7, clock: wall, rollback: [wait, switch]}",
	"namespaces:\n  a: {worker: 7, spares: [8, 5000]}",
	"namespaces:\n  a: {worker: 7, spares: [8, 7]}",
	"namespaces:\n  a: {}\n  b: {clock: virtual, clock_from: 2026-01-01}",
	"namespaces:\n  a: {}\n  b: {layout: twitter}",
}

func TestTheSchemaRefusesWhatIsWrongByForm(t *testing.T) {
	check := schema(t)
	var wrong []string
	for text := range wrongFiles {
		wrong = append(wrong, text)
	}
	for text := range wrongNamespaces {
		wrong = append(wrong, "namespaces:\n  a: "+text)
	}
	for _, text := range wrong {
		var file any
		if yaml.Unmarshal([]byte(text), &file) != nil {
			continue // not YAML
		}
		if err, beyond := check(t, text), slices.Contains(beyondForm, text); (err == nil) != beyond {
			t.Errorf("%q: beyond its form %v, but the schema says %v", text, beyond, err)
		}
	}
}

// The examples are the settings in documents that a server reads.
func TestTheSchemaAcceptsEachExample(t *testing.T) {
	t.Setenv("ORDER_KEY", "1:00112233445566778899aabbccddeeff")
	check := schema(t)
	pages, err := filepath.Glob("../../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```$")
	examples := []string{
		"store:\nlimits: {batch: , rate: {a: 5/s}}\n", "listen: {resp: off}", "namespaces: {a: {kind: number, template: 'N{n:4}'}, b: }",
		"namespaces: {a: {ahead: -1ms, strict: 0, epoch: 1735689600000, rollback: [wait 500ms, refuse], clock: wall}}",
	}
	for _, page := range append(pages, "../../../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range block.FindAllSubmatch(text, -1) {
			examples = append(examples, string(found[1]))
		}
	}
	read := 0
	for _, text := range examples {
		if _, err := settings.Parse("firn.yaml", []byte(text)); err != nil {
			continue // of another program, or a part
		}
		read++
		if err := check(t, text); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
	if read < 20 {
		t.Errorf("only %d examples are configurations", read)
	}
}

// schema returns the check of a file against the schema, which must itself be one.
func schema(t *testing.T) func(t *testing.T, file string) error {
	t.Helper()
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(settings.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("firn.schema.json", text); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("firn.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, file string) error {
		t.Helper()
		written, err := yaml.YAMLToJSON([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(written)))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(value)
	}
}
