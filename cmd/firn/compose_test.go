package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A composition has the fields of a compose file that these tests check.
type composition struct {
	Services map[string]struct {
		Command     []string
		Environment map[string]string
	}
	Configs map[string]struct{ Content, File string }
}

func composed(t *testing.T, file string) (c composition) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, file))
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// composedRedis starts the Redis of both files.
func composedRedis(t *testing.T) string {
	t.Helper()
	args := composed(t, "compose.yaml").Services["redis"].Command[1:]
	if line := strings.Join(args, " "); !strings.Contains(line, "--appendonly yes") || !strings.Contains(line, "--appendfsync always") {
		t.Errorf("Redis may lose what it confirmed: %s", line)
	}
	return servers.Redis(t, args...).Addr()
}

// startComposed starts a server of a compose file with its configuration and variables.
func startComposed(t *testing.T, c composition, service, address string, replace *strings.Replacer) *member {
	t.Helper()
	for variable, value := range c.Services[service].Environment {
		t.Setenv(variable, replace.Replace(value))
	}
	folder := t.TempDir()
	content := strings.ReplaceAll(replace.Replace(c.Configs["firn"].Content), "0.0.0.0", address)
	if err := os.WriteFile(filepath.Join(folder, "firn.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, folder: folder, address: address + replace.Replace(":7070"), resp: address + replace.Replace(":7071")}
	s.start()
	t.Cleanup(s.kill)
	return &member{served: s}
}

// callers returns a function for each protocol that takes ids from the ports of 127.0.0.1.
func callers(t *testing.T, replace *strings.Replacer) map[string]conn {
	t.Helper()
	overGRPC, err := overGRPC(replace.Replace("127.0.0.1:7072"), "orders")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]conn{
		"HTTP": overHTTP(replace.Replace("127.0.0.1:7070"), "orders"),
		"RESP": overRESP(replace.Replace("127.0.0.1:7071"), "orders"),
		"gRPC": overGRPC,
	}
	for _, c := range all {
		t.Cleanup(c.close)
	}
	return all
}

// onLoopback replaces the addresses in deploy by free ones of this machine.
func onLoopback(t *testing.T, pairs ...string) *strings.Replacer {
	t.Helper()
	for _, port := range []string{"7070", "7071", "7072"} {
		pairs = append(pairs, port, fmt.Sprint(servers.FreePort(t)))
	}
	return strings.NewReplacer(pairs...)
}

func TestTheComposedServerServes(t *testing.T) {
	storeurl.QuietRedis()
	replace := onLoopback(t, "redis:6379", composedRedis(t))
	startComposed(t, composed(t, "compose.yaml"), "firn", "127.0.0.1", replace)
	had := map[firn.ID]bool{}
	for protocol, c := range callers(t, replace) {
		if err := takeNew(t.Context(), c, had); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// takeNew takes ids and checks that they are new.
func takeNew(ctx context.Context, c conn, had map[firn.ID]bool) error {
	ids, err := c.take(ctx)
	for _, id := range ids {
		if had[id] {
			return fmt.Errorf("%d was issued twice", id)
		}
		had[id] = true
	}
	return err
}

// composedProxy starts three servers and HAProxy before them, and returns the servers and what replaces addresses.
func composedProxy(t *testing.T) ([]*member, *strings.Replacer) {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy"
		_, err = os.Stat(program)
	}
	needClient(t, err == nil, "haproxy")
	storeurl.QuietRedis()
	c := composed(t, "compose-three.yaml")
	names := []string{"firn-a", "firn-b", "firn-c"}
	replace := onLoopback(t, "redis:6379", composedRedis(t), "bind :", "bind 127.0.0.1:", names[0]+":", "127.0.0.2:", names[1]+":", "127.0.0.3:", names[2]+":", "127.0.0.4:")
	var members []*member
	for i, name := range names {
		members = append(members, startComposed(t, c, name, fmt.Sprintf("127.0.0.%d", i+2), replace))
	}
	text, err := os.ReadFile(filepath.Join(deploy, c.Configs["haproxy"].File))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(replace.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := exec.CommandContext(t.Context(), program, "-db", "-f", file)
	if testing.Verbose() {
		proxy.Stdout, proxy.Stderr = os.Stdout, os.Stderr
	}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Wait() }) // killed when the context of the test ends
	return members, replace
}

// TestTheComposedProxyHidesTheEndOfAServer shuts two of the three servers down, one after the other,
// while callers take ids through HAProxy.
func TestTheComposedProxyHidesTheEndOfAServer(t *testing.T) {
	members, replace := composedProxy(t)
	all := callers(t, replace)
	had := map[firn.ID]bool{}
	for protocol, c := range all {
		until(t, protocol+" through the proxy", func() bool { return takeNew(t.Context(), c, had) == nil })
	}
	for _, m := range members[:2] {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.end()
		}()
		for going := true; going; {
			select {
			case <-ended:
				going = false // once more
			default:
			}
			for protocol, c := range all {
				// A connection of the Redis protocol ends with its server; the next one has another.
				if err := takeNew(t.Context(), c, had); err != nil && protocol != "RESP" {
					t.Errorf("%s, while %s ends: %v", protocol, m.address, err)
				}
			}
		}
	}
	for protocol, c := range all {
		until(t, protocol+" from the last server", func() bool { return takeNew(t.Context(), c, had) == nil })
	}
}

// TestTheComposedProxyRepeatsTheRequestsOfAFrozenServer stops a server without ending it: its kernel still accepts
// connections, and nothing answers. HAProxy sends what it waits for to another server after 12 s, and closes the
// connections of the Redis protocol once it has noticed.
func TestTheComposedProxyRepeatsTheRequestsOfAFrozenServer(t *testing.T) {
	members, replace := composedProxy(t)
	all := callers(t, replace)
	for _, more := range []string{"RESP 2", "RESP 3"} { // a connection has one server: so each has one
		all[more] = overRESP(replace.Replace("127.0.0.1:7071"), "orders")
		t.Cleanup(all[more].close)
	}
	for protocol, c := range all {
		until(t, protocol+" through the proxy", func() bool {
			_, err := c.take(t.Context())
			return err == nil
		})
	}
	frozen := members[0]
	frozen.stop()
	t.Cleanup(func() { frozen.signal(syscall.SIGCONT) })
	const longest = 17 * time.Second // 12 s, and time for a busy machine
	var group sync.WaitGroup
	for protocol, c := range all {
		group.Go(func() {
			for range 6 { // the servers take turns, so the frozen one gets one of the first three
				began := time.Now()
				_, err := c.take(t.Context())
				if took := time.Since(began); took > longest || err != nil && !strings.HasPrefix(protocol, "RESP") {
					t.Errorf("%s, while a server is frozen: %v after %v", protocol, err, took)
				}
			}
		})
	}
	group.Wait()
	for protocol, c := range all {
		if _, err := c.take(t.Context()); err != nil {
			t.Errorf("%s from the others: %v", protocol, err)
		}
	}
}
