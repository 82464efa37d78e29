package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// startApplication runs a program until the test ends, and returns its port once a line of its output has matched.
func startApplication(t *testing.T, cmd *exec.Cmd, port *regexp.Regexp) string {
	t.Helper()
	output, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	var all strings.Builder // must be read only after the output ended
	go func() {
		defer close(found)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if m := port.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
		write.Close()
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		for range found { // until the output ended
		}
		if t.Failed() {
			t.Log(all.String())
		}
	})
	at, ok := <-found
	if !ok {
		t.Fatalf("%s ended: %s", cmd, all.String())
	}
	return at
}

// postOrders posts more orders than a batch has, through the faults of the proxy, and reads each back by its id.
func postOrders(t *testing.T, port string, proxy *faultyProxy) {
	t.Helper()
	base := "http://127.0.0.1:" + port + "/orders"
	type order struct{ ID, What string }
	ask := func(method, url, body string) (o order) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil {
			err = json.Unmarshal(text, &o)
		}
		if err != nil || answer.StatusCode >= 300 {
			t.Fatalf("%s: %v: %s", answer.Status, err, text)
		}
		return o
	}
	var ids []string
	for range 150 {
		made := ask("POST", base, `{"what":"tea"}`)
		if found := ask("GET", base+"/"+made.ID, ""); found != made || found.What != "tea" {
			t.Fatalf("posted %v, found %v", made, found)
		}
		ids = append(ids, made.ID)
	}
	newIDs(t, snippet{at: "examples"}, strings.Join(ids, "\n"), 150, map[string]bool{})
	if batches := proxy.requests.Load(); batches < 5 { // two, and three that faults met
		t.Errorf("the application asked for %d batches", batches)
	}
}

func TestTheSpringBootExample(t *testing.T) {
	libraries := installed(t, "clients-spring", "spring-boot")
	folder, err := filepath.Abs("../../examples/spring-boot/src/main")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob(filepath.Join(folder, "java/id/firn/shop/*.java"))
	if err != nil || len(sources) != 5 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	classes := t.TempDir()
	if out := run(t, "", "javac", append([]string{"-d", classes, "-parameters", "-cp", libraries + "/*"}, sources...)...); strings.Contains(out, "error") {
		t.Error(out)
	}
	proxy, port := startFaultyProxy(t, "127.0.0.1:"+startDefault(t))
	cmd := exec.Command("java", "-cp", strings.Join([]string{classes, filepath.Join(folder, "resources"), libraries + "/*"}, ":"),
		"id.firn.shop.Shop", "--server.port=0", "--spring.data.redis.port="+port)
	postOrders(t, startApplication(t, cmd, regexp.MustCompile(`Tomcat started on port (\d+)`)), proxy)
}

func TestTheDjangoExample(t *testing.T) {
	libraries := installed(t, "clients-python", "django")
	folder, err := filepath.Abs("../../examples/django")
	if err != nil {
		t.Fatal(err)
	}
	proxy, port := startFaultyProxy(t, "127.0.0.1:"+startDefault(t))
	t.Setenv("PYTHONPATH", libraries+":"+folder)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	t.Setenv("DATABASE", filepath.Join(t.TempDir(), "shop.sqlite3"))
	t.Setenv("IDS_URL", "redis://127.0.0.1:"+port)
	t.Setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
	const python = "/usr/bin/python3" // for which the libraries were installed
	run(t, "", python, filepath.Join(folder, "manage.py"), "migrate")
	run(t, "", python, filepath.Join(folder, "manage.py"), "makemigrations", "--check", "--dry-run")
	// runserver does not say which port it got.
	cmd := exec.Command(python, "-c", `from wsgiref.simple_server import make_server
from django.core.wsgi import get_wsgi_application
server = make_server("127.0.0.1", 0, get_wsgi_application())
print("port", server.server_port, flush=True)
server.serve_forever()`)
	cmd.Env = os.Environ()
	postOrders(t, startApplication(t, cmd, regexp.MustCompile(`^port (\d+)`)), proxy)
}
