package cosid_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/cosid"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/storetest/servers"
)

// script writes a script of docs/migrate-cosid.md, unchanged, to a file.
func script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/migrate-cosid.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if strings.HasPrefix(block, "#!/bin/sh\n# "+name+" ") {
			path := t.TempDir() + "/" + name
			if err := os.WriteFile(path, []byte(block), 0o700); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatalf("there is no script %s in the document", name)
	return ""
}

// run runs a program and returns its output.
func run(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v: %s", program, args, err, &out)
	}
	return out.String()
}

// TestTheDocumentedScriptsMigrateCosIdsState runs the scripts of the document on CosId's data in
// Redis.
func TestTheDocumentedScriptsMigrateCosIdsState(t *testing.T) {
	redis := servers.Redis(t)
	port := strconv.Itoa(redis.Port())
	at := []string{"-p", port}
	set := func(args ...string) {
		t.Helper()
		run(t, nil, "redis-cli", append(at, args...)...)
	}
	set("HSET", "cosid:{shop}:itc_idx", "10.0.0.2:8080", "3|1795260245263", "10.0.0.1:8080", "1|1795260245263", "with a space", "4|1795260245263", "10.0.0.9:17", "11|1795260245263")
	set("HSET", "cosid:{shop}:revert", "0", "1795260245263")
	set("SET", "cosid:{shop}:adder", "12")
	set("SET", "cosid:{shop.orders}.adder", "12300")
	set("SET", "cosid:{shop.bills@2026-11}.adder", "70")

	h := serve(t, cosid.Config{Store: memstore.New(nil)})
	s := httptest.NewServer(h)
	defer s.Close()
	env := []string{"FIRN=" + s.URL, "GAP=1000"}
	got := run(t, env, script(t, "carry-machines"), "shop", "10", "-p", port)
	if want := "1 10.0.0.1:8080\n3 10.0.0.2:8080\n4 with a space\n11 10.0.0.9:17\n"; got != want {
		t.Errorf("the script prints\n%s, want\n%s", got, want)
	}
	for _, of := range []struct {
		instance string
		machine  int
	}{
		{"10.0.0.2:8080", 3}, {"new", 0}, {"10.0.0.9:17", 11}, {"newer", 2}, {"third", 5}, {"with%20a%20space", 4},
	} {
		r, body := ask(h, "POST /machines/shop?machineBit=10&stable=false&safeGuardDuration=PT5M&instanceId="+of.instance)
		if got := short(r.Code, body); got != fmt.Sprint("200 ", of.machine) {
			t.Errorf("%s gets %s, want %d", of.instance, got, of.machine)
		}
	}
	for range 2 { // each run takes an id of each counter, to see its position
		run(t, env, script(t, "carry-counters"), "-p", port)
	}
	for request, want := range map[string]string{
		"PATCH /segments/shop/orders?step=10":         "13312",
		"PATCH /segments/shop/bills%402026-11?step=5": "1077",
	} {
		if r, body := ask(h, request); r.Code != http.StatusOK || body != want {
			t.Errorf("%s: %d %s, want %s", request, r.Code, body, want)
		}
	}
	again := exec.Command(script(t, "carry-counters"), "-p", port)
	again.Env = append(os.Environ(), "FIRN="+s.URL, "GAP=1000000")
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "was there already and goes on after") {
		t.Errorf("with a gap beyond the existing counters: %v\n%s", err, out)
	}
}
