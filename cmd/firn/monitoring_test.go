package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store/storetest/servers"
)

const deploy = "../../deploy"

// promtool runs Prometheus' own tool.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is not installed: scripts/need-servers installs it")
		}
		t.Skip("promtool is not installed")
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertsLoadAndFire(t *testing.T) {
	promtool(t, "check", "rules", filepath.Join(deploy, "prometheus-alerts.yaml"))
	promtool(t, "test", "rules", filepath.Join(deploy, "prometheus-alerts-test.yaml"))
}

// dashboardQueries returns the queries of the dashboard, with its variables filled in.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, "grafana-dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var queries []string
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: duplicate, or without a title or a query", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			queries = append(queries, strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(target.Expr))
		}
	}
	return queries
}

func TestTheDashboardsQueriesAreValid(t *testing.T) {
	rules := "groups:\n  - name: dashboard\n    rules:\n"
	for i, query := range dashboardQueries(t) {
		rules += fmt.Sprintf("      - {record: 'firn:panel:%d', expr: '%s'}\n", i, strings.ReplaceAll(query, "'", "''"))
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", path)
}

func TestDashboardAndAlertsUseExistingMetrics(t *testing.T) {
	redis := servers.Redis(t)
	s, err := storeurl.Open(t.Context(), "redis://"+redis.Addr()+"/0")
	if err != nil {
		t.Fatal(err)
	}
	certified := httptest.NewTLSServer(nil) // for its certificate
	defer certified.Close()
	on := server.Listeners{HTTP: loopback(t), RESP: loopback(t)}
	ctx, stop := context.WithCancel(t.Context())
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- server.Start(ctx, server.Config{
			Settings: settings.Config{
				Namespaces: map[string]settings.Namespace{"orders": {}, "users": {Kind: "segment"}, "txn": {Kind: "sequence"}, "bills": {Kind: "number", Number: settings.Number{Template: "B{n:5}"}}},
				TLS:        pemFiles(t, certified.TLS.Certificates[0]),
			},
			Store: s, Log: slog.New(slog.DiscardHandler), Version: "v9",
		}, on, func(*server.Server) { close(opened) })
	}()
	select {
	case <-opened:
	case err := <-ended:
		t.Fatal(err)
	}
	defer func() {
		stop()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	}()
	get := func(path string) string {
		answer, err := certified.Client().Get("https://" + on.HTTP.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s, %v", path, answer.Status, body, err)
		}
		return string(body)
	}
	for _, name := range []string{"orders", "users", "txn", "bills"} {
		get("/v1/ids/" + name)
	}
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z_]+)`).FindAllStringSubmatch(get("/metrics"), -1) {
		shown[m[1]] = true
		shown[strings.TrimSuffix(m[1], "_bucket")] = true // the histogram itself
	}
	alerts, err := os.ReadFile(filepath.Join(deploy, "prometheus-alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b(?:firn|go|process)_[a-z_]+\b`).FindAllString(strings.Join(dashboardQueries(t), "\n")+string(alerts), -1)
	if len(named) < 40 {
		t.Errorf("only %d metrics are used", len(named))
	}
	for _, name := range named {
		if !shown[name] {
			t.Errorf("%s is not in /metrics", name)
		}
	}
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pemFiles writes a certificate and its key to files.
func pemFiles(t *testing.T, pair tls.Certificate) *settings.TLS {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	to := &settings.TLS{Cert: filepath.Join(t.TempDir(), "cert.pem"), Key: filepath.Join(t.TempDir(), "key.pem")}
	for path, block := range map[string]*pem.Block{
		to.Cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, to.Key: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}
