package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// startHTTP runs firn serve and returns its HTTP URL.
func startHTTP(t *testing.T) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(config, []byte(forClients), 0o600); err != nil {
		t.Fatal(err)
	}
	http, _, _ := serveUntilTheEnd(t, exec.Command("firn", "serve", "--config", config))
	return "http://127.0.0.1:" + http
}

func TestCurl(t *testing.T) {
	base := startHTTP(t)
	for _, c := range []struct{ args, want string }{
		{"/v1/ids/items", `\{"namespace":"items","ids":\["1"\]\}\n`},
		{"-X POST /v1/ids/items?count=2&numbers=true", `\{"namespace":"items","ids":\[2,3\]\}\n`},
		{"-H Accept:text/plain /v1/ids/items?count=2", `4\n5\n`},
		{"--data count=2 /v1/ids/items", `\{"namespace":"items","ids":\["6"\]\}\n`}, // only the URL sets the count
		{"--http1.0 /v1/ids/items", `\{"namespace":"items","ids":\["7"\]\}\n`},
		{"--http2 /v1/ids/items", `\{"namespace":"items","ids":\["8"\]\}\n`},
		{"--http2-prior-knowledge /v1/ids/items", `\{"namespace":"items","ids":\["9"\]\}\n`},
		{"--compressed /v1/ids/items", `\{"namespace":"items","ids":\["10"\]\}\n`},
		{"-o - -w %{http_code} /v1/ids/nothere", `\{"error":\{"code":"unknown_namespace".*\}\}\n404`},
		{"-o - -w %{http_code} -X DELETE /v1/ids/items", `\{"error":\{"code":"method_not_allowed".*\}\}\n405`},
		{"-o - -w %{http_code} /readyz", `.*200`},
	} {
		args := strings.Fields(c.args)
		args[len(args)-1] = base + args[len(args)-1]
		got := run(t, "", "curl", append([]string{"-sS", "--noproxy", "*"}, args...)...)
		if !regexp.MustCompile(`^(?s:` + c.want + `)$`).MatchString(got) {
			t.Errorf("curl %s: %q, want %s", c.args, got, c.want)
		}
	}
}

func TestWrk(t *testing.T) {
	base := startHTTP(t)
	for _, path := range []string{"/v1/ids/orders", "/v1/ids/items?count=100", "/v1/ids/txn"} {
		out := run(t, "", "wrk", "-t", "1", "-c", "16", "-d", "1s", "-H", "Accept: text/plain", base+path)
		if !regexp.MustCompile(`[1-9]\d* requests in `).MatchString(out) || strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
			t.Errorf("wrk %s: %s", path, out)
		}
	}
}
