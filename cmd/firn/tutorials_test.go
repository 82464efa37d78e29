package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/store/storetest/servers"
)

// follow types all commands of a page in their order, and runs its programs and servers. It returns what each block
// printed.
func (r *reader) follow(page string, replace ...string) (printed []string) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.root, page))
	if err != nil {
		r.t.Fatal(err)
	}
	title, _, _ := strings.Cut(string(text), "\n")
	addresses := strings.NewReplacer(replace...)
	for _, s := range snippets(r.t, page, title) {
		s.text = addresses.Replace(s.text)
		switch {
		case s.language == "json":
			continue
		case s.language == "yaml":
			r.save("firn.yaml", s.text)
			continue
		case strings.Contains(s.text, ": go test "): // it runs in the folder of the package, so that must exist
			m := howToRun.FindStringSubmatch(s.text)
			r.save(m[1], s.text)
			r.save("go.mod", "module example.org/shop\n\ngo 1.26.0\n")
			r.save("go.work", "go 1.26.0\n\nuse (\n\t.\n\t"+r.root+"\n\t"+r.root+"/redisstore\n)\n\nreplace github.com/firn-id/firn v0.1.0 => "+r.root+"\n")
			s = snippet{s.at, "sh", m[2]}
		case strings.HasPrefix(s.text, "firn serve"):
			r.serve(strings.Replace(s.text, "firn.yaml", filepath.Join(r.folder, "firn.yaml"), 1))
			continue
		}
		out := r.types(s)
		if out == "" {
			r.t.Errorf("%s prints nothing:\n%s", s.at, s.text)
		}
		printed = append(printed, out)
	}
	return printed
}

func TestTheTutorialForGo(t *testing.T) {
	r := newReader(t)
	out := r.follow("docs/tutorial-go.md", "10.0.0.5:6379", servers.Redis(t).Addr())
	if len(out) != 4 || strings.Count(out[1], `{"id":"`) != 3 || !strings.Contains(out[2], "returned") || !strings.Contains(out[3], "--- PASS") {
		t.Errorf("%q", out)
	}
}

func TestTheTutorialForRedisClients(t *testing.T) {
	redis := servers.Redis(t)
	host, port, _ := strings.Cut(redis.Addr(), ":")
	r := newReader(t)
	r.types(snippet{"the counter", "sh", "redis-cli -h " + host + " -p " + port + " SET orders 48213"})
	out := r.follow("docs/tutorial-redis.md", "10.0.0.5:6379", redis.Addr(), "-h 10.0.0.5", "-h "+host+" -p "+port,
		"namespaces:\n", "listen: {http: '127.0.0.1:0', resp: '127.0.0.1:0', grpc: '127.0.0.1:0'}\nnamespaces:\n")
	if len(out) != 6 || out[2] != "48213\n" || out[4] != "50000\n1\n11\n" || !strings.Contains(out[5], "sha256:") {
		t.Errorf("%q", out)
	}
	newIDs(t, snippet{at: "docs/tutorial-redis.md"}, out[1], 1, map[string]bool{})
}
