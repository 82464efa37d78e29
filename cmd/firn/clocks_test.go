package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// TestThePageAboutClocksIsRight runs its command and reads its settings, and looks for its metrics and
// alerts where these are defined.
func TestThePageAboutClocksIsRight(t *testing.T) {
	const page = "docs/clocks.md"
	s := snippets(t, page, "# Clocks")[0]
	command, _, _ := strings.Cut(strings.TrimSpace(s.text), "#")
	words := strings.Fields(strings.Replace(command, "redis://10.0.0.5:6379/0", sqliteStore(t), 1))
	if status, out := session(t)(nil, words[1:]...); status != 0 || !strings.Contains(out, "clock") {
		t.Errorf("%s exits with %d: %s", command, status, out)
	}
	for _, s := range snippets(t, page, "## What Firn does") {
		path := filepath.Join(t.TempDir(), "firn.yaml")
		if err := os.WriteFile(path, []byte(s.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := settings.Read(path); s.language != "yaml" || err != nil {
			t.Errorf("%s: %v:\n%s", s.at, err, s.text)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := os.ReadFile(filepath.Join(deploy, "prometheus-alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := os.ReadFile(filepath.Join(deploy, "grafana-dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Firn[A-Za-z]+|firn_[a-z_]+)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 8 {
		t.Errorf("the page names %d metrics and alerts", len(names))
	}
	for _, m := range names {
		if !strings.Contains(string(alerts), "alert: "+m[1]+"\n") && !strings.Contains(string(dashboard), m[1]) {
			t.Errorf("%s is neither an alert nor a metric of the dashboard", m[1])
		}
	}
}
