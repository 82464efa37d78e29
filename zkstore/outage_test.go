package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
	"github.com/firn-id/firn/zkstore"
)

// bound is the most that a call without a deadline may take, with some margin.
const bound = 15 * time.Second

func TestCallsWithoutADeadlineEndWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, hurt := range map[string]func(*servers.Server) (mend func()){
		"killed": func(s *servers.Server) func() { s.Kill(); return s.Restart },
		"silent": func(s *servers.Server) func() { s.Pause(); return s.Resume },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.ZooKeeper(t)
			s := open(t, "zookeeper://"+server.Addr())
			written, err := s.CompareAndSwap(ctx, "k", 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			mend := hurt(server)
			start := time.Now()
			var group sync.WaitGroup
			for op, call := range map[string]func() error{
				"get":   func() error { _, err := s.Get(ctx, "k"); return err },
				"list":  func() error { _, err := s.List(ctx, ""); return err },
				"write": func() error { _, err := s.CompareAndSwap(ctx, "k", written.Revision, nil); return err },
				"new":   func() error { _, err := s.CompareAndSwap(ctx, "new", 0, nil); return err },
			} {
				group.Go(func() {
					if err := call(); !errors.Is(err, store.ErrUnavailable) || store.Unapplied(err) || errors.Is(err, store.ErrNotFound) {
						t.Errorf("%s: %v, want ErrUnavailable", op, err)
					}
				})
			}
			group.Wait()
			if took := time.Since(start); took > bound {
				t.Errorf("they ended after %v", took)
			}
			mend()
			good(t, s)
		})
	}
}

// good waits until the store reads and writes.
func good(t *testing.T, s *zkstore.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		e, err := s.Get(ctx, "k")
		if err == nil {
			_, err = s.CompareAndSwap(ctx, "k", e.Revision, []byte("good"))
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the store does not recover: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestAStoreOutlivesItsSession(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.ZooKeeper(t)
	between := newProxy(t, server.Addr())
	s := open(t, "zookeeper://"+between.Addr()+"/shop")
	written, err := s.CompareAndSwap(ctx, "k", 0, []byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	revision := written.Revision
	before := sessions(t, server)
	if len(before) != 1 {
		t.Fatalf("sessions %q, want one", before)
	}
	between.Refuse(true)
	for deadline := time.Now().Add(30 * time.Second); len(sessions(t, server)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the session does not expire")
		}
	}
	between.Refuse(false)
	good(t, s)
	if after := sessions(t, server); len(after) != 1 || after[0] == before[0] {
		t.Errorf("session %q, then %q; want another", before, after)
	}
	if _, err := s.CompareAndSwap(ctx, "k", revision, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("over a revision of the earlier session, replaced since: %v", err)
	}
}

// sessions asks the server for its sessions, including those whose connection is gone.
func sessions(t *testing.T, server *servers.Server) []string {
	t.Helper()
	c, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "dump"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	expiring, _, ok := strings.Cut(string(answer), "ephemeral nodes")
	if !ok {
		t.Fatalf("the server dumps %q", answer)
	}
	return regexp.MustCompile(`0x[0-9a-f]+`).FindAllString(expiring, -1)
}

func TestAnAbandonedWriteIsNotStarted(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	between := newProxy(t, server.Addr())
	s := open(t, "zookeeper://"+between.Addr())
	written, err := s.CompareAndSwap(context.Background(), "k", 0, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	revision := written.Revision
	ctx, cancel := context.WithCancel(context.Background())
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var writes atomic.Int64
	between.setHold(func(op int32) {
		switch op {
		case getData: // the look before the write
			once.Do(func() {
				close(held)
				<-release
			})
		case setData, multi:
			writes.Add(1)
		}
	})
	answer := make(chan error, 1)
	go func() {
		_, err := s.CompareAndSwap(ctx, "k", revision, []byte("after"))
		answer <- err
	}()
	<-held
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("the write: %v", err)
	}
	close(release)
	for range 20 { // any request after the look comes before these
		if e, err := s.Get(context.Background(), "k"); err != nil || e.Revision != revision {
			t.Fatalf("got %v, %v; want what was there before", e, err)
		}
	}
	if n := writes.Load(); n != 0 {
		t.Errorf("%d writes were sent", n)
	}
}

func TestAReadIsRepeatedOverTheNextConnection(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.ZooKeeper(t)
	between := newProxy(t, server.Addr())
	s := open(t, "zookeeper://"+between.Addr())
	if _, err := s.CompareAndSwap(ctx, "k", 0, []byte("v")); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"get":  func() error { _, err := s.Get(ctx, "k"); return err },
		"list": func() error { _, err := s.List(ctx, ""); return err },
	} {
		var once sync.Once
		between.setHold(func(op int32) {
			if op == getData {
				once.Do(func() {
					between.Cut()
				})
			}
		})
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenStoresReturnToAWipedServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := servers.ZooKeeper(t)
	s := open(t, "zookeeper://shop:secret@"+server.Addr())
	for i := range 20 { // so that the server's count of changes goes back
		if _, err := s.CompareAndSwap(ctx, fmt.Sprint("k", i), 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	server.Kill()
	if err := os.RemoveAll(server.Path("data")); err != nil {
		t.Fatal(err)
	}
	server.Restart()
	began := time.Now()
	for {
		look, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := s.Get(look, "k1")
		cancel()
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err == nil || ctx.Err() != nil {
			t.Fatalf("after the wipe: %v", err)
		}
	}
	// A holder has about 12s: see package lease.
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("it was reached again after %v", took)
	}
	if _, err := s.CompareAndSwap(ctx, "k1", 0, nil); err != nil {
		t.Errorf("a write after the wipe: %v", err)
	}
}

// The client would wait 33 s for each server that accepts and does not answer.
func TestAHungServerIsLeftForAnother(t *testing.T) {
	t.Parallel()
	for range 4 { // the order of the servers is random
		t.Run("", func(t *testing.T) {
			t.Parallel()
			hung := servers.Accept(t, func(c net.Conn) {
				go func() {
					_, _ = io.Copy(io.Discard, c) // until the client gives up
					_ = c.Close()
				}()
			})
			began := time.Now()
			open(t, "zookeeper://"+hung+","+servers.ZooKeeper(t).Addr())
			if took := time.Since(began); took > bound {
				t.Errorf("it took %v", took)
			}
		})
	}
}
