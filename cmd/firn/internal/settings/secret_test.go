package settings_test

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// Errors go to logs, which more people read than the file.
func TestAnErrorRepeatsNoTextThatMayBeASecret(t *testing.T) {
	long := strings.Repeat("x", 500_000)
	for _, text := range []string{
		`{store: "redis://h:1,i:2/0?master=m&sentinel_password=SECRET", namespaces: {a: {}}, bad`,
		"store: postgres://h/d?user=u&password=SECRET\n\tx: y\n",
		`store: "redis://u:SECRET`,
		"store: 'redis://u:SECRET@h\nnamespaces: {}\n",
		"redis://u:SECRET@h: x\n",
		"namespaces: {redis://u:SECRET@h: 5}\n",
		"store: redis://u:SECRET@h: x\n",
		"\"SECRET\": 1\n\"SECRET\": 2\n",
		"store: *SECRET\n",
		"tokens: [{sha256: SECRET, name: [}]\n",
		"store: x\n" + long + ": :\n",
		"store: x\n" + long + ": 1\n",
		strings.Repeat(":", 100_000),
	} {
		_, err := settings.Parse("firn.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), "firn.yaml") || strings.Contains(err.Error(), "SECRET") || len(err.Error()) > 500 {
			t.Errorf("%.80q: %.600v", text, err)
		}
	}
}
