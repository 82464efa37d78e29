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

// TestThreeServersOverOneStoreLoseNothingButWhatIsUnderWay has three servers under load
// over all protocols while one is killed and started again, one stopped and resumed,
// the store killed and restarted, and one told to end. A caller that is not
// excused fails the test with its first error, its first id that anybody had before, and
// its first id of a sequence that is not above all that were received before it asked.
func TestThreeServersOverOneStoreLoseNothingButWhatIsUnderWay(t *testing.T) {
	l := startLoad(t)
	all := func(*caller) bool { return true }
	l.goOn("all are there", 50, all)
	l.full()
	waits := l.waits()

	first, second, third := l.member(0), l.member(1), l.member(2) // as the client asks them
	elsewhere := func(than *member) func(*caller) bool {
		return func(c *caller) bool { return c.at != than }
	}

	first.away()
	l.noticed("one is killed", first.kill, func(c *caller) bool { return c.at == first })
	l.left(first)
	l.goOn("one is killed", 100, elsewhere(first))
	first.start()
	first.isBack()
	l.returned(first)
	l.goOn("it is there again", 20, all)

	second.away()
	second.stop()
	l.goOn("one is stopped", 100, elsewhere(second))
	second.signal(syscall.SIGCONT)
	l.goOn("it goes on", 20, all)
	second.isBack()

	l.store.away()
	l.noticed("the store is killed", l.redis.Kill, func(c *caller) bool { return c.kind == l.sequence && c.at != nil })
	l.goOn("the store is killed", 100, func(c *caller) bool { return c.kind != l.sequence })
	l.redis.Restart()
	l.store.isBack()
	l.goOn("the store is there again", 20, all)

	third.away()
	l.noticed("one has ended", third.end, func(c *caller) bool { return c.at == third })
	l.goOn("one has ended", 100, elsewhere(third))
	third.start()
	third.isBack()
	l.goOn("all are there again", 50, all)

	l.end()
	for _, k := range l.kinds() {
		if k.set.Duplicates() != 0 || k.set.Added() == 0 {
			t.Errorf("%s: %d duplicates among %d ids: %v", k.namespace, k.set.Duplicates(), k.set.Added(), k.set.Examples())
		}
		t.Logf("%s: %d ids", k.namespace, k.set.Added())
	}
	if now := l.waits(); now != waits {
		t.Errorf("callers waited %d times though ids were at hand: %+v", now-waits, l.client.State().Namespaces)
	}
}

// A member is one of the servers.
type member struct {
	absence
	*served
}

// stop stops the process in its tracks, and returns when all of it stands still.
func (m *member) stop() {
	m.t.Helper()
	m.signal(syscall.SIGSTOP)
	until(m.t, "a server stands still", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
		return err == nil && strings.Contains(string(status), "State:\tT")
	})
}

// end tells the process to end, which it must do well.
func (m *member) end() {
	m.t.Helper()
	m.signal(syscall.SIGTERM)
	if err := m.cmd.Wait(); err != nil {
		m.t.Errorf("a server that was told to end: %v", err)
	}
}

// until polls for a state.
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
	// buffer is how many ids the Go client has at hand; its callers together take
	// 2,000 a second of each namespace, where the machine can do that.
	buffer = 20_000
	// each is how often a caller calls.
	eachDirect, eachBuffered = 5 * time.Millisecond, 2 * time.Millisecond
)

// A load is callers of three servers and of the Go client.
type load struct {
	t                            *testing.T
	redis                        *servers.Server
	store                        absence
	members                      map[string]*member // by address
	snowflake, segment, sequence *kind
	client                       *client.Client
	callers                      []*caller
	stop                         context.CancelFunc
	group                        sync.WaitGroup

	mu            sync.Mutex
	parted, again map[string]bool // servers that the client has left, and returned to
}

// startLoad starts three servers, for each and each of three protocols and kinds a
// caller, and callers of the Go client.
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
	for _, m := range l.members { // one that stands still would hold callers up
		if m.cmd.ProcessState == nil {
			m.signal(syscall.SIGCONT)
		}
	}
	l.group.Wait()
	l.client.Close()
}

// member returns a server by its place in the client's order.
func (l *load) member(i int) *member { return l.members[l.client.State().Servers[i].Server] }

// note is told when the client leaves a server and when it returns.
func (l *load) note(server string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parted[server], l.again[server] = err != nil, err == nil
}

// left waits until the client has left a server, returned until it is back.
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

// full waits until the buffers are as full as they are kept.
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

// waits is how many calls of the client's buffers found none at hand.
func (l *load) waits() (n int64) {
	for _, ns := range l.client.State().Namespaces {
		if ns.Namespace != l.sequence.namespace {
			n += ns.Waits
		}
	}
	return n
}

// goOn waits until each of the callers has got ids so many times more.
func (l *load) goOn(what string, times int64, whose func(*caller) bool) {
	l.t.Helper()
	l.grows(what+": callers go on", times, func() {}, whose, func(c *caller) int64 { return c.served.Load() })
}

// noticed hurts something and waits until each of the callers has met an error, so that none
// begins a request over a connection that has ended when all is well again.
func (l *load) noticed(what string, hurt func(), whose func(*caller) bool) {
	l.t.Helper()
	l.grows(what+": callers notice", 1, hurt, whose, func(c *caller) int64 { return c.failed.Load() })
}

// grows waits until a count of each of the callers is so much greater than before act.
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
