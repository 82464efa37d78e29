package redisstore_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/redisstore"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// anyOf resolves each name to the same addresses.
func anyOf(addrs ...string) func(context.Context, string) ([]string, error) {
	return func(context.Context, string) ([]string, error) { return addrs, nil }
}

// silent is an address of a lost machine.
const silent = "192.0.2.1"

// connects connects as the network does, and has one address stay silent.
func connects(ctx context.Context, network, addr string) (net.Conn, error) {
	if host, _, _ := net.SplitHostPort(addr); host == silent {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.ErrDeadlineExceeded}
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func TestANameWithALostAddressIsReachedByAnother(t *testing.T) {
	t.Parallel()
	url := "redis://redis.test:" + strconv.Itoa(servers.Redis(t).Port())
	s, err := redisstore.OpenThrough(context.Background(), url, anyOf(silent, "127.0.0.1"), connects)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	confirmed(t, s, "through the second address")
}

// The kernel accepts connections for a program that has stopped.
func TestANameWhoseFirstAddressHangsIsReachedByAnother(t *testing.T) {
	t.Parallel()
	hangs, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	server := servers.Redis(t)
	var stopped atomic.Bool
	s, err := redisstore.OpenThrough(t.Context(), "redis://redis.test", anyOf("first", "second"), func(ctx context.Context, network, addr string) (net.Conn, error) {
		to := server.Addr()
		if addr == "first:6379" && stopped.Load() {
			to = hangs.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stopped.Store(true)
	server.Kill()
	server.Restart()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // newcomers wait for 12
	defer cancel()
	for err = errors.New("none yet"); err != nil && ctx.Err() == nil; {
		look, end := context.WithTimeout(ctx, 2*time.Second)
		_, err = s.Traits().Clock.Now(look)
		end()
	}
	if err != nil {
		t.Error(err)
	}
}

// A silent name server takes longer than a look of a holder.
func TestALookupOutlivesTheCallThatBeganIt(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	answer, begun := make(chan struct{}), make(chan struct{})
	var lookups atomic.Int64
	lookup := func(ctx context.Context, _ string) ([]string, error) {
		switch n := lookups.Add(1); {
		case n > 2:
			return nil, errors.New("asked again")
		case n == 2:
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < 15*time.Second {
				t.Errorf("it has until %v", deadline)
			}
			close(begun)
			<-answer
		}
		return []string{"127.0.0.1"}, nil
	}
	s, err := redisstore.OpenThrough(context.Background(), "redis://redis.test:"+strconv.Itoa(server.Port()), lookup, connects)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server.Kill()
	server.Restart()
	for range 2 { // the first may find the broken connection
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		if _, err := s.Traits().Clock.Now(ctx); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("without an address: %v", err)
		}
		cancel()
	}
	<-begun
	close(answer)
	await(t, "the late connection", func() bool {
		_, err := s.Traits().Clock.Now(context.Background())
		return err == nil
	})
}

// go-redis stops dialing after as many failures in a row as its pool has connections, and tries once a second.
func TestAServerIsReachedAtOnceAfterManyFailedDials(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	port := strconv.Itoa(server.Port())
	sentinel := servers.Sentinel(t, "main", server.Addr(), 1)
	for _, url := range []string{"redis://redis.test:" + port, "redis://" + sentinel.Addr() + "?master=main"} {
		var away atomic.Bool
		connect := func(ctx context.Context, network, addr string) (net.Conn, error) {
			if _, to, _ := net.SplitHostPort(addr); away.Load() && to == port {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return connects(ctx, network, addr)
		}
		s, err := redisstore.OpenThrough(context.Background(), url, anyOf("127.0.0.1"), connect)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		away.Store(true)
		raw(t, server.Addr()).Do(context.Background(), "CLIENT", "KILL", "TYPE", "normal")
		for range 40 {
			if _, err = s.Traits().Clock.Now(context.Background()); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("%s: while it is away: %v", url, err)
			}
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: the error does not wrap that of the dial: %v", url, err)
		}
		away.Store(false)
		if _, err := s.Traits().Clock.Now(context.Background()); err != nil {
			t.Errorf("%s: it is back: %v", url, err)
		}
	}
}

// The client keeps a connection that comes after its call has ended, for a later call.
func TestADialThatFailsAfterItsCallHasEndedFailsNoOther(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	var away atomic.Bool
	var begun atomic.Uint32
	late := make(chan struct{})
	connect := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if away.Load() {
			begun.Add(1)
			<-late
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return connects(ctx, network, addr)
	}
	s, err := redisstore.OpenThrough(context.Background(), "redis://"+server.Addr(), anyOf("127.0.0.1"), connect)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	away.Store(true)
	raw(t, server.Addr()).Do(context.Background(), "CLIENT", "KILL", "TYPE", "normal")
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if _, err := s.Traits().Clock.Now(ctx); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("while it is away: %v", err)
		}
		cancel()
	}
	close(late)
	// The client gives what is still being dialed to a call that waits.
	await(t, "the pool to have them", func() bool { n := s.Pool().IdleConns; return n > 0 && n == begun.Load() })
	away.Store(false)
	if _, err := s.Traits().Clock.Now(context.Background()); err != nil {
		t.Errorf("it is back: %v", err)
	}
}

func TestAServerThatBecameAClusterIsRefusedBeforeAWrite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	single, node := servers.Redis(t), servers.Redis(t, "--cluster-enabled", "yes", "--cluster-announce-hostname", "myself.example")
	cluster := raw(t, node.Addr())
	if err := cluster.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	agreed(t, 1, node.Addr())
	var to atomic.Value
	to.Store(single.Addr())
	s, err := redisstore.OpenThrough(ctx, "redis://redis.test:1", anyOf("127.0.0.1"), func(ctx context.Context, network, _ string) (net.Conn, error) {
		return connects(ctx, network, to.Load().(string))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	confirmed(t, s, "k")
	to.Store(node.Addr())
	single.Kill()
	await(t, "the other server", func() bool {
		_, err = s.CompareAndSwap(ctx, "k", 0, nil)
		return !errors.Is(err, store.ErrUnavailable)
	})
	expect(t, "a cluster", err, store.ErrRefused, "cluster=true")
	if n := cluster.Exists(ctx, "firn").Val(); n != 0 {
		t.Error("it was written to")
	}
	confirmed(t, open(t, "redis://"+node.Addr()+"?cluster=true"), "in a cluster whose host name contains myself")
}
