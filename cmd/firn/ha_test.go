package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store/storetest/servers"
)

// TestThreeServersLoseOnlyRequestsInFlight puts three servers over one store under load, over all
// protocols. One server is killed and restarted, another paused and resumed, the store killed and
// restarted, and the third server shut down and restarted. The test fails if a caller gets an
// error that is not allowed, an id twice, or an id of a sequence that is not greater than all ids
// received before it was requested.
func TestThreeServersLoseOnlyRequestsInFlight(t *testing.T) {
	t.Parallel()
	l := startLoad(t)
	all := func(*caller) bool { return true }
	l.goOn("all servers run", 50, all)
	l.full()
	waits := l.waits()

	first, second, third := l.member(0), l.member(1), l.member(2) // in the client's order
	elsewhere := func(than *member) func(*caller) bool {
		return func(c *caller) bool { return c.at != than }
	}

	first.begins()
	l.noticed("one is killed", first.kill, func(c *caller) bool { return c.at == first })
	l.left(first)
	l.goOn("one is killed", 100, elsewhere(first))
	first.start()
	first.ends()
	l.returned(first)
	l.goOn("it is restarted", 20, all)

	second.begins()
	second.stop()
	l.goOn("one is paused", 100, elsewhere(second))
	second.signal(syscall.SIGCONT)
	second.eases()
	l.goOn("it is resumed", 20, all)
	second.ends()

	l.store.begins()
	l.noticed("the store is killed", l.redis.Kill, func(c *caller) bool { return c.kind == l.sequence && c.at != nil })
	l.goOn("the store is killed", 100, func(c *caller) bool { return c.kind != l.sequence })
	l.redis.Restart()
	l.store.ends()
	l.goOn("the store is restarted", 20, all)

	third.begins()
	l.noticed("one is shut down", third.end, func(c *caller) bool { return c.at == third })
	l.goOn("one is shut down", 100, elsewhere(third))
	third.start()
	third.ends()
	l.goOn("all run again", 50, all)

	l.end()
	for _, k := range l.kinds() {
		if k.set.Duplicates() != 0 || k.set.Added() == 0 {
			t.Errorf("%s: %d duplicates among %d ids: %v", k.namespace, k.set.Duplicates(), k.set.Added(), k.set.Examples())
		}
		t.Logf("%s: %d ids", k.namespace, k.set.Added())
	}
	if now := l.waits(); now != waits {
		t.Errorf("callers waited %d times although ids were buffered: %+v", now-waits, l.client.State().Namespaces)
	}
}

// A member is one of the servers.
type member struct {
	outage
	*served
}

// stop pauses the process, and returns when all its threads have stopped.
func (m *member) stop() {
	m.t.Helper()
	m.signal(syscall.SIGSTOP)
	until(m.t, "a server is paused", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
		return err == nil && strings.Contains(string(status), "State:\tT")
	})
}

// end shuts the process down, which must succeed.
func (m *member) end() {
	m.t.Helper()
	m.signal(syscall.SIGTERM)
	if err := m.cmd.Wait(); err != nil {
		m.t.Errorf("shutdown of a server: %v", err)
	}
}

// until polls until is returns true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if t.Failed() {
			t.FailNow()
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

const (
	// buffer is how many ids the Go client buffers. Its callers together take 2,000 a second of
	// each namespace, if the machine is fast enough.
	buffer = 20_000
	// The intervals between the calls of a caller.
	eachDirect, eachBuffered = 5 * time.Millisecond, 2 * time.Millisecond
)

// A load has callers of three servers and of the Go client.
type load struct {
	t                            *testing.T
	redis                        *servers.Server
	store                        outage
	members                      map[string]*member // by address
	snowflake, segment, sequence *kind
	client                       *client.Client
	callers                      []*caller
	stop                         context.CancelFunc
	group                        sync.WaitGroup

	mu            sync.Mutex
	parted, again map[string]bool // servers that the client has left, and returned to
}

// startLoad starts three servers, with a caller for each server, protocol and kind, and callers of
// the Go client.
func startLoad(t *testing.T) *load {
	storeurl.QuietRedis()
	l := &load{
		t: t, redis: servers.Redis(t), members: map[string]*member{}, parted: map[string]bool{}, again: map[string]bool{},
		snowflake: &kind{namespace: "orders"}, segment: &kind{namespace: "items"}, sequence: &kind{namespace: "txn", strict: true},
	}
	folder := configured(t, "namespaces: {orders: {}, items: {kind: segment, min_step: 50000}, txn: {kind: sequence}}", "redis://"+l.redis.Addr())
	var addresses []string
	for range 3 {
		m := &member{served: startServed(t, folder, fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t)))}
		l.members["http://"+m.address] = m
		addresses = append(addresses, "http://"+m.address)
		for protocol, connect := range protocols(m.served) {
			for _, k := range l.kinds() {
				l.callers = append(l.callers, &caller{t: t, name: protocol, kind: k, at: m, store: &l.store, connect: connect, each: eachDirect})
			}
		}
	}
	var err error
	l.client, err = client.New(client.Config{
		Servers: addresses, Wait: time.Minute, Timeout: time.Second, Buffer: client.Buffer{Min: buffer, Max: buffer},
		Hooks: client.Hooks{Server: l.note},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range l.kinds() {
		ids, err := l.client.IDs(k.namespace)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			l.callers = append(l.callers, &caller{t: t, name: "client", kind: k, store: &l.store, connect: clientOf(ids, k.strict), each: eachBuffered})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	for _, c := range l.callers {
		l.group.Go(func() { c.run(ctx) })
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) kinds() []*kind { return []*kind{l.snowflake, l.segment, l.sequence} }

// end ends the load; it may be called twice.
func (l *load) end() {
	l.stop()
	for _, m := range l.members { // a paused server would block its callers
		if m.cmd.ProcessState == nil {
			m.signal(syscall.SIGCONT)
		}
	}
	l.group.Wait()
	l.client.Close()
}

// member returns the i-th server in the client's order.
func (l *load) member(i int) *member { return l.members[l.client.State().Servers[i].Server] }

// note is the client's hook: it records that the client left a server or returned to it.
func (l *load) note(server string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parted[server], l.again[server] = err != nil, err == nil
}

// left waits until the client has left a server, returned until the client uses it again.
func (l *load) left(m *member) { l.t.Helper(); l.hears("the client leaves a server", l.parted, m) }
func (l *load) returned(m *member) {
	l.t.Helper()
	l.hears("the client returns to a server", l.again, m)
}

func (l *load) hears(what string, of map[string]bool, m *member) {
	l.t.Helper()
	until(l.t, what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return of["http://"+m.address]
	})
}

// full waits until the buffers are filled.
func (l *load) full() {
	l.t.Helper()
	until(l.t, "the buffers are filled", func() bool {
		for _, ns := range l.client.State().Namespaces {
			if ns.Namespace != l.sequence.namespace && ns.Buffered < buffer*3/4 {
				return false
			}
		}
		return true
	})
}

// waits returns how many calls of the client found its buffers empty.
func (l *load) waits() (n int64) {
	for _, ns := range l.client.State().Namespaces {
		if ns.Namespace != l.sequence.namespace {
			n += ns.Waits
		}
	}
	return n
}

// goOn waits until each of the callers has received ids the given number of times.
func (l *load) goOn(what string, times int64, whose func(*caller) bool) {
	l.t.Helper()
	l.grows(what+": callers receive ids", times, func() {}, whose, func(c *caller) int64 { return c.served.Load() })
}

// noticed causes a fault and waits until each of the callers has got an error. Otherwise a caller
// could use a broken connection after the end of the outage, which would be an error that is not
// allowed.
func (l *load) noticed(what string, fault func(), whose func(*caller) bool) {
	l.t.Helper()
	l.grows(what+": callers get an error", 1, fault, whose, func(c *caller) int64 { return c.failed.Load() })
}

// grows calls act, and waits until a count of each of the callers has grown by that much.
func (l *load) grows(what string, by int64, act func(), whose func(*caller) bool, count func(*caller) int64) {
	l.t.Helper()
	want := map[*caller]int64{}
	for _, c := range l.callers {
		if whose(c) {
			want[c] = count(c) + by
		}
	}
	began := time.Now()
	act()
	for c, n := range want {
		until(l.t, fmt.Sprintf("%s: %s of %s", what, c.name, c.kind.namespace), func() bool { return count(c) >= n })
	}
	l.t.Logf("%6d ms: %s", time.Since(began).Milliseconds(), what)
}
