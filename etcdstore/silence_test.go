package etcdstore_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/firn-id/firn/etcdstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
	"github.com/firn-id/firn/store/dial"
	"github.com/firn-id/firn/store/storetest/servers"
)

// look is more than how long a holder's look waits, as a busy machine sends late.
const look = 3 * time.Second

// get reads a register that does not exist.
func get(t *testing.T, s *etcdstore.Store, patience time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Get(ctx, "k"); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// reached asks until another member answers.
func reached(t *testing.T, s *etcdstore.Store) {
	t.Helper()
	for begun := time.Now(); ; {
		err := get(t, s, look)
		if err == nil {
			return
		}
		if time.Since(begun) > 5*look {
			t.Fatal(err)
		}
	}
}

// addresses opens a store whose only name has two addresses.
func addresses(t *testing.T, first, second string) (*etcdstore.Store, error) {
	t.Helper()
	s, err := etcdstore.OpenBy(t.Context(), "etcd://name.test", &dial.Dialer{
		Lookup: func(context.Context, string) ([]string, error) { return []string{"first", "second"}, nil },
		Connect: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := second
			if addr == "first:2379" {
				to = first
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
	})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// turns returns a balancer that leads the first connection to one server, and later ones to another.
func turns(t *testing.T, first, later string) (p *servers.Proxy, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	p = servers.NewProxy(t, "", nil)
	p.Choose(func(n int) string {
		connections.Add(1)
		if n == 0 {
			return first
		}
		return later
	})
	return p, connections
}

func TestAMemberWithoutALeaderIsLeftForAnotherOfItsName(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	without := (&giver{away: rpctypes.ErrGRPCNoLeader}).front(t, server)
	balancer, _ := turns(t, without, server.Addr())
	reached(t, open(t, "etcd://"+balancer.Addr()))
	s, err := addresses(t, without, server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	reached(t, s)
}

// A member whose disk hangs answers pings.
func TestAHungMemberIsLeftForAnotherOfItsName(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	for what, reach := range map[string]func(t *testing.T, hangs string) (*etcdstore.Store, error){
		"a balancer": func(t *testing.T, hangs string) (*etcdstore.Store, error) {
			balancer, _ := turns(t, hangs, server.Addr())
			return open(t, "etcd://"+balancer.Addr()), nil
		},
		"addresses": func(t *testing.T, hangs string) (*etcdstore.Store, error) { return addresses(t, hangs, server.Addr()) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			g := new(giver)
			s, err := reach(t, g.front(t, server))
			if err != nil {
				t.Fatal(err)
			}
			g.hung.Store(true)
			if err := get(t, s, look); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("it does not hang: %v", err)
			}
			reached(t, s)
		})
	}
}

// A process that starts must find a member that serves, and one that runs must not ask a member that hangs again and again.
func TestAHungMemberOfSeveralIsAvoided(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	hangs := new(giver)
	hangs.dead.Store(true)
	s := open(t, "etcd://"+hangs.front(t, server)+","+server.Addr()+","+new(giver).front(t, server))
	begun, answered := time.Now(), 0
	for answered < 4 { // on a busy machine a first connection may take longer than a look
		err := get(t, s, look)
		if answered++; err != nil {
			answered = 0
		}
		if time.Since(begun) > 10*look {
			t.Fatalf("after %v the latest %d reads were answered: %v", time.Since(begun), answered, err)
		}
	}
	const row = 100
	begun, answered = time.Now(), 0
	for n := 0; answered < row; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), look)
		_, err := s.CompareAndSwap(ctx, "n"+strconv.Itoa(n), 0, nil)
		cancel()
		if answered++; err != nil {
			answered = 0
		}
		if time.Since(begun) > 10*look {
			t.Fatalf("after %v the latest %d calls of %d were answered: %v", time.Since(begun), answered, n, err)
		}
	}
	if n := hangs.gets.Load() + hangs.txns.Load(); n == 0 {
		t.Error("the member was never asked: this test shows nothing")
	}
}

// The cluster lists its members under other addresses than the URL. No call goes there.
func TestAnAddressThatTheURLDoesNotNameIsNoOtherMember(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, "etcd://localhost:"+port)
	if _, err := s.Traits().Examine(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	for begun := time.Now(); time.Since(begun) < 3*look; {
		if err := get(t, s, look); err == nil {
			t.Fatal("it does not hang")
		}
	}
	server.Resume()
	begun := time.Now()
	for get(t, s, look) != nil {
		if took := time.Since(begun); took > 3*look {
			t.Fatalf("%v after the only member is back it is not asked", took)
		}
	}
}

// The others are down, which is not silence. A holder must find the member before newcomers have waited for long enough.
func TestAMemberThatWasSilentIsAskedIfNoOtherAnswers(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	g := new(giver)
	s := open(t, "etcd://"+servers.Nowhere(t)+","+servers.Nowhere(t)+","+g.front(t, server))
	g.dead.Store(true)
	for begun := time.Now(); time.Since(begun) < 3*look; {
		if err := get(t, s, look); err == nil {
			t.Fatal("it does not hang")
		}
	}
	g.dead.Store(false)
	for begun := time.Now(); ; {
		err := get(t, s, look)
		if err == nil {
			break
		}
		if time.Since(begun) > look {
			t.Fatalf("it was not asked within %v: %v", look, err)
		}
	}
}

func TestACallThatEndsEarlyKeepsItsConnection(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	for !keepsItsConnection(t, server) { // its age ended it first, on a busy machine
		if t.Failed() {
			return
		}
	}
}

// keepsItsConnection reports whether the calls took less time than a connection lasts.
func keepsItsConnection(t *testing.T, server *servers.Server) bool {
	t.Helper()
	begun := time.Now()
	g := new(giver)
	address := g.front(t, server)
	balancer, connections := turns(t, address, address)
	s := open(t, "etcd://"+balancer.Addr())
	if err := get(t, s, look); err != nil {
		t.Fatal(err)
	}
	before := connections.Load()
	g.hung.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(look/4, cancel)
	if _, err := s.Get(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// One that waits in vain while others are answered says nothing about the connection either.
	failed := make(chan error)
	go func() { failed <- get(t, s, look*2/3) }()
	var err error
	for n, writes := 0, true; writes; n++ {
		select {
		case err = <-failed:
			writes = false
		case <-time.After(look / 10):
			if _, err := s.CompareAndSwap(t.Context(), "n"+strconv.Itoa(n), 0, nil); err != nil {
				t.Error(err)
			}
		}
	}
	g.hung.Store(false)
	again, more := get(t, s, look), connections.Load()-before
	if time.Since(begun) > backend.ConnectionLife*3/4 {
		return false
	}
	if err == nil || again != nil || more != 0 {
		t.Errorf("%v, %v; %d more connections", err, again, more)
	}
	return true
}

// The kernel accepts connections for a program that has stopped.
func TestANameWhoseFirstAddressHangsIsReachedByAnother(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	server := servers.Etcd(t)
	proxy := servers.NewProxy(t, server.Addr(), nil)
	s, err := addresses(t, proxy.Addr(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	proxy.Lead(hangs.Addr().String())
	reached(t, s)
}

func TestAnErrorOfASilentServerNamesIt(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = etcdstore.Open(ctx, "etcd://"+silent.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "server "+silent.Addr().String()) {
		t.Error(err)
	}
}
