package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
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
			s = r.inModule(s)
		case strings.HasPrefix(s.text, "// in run, "): // TestTheServiceOfTheTutorialEndsInOrder runs it
			continue
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

// inModule saves a program in a module of its own, which uses the checkout, and returns the command that runs it.
func (r *reader) inModule(s snippet) snippet {
	m := howToRun.FindStringSubmatch(s.text)
	r.save(m[1], s.text)
	r.save("go.mod", "module example.org/shop\n\ngo 1.26.0\n")
	r.save("go.work", "go 1.26.0\n\nuse (\n\t.\n\t"+r.root+"\n\t"+r.root+"/redisstore\n)\n\nreplace github.com/firn-id/firn v0.1.0 => "+r.root+"\n")
	return snippet{s.at, "sh", m[2]}
}

// TestTheLibrarysTestOfALeasePasses runs the test on the page.
func TestTheLibrarysTestOfALeasePasses(t *testing.T) {
	s := snippets(t, "docs/library.md", "## Tests")[1]
	s.text = `// shop/lease_test.go: go test -v ./shop
package shop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store/memstore"
)

` + s.text
	r := newReader(t)
	if out := r.types(r.inModule(s)); !strings.Contains(out, "--- PASS: TestIDsForAnHour") {
		t.Error(out)
	}
}

// TestTheServiceOfTheTutorialEndsInOrder puts the HTTP server of the page into its program, and ends that while a request
// is in flight: the request gets its id, and the worker is returned.
func TestTheServiceOfTheTutorialEndsInOrder(t *testing.T) {
	r := newReader(t)
	store := "redis://" + servers.Redis(t).Addr() + "/0"
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(servers.FreePort(t)))
	blocks := snippets(t, "docs/tutorial-go.md", "## 2. A service")
	program, _, ok := strings.Cut(blocks[0].text, "\tfor _, what := range")
	if !ok || !strings.Contains(blocks[2].text, "server.Shutdown") {
		t.Fatal("the page has another loop or server")
	}
	program = strings.NewReplacer("redis://10.0.0.5:6379/0", store, ":8080", address, "import (", "import (\n\"fmt\"\n\"net/http\"\n\"time\"\n").Replace(program + `
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("in flight")
		<-ctx.Done() // the signal comes while this request is in flight
		id, err := ids.Next(r.Context())
		fmt.Fprintln(w, err)
		json.NewEncoder(w).Encode(Order{id, "tea"})
	})
` + blocks[2].text + "}\n")
	r.clean = append(r.clean, "GOFLAGS=-overlay="+r.overlay("shop/main.go", program))
	built := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(r.folder, "service"), "./shop")
	built.Dir, built.Env = r.root, r.clean
	if out, err := built.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, program)
	}

	service := exec.CommandContext(t.Context(), filepath.Join(r.folder, "service"))
	service.Stderr = t.Output()
	lines, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	answer, ending := make(chan string, 1), make(chan struct{})
	go func() {
		for {
			got, err := http.Get("http://" + address)
			if err == nil {
				text, err := io.ReadAll(got.Body)
				answer <- fmt.Sprint(string(text), err, got.Body.Close())
				return
			}
			select {
			case <-ending:
				answer <- err.Error()
				return
			case <-time.After(20 * time.Millisecond): // it does not listen yet
			}
		}
	}()
	line, err := bufio.NewReader(lines).ReadString('\n')
	close(ending)
	if err != nil {
		t.Fatal(line, err)
	}
	if err := service.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	newIDs(t, blocks[2], <-answer, 1, map[string]bool{})
	if err := service.Wait(); err != nil {
		t.Error(err)
	}
	if out := r.types(snippet{"the store", "sh", "firn workers --pool shop --store " + store}); !strings.Contains(out, "1 returned") {
		t.Error(out)
	}
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
	if len(out) != 6 || out[2] != "48213\n" || !regexp.MustCompile(`^50000\n1\n11\nINV20\d\d-00001\n$`).MatchString(out[4]) || !strings.Contains(out[5], "sha256:") {
		t.Errorf("%q", out)
	}
	newIDs(t, snippet{at: "docs/tutorial-redis.md"}, out[1], 1, map[string]bool{})
}

// TestTheTutorialForKubernetes types the commands of the page. A script in place of kubectl runs what it would run in a
// pod, and a server with the configuration and the arguments of the manifest stands for the pods.
func TestTheTutorialForKubernetes(t *testing.T) {
	const page = "docs/tutorial-kubernetes.md"
	r := newReader(t)
	url := "redis://" + servers.Redis(t).Addr() + "/0"
	r.clean = append(r.clean, "FIRN_STORE="+url)
	kubectl := r.save("bin/kubectl", "#!/bin/sh\necho \"$@\" >>\"$0.log\"\nwhile [ $# -gt 1 ] && [ \"$1\" != -- ]; do shift; done\nshift\n\"$@\"\n")
	if err := os.Chmod(kubectl, 0o700); err != nil {
		t.Fatal(err)
	}
	blocks := snippets(t, page, "# Ids in Kubernetes, step by step")
	if len(blocks) != 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	var said []string
	secret := "firn_…"
	for i, s := range blocks {
		s.text = strings.NewReplacer("redis://10.0.0.5:6379/0", url, "firn_…", secret).Replace(s.text)
		said = append(said, r.types(s))
		if i > 0 {
			continue
		}
		m := regexp.MustCompile(`(?s)(firn_\S+).*sha256: "(\w{64})"`).FindStringSubmatch(said[0])
		if m == nil {
			t.Fatal(said[0])
		}
		secret = m[1]
		objects := kubernetes(t)
		r.save("firn.yaml", strings.NewReplacer("/etc/firn-tls/tls.crt", r.folder+"/cert.pem", "/etc/firn-tls/tls.key", r.folder+"/key.pem", strings.Repeat("0", 64), m[2],
			"0.0.0.0:7070", "127.0.0.1:0", "0.0.0.0:7071", "127.0.0.1:0", "0.0.0.0:7072", "127.0.0.1:0").Replace(objects["ConfigMap"].Data["firn.yaml"]))
		args := strings.Join(objects["Deployment"].Spec.Template.Spec.Containers[0].Args, " ")
		r.serve("firn " + strings.Replace(args, "/etc/firn/", r.folder+"/", 1))
	}
	if !strings.Contains(said[1], "1 held") || !strings.Contains(said[2], `{"namespace":"orders","ids":["`) || !strings.HasSuffix(said[2], "\n1\n") || !strings.Contains(said[3], "1 held") {
		t.Errorf("%q", said)
	}
	typed, err := os.ReadFile(kubectl + ".log")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(deploy, "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for command, object := range map[string]string{
		"secret generic firn-store ": "{name: firn-store, key: url}", "secret tls firn-tls ": "{secretName: firn-tls}",
		"-f deploy/kubernetes.yaml\n": "kind: ConfigMap\nmetadata:\n  name: firn\n", "rollout status deployment/firn\n": "kind: Deployment\nmetadata:\n  name: firn\n", "service/firn ": "kind: Service\nmetadata:\n  name: firn\n",
	} {
		if !strings.Contains(string(typed), command) || !strings.Contains(string(manifest), object) {
			t.Errorf("%s, and %s in the manifest: %s", command, object, typed)
		}
	}
}

func TestTheTutorialForServers(t *testing.T) {
	r := newReader(t)
	blocks := snippets(t, "docs/server.md", "# Run a server")
	r.serve(blocks[0].text)
	newIDs(t, blocks[1], r.types(blocks[1]), 4, map[string]bool{})

	making, _, _ := strings.Cut(snippets(t, "docs/security.md", "## TLS")[1].text, "curl ") // server.md points there
	r.types(snippet{"docs/security.md", "sh", making})
	m := regexp.MustCompile(`(?s)(firn_\S+).*sha256: "(\w{64})"`).FindStringSubmatch(r.types(blocks[6]))
	if m == nil {
		t.Fatal("firn token printed no secret")
	}
	inTest := strings.NewReplacer("redis://10.0.0.5:6379", "redis://"+servers.Redis(t).Addr(), "9ba7…", m[2], "0.0.0.0:7070", "127.0.0.1:0", "0.0.0.0:7071", "127.0.0.1:0", "0.0.0.0:7072", "127.0.0.1:0",
		"cert: cert.pem, key: key.pem", "cert: "+r.folder+"/cert.pem, key: "+r.folder+"/key.pem", "firn_…", m[1], "localhost:7070", "127.0.0.1:7070")
	if _, err := settings.Read(r.save("least.yaml", blocks[3].text)); err != nil {
		t.Error(err)
	}
	r.save("firn.yaml", inTest.Replace(blocks[5].text))
	check, start, _ := strings.Cut(blocks[7].text, "\n")
	if out := r.types(snippet{blocks[7].at, "sh", check}); !strings.Contains(out, "good") {
		t.Error(out)
	}
	r.serve(strings.Replace(start, "firn.yaml", r.folder+"/firn.yaml", 1))
	blocks[8].text = inTest.Replace(blocks[8].text)
	newIDs(t, blocks[8], r.types(blocks[8]), 2, map[string]bool{})
	if _, err := settings.Read(r.save("all.yaml", strings.Replace(blocks[9].text, "order.key", r.save("order.key", "1:00112233445566778899aabbccddeeff"), 1))); err != nil {
		t.Error(err)
	}
}
