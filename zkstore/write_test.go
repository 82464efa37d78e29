package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

// deleteAll removes a znode and everything below it, like zkCli's deleteall.
func deleteAll(t *testing.T, c *zk.Conn, path string) {
	t.Helper()
	names, _, err := c.Children(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		deleteAll(t, c, path+"/"+name)
	}
	if err := c.Delete(path, -1); err != nil {
		t.Fatal(err)
	}
}

func TestAWriteInFlightDoesNotOverwriteALaterOne(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	server := servers.ZooKeeper(t)
	operator := raw(t, server)
	for name, meanwhile := range map[string]func(t *testing.T, path string, other store.Store){
		// ZooKeeper counts its versions from 0 again.
		"deleted and created again": func(t *testing.T, path string, other store.Store) {
			deleteAll(t, operator, path+"/k")
			if _, err := other.CompareAndSwap(ctx, "k", 0, []byte("second")); err != nil {
				t.Fatal(err)
			}
		},
		// Its marker is that of the write in flight.
		"set by hand": func(t *testing.T, path string, _ store.Store) {
			if _, err := operator.Set(path+"/k", []byte("00000000000000ff\nsecond"), -1); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			between := newProxy(t, server.Addr())
			path := "/" + strings.ReplaceAll(name, " ", "-")
			slow, other := open(t, "zookeeper://"+between.Addr()+path), open(t, "zookeeper://"+server.Addr()+path)
			written, err := slow.CompareAndSwap(ctx, "k", 0, []byte("first"))
			if err != nil {
				t.Fatal(err)
			}
			first := written.Revision
			held, release := make(chan struct{}), make(chan struct{})
			between.setHold(func(op int32) {
				if op == setData || op == multi {
					between.setHold(nil)
					close(held)
					<-release
				}
			})
			answer := make(chan error, 1)
			go func() {
				_, err := slow.CompareAndSwap(ctx, "k", first, []byte("late"))
				answer <- err
			}()
			<-held
			func() {
				defer close(release)
				meanwhile(t, path, other)
			}()
			if err := <-answer; !errors.Is(err, store.ErrConflict) {
				t.Errorf("over %d: %v, want ErrConflict", first, err)
			}
			if e, err := other.Get(ctx, "k"); err != nil || string(e.Value) != "second" {
				t.Errorf("got %q of revision %d, %v; want what was written last", e.Value, e.Revision, err)
			}
		})
	}
}

// byHand is an operator's manual change to a register, given its data and marker.
var byHand = map[string]func(c *zk.Conn, path, marker string, data []byte) error{
	"its marker is deleted": func(c *zk.Conn, _, marker string, _ []byte) error {
		return c.Delete(marker, -1)
	},
	"it is set to the same": func(c *zk.Conn, path, _ string, data []byte) error {
		_, err := c.Set(path, data, -1)
		return err
	},
	"it is set to the same and its marker is another's": func(c *zk.Conn, path, marker string, data []byte) error {
		_, err := c.Set(path, data, -1)
		_, create := c.Create(path+"/%@00000000000000ff", nil, 0, zk.WorldACL(zk.PermAll))
		return errors.Join(err, create, c.Delete(marker, -1))
	},
	"it is deleted and restored without a marker": func(c *zk.Conn, path, marker string, data []byte) error {
		err := errors.Join(c.Delete(marker, -1), c.Delete(path, -1))
		_, create := c.Create(path, data, 0, zk.WorldACL(zk.PermAll))
		return errors.Join(err, create)
	},
}

func TestARegisterWrittenByHandTakesWritesAndNoOlderRevision(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	server := servers.ZooKeeper(t)
	operator := raw(t, server)
	for name, do := range byHand {
		t.Run(name, func(t *testing.T) {
			path := "/" + strings.ReplaceAll(name, " ", "-")
			s := open(t, "zookeeper://"+server.Addr()+path)
			write := func(old store.Revision) (store.Revision, error) {
				e, err := s.CompareAndSwap(ctx, "k", old, fmt.Append(nil, "over ", old))
				return e.Revision, err
			}
			first, err1 := write(0)
			second, err2 := write(first)
			data, _, err3 := operator.Get(path + "/k")
			marker := fmt.Sprintf("%s/k/%%@%016x", path, uint64(second))
			if err := errors.Join(err1, err2, err3, do(operator, path+"/k", marker, data)); err != nil {
				t.Fatal(err)
			}
			for _, old := range []store.Revision{0, first, 0xff} {
				if _, err := write(old); !errors.Is(err, store.ErrConflict) {
					t.Errorf("over %d: %v, want ErrConflict", old, err)
				}
			}
			for old, round := second, 0; round < 3; round++ {
				next, err := write(old)
				if err != nil {
					t.Fatalf("over %d: %v", old, err)
				}
				if _, err := write(old); !errors.Is(err, store.ErrConflict) {
					t.Errorf("over %d again: %v, want ErrConflict", old, err)
				}
				old = next
			}
			if list, err := s.List(ctx, ""); err != nil || len(list) != 1 || list[0].Key != "k" {
				t.Errorf("list: %v, %v", list, err)
			}
		})
	}
}

func TestRegistersBelowARegisterAreListed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := servers.ZooKeeper(t)
	s := open(t, "zookeeper://"+server.Addr()+"/shop")
	if _, err := s.CompareAndSwap(ctx, "a", 0, nil); err != nil {
		t.Fatal(err)
	}
	// Restored by hand, without markers: one child is a register, not a marker.
	operator := raw(t, server)
	for _, path := range []string{"/shop/hand", "/shop/hand/b"} {
		if _, err := operator.Create(path, []byte("0000000000000007\nv"), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	list := func(want ...string) {
		t.Helper()
		entries, err := s.List(ctx, "")
		var got []string
		for _, e := range entries {
			got = append(got, e.Key)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("listed %q, %v; want %q", got, err, want)
		}
	}
	list("a", "hand", "hand/b")
	if _, err := s.CompareAndSwap(ctx, "a/b", 0, nil); err != nil {
		t.Fatal(err)
	}
	list("a", "a/b", "hand", "hand/b")
	for _, key := range []string{"hand", "a"} {
		e, err := s.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CompareAndSwap(ctx, key, e.Revision, []byte("w")); err != nil {
			t.Error(err)
		}
		list("a", "a/b", "hand", "hand/b")
	}
}
