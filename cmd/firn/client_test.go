package main

import (
	"bufio"
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

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store/storetest/servers"
)

// A served is a process of firn serve. It keeps its addresses after a restart.
type served struct {
	t       *testing.T
	folder  string
	address string
	resp    string // or off
	cmd     *exec.Cmd
}

// serving starts HTTP servers that share one store, and returns them by their URLs.
func serving(t *testing.T, count int) map[string]*served {
	folder := configured(t, "namespaces: {orders: {}, txn: {kind: sequence}, visits: {kind: uuid, prefix: visit}}", sqliteStore(t))
	all := map[string]*served{}
	for len(all) < count {
		s := startServed(t, folder, "off")
		all["http://"+s.address] = s
	}
	return all
}

// sqliteStore creates a store in a SQLite file, and returns its URL.
func sqliteStore(t *testing.T) string {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "firn.db")
	s, err := storeurl.Create(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return url
}

// configured returns a folder with a configuration file.
func configured(t *testing.T, namespaces, store string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "firn.yaml"), []byte("store: "+store+"\n"+namespaces+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// startServed starts a server with the configuration in folder. It is killed when the test ends.
func startServed(t *testing.T, folder, resp string) *served {
	t.Helper()
	s := &served{t: t, folder: folder, address: fmt.Sprintf("127.0.0.1:%d", servers.FreePort(t)), resp: resp}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts the process and returns once it serves.
func (s *served) start() {
	s.t.Helper()
	s.cmd = firnCommand(context.Background(), s.folder, "serve", "--config", filepath.Join(s.folder, "firn.yaml"), "--http", s.address, "--resp", s.resp)
	s.cmd.Stderr = nil
	log, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(log); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), "msg=serving") {
			go func() { // read the rest of the log, so that the process does not block
				for lines.Scan() {
				}
			}()
			return
		}
	}
	s.t.Fatalf("a server did not start:\n%s", said.String())
}

func (s *served) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

func (s *served) kill() {
	if s.cmd.ProcessState != nil {
		return
	}
	s.signal(syscall.SIGKILL)
	if err := s.cmd.Wait(); s.cmd.ProcessState == nil {
		s.t.Error(err)
	}
}

// TestCallersOfTheClientSeeNoErrorWhileServersFail kills one of three servers, pauses another,
// and kills all of them for less time than the buffer lasts.
func TestCallersOfTheClientSeeNoErrorWhileServersFail(t *testing.T) {
	all := serving(t, 3)
	var addresses []string
	for address := range all {
		addresses = append(addresses, address)
	}
	back := make(chan string, 100)
	const size = 60_000
	c, err := client.New(client.Config{
		Servers: addresses, Wait: time.Minute, Timeout: time.Second, Buffer: client.Buffer{Min: size, Max: size},
		Hooks: client.Hooks{Server: func(server string, err error) {
			if err == nil {
				back <- server
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	orders, err := c.IDs("orders")
	if err != nil {
		t.Fatal(err)
	}
	first, second := all[c.State().Servers[0].Server], all[c.State().Servers[1].Server]

	var set idset.Set
	last := make([]firn.ID, 4)
	take := func(what string, each int) { // with four callers
		t.Helper()
		var group sync.WaitGroup
		for i := range last {
			group.Go(func() {
				ids := make([]firn.ID, each)
				for n := range ids {
					id, err := orders.Next(t.Context())
					if err != nil || id <= last[i] {
						t.Errorf("%s: %d after %d: %v", what, id, last[i], err)
						return
					}
					ids[n], last[i] = id, id
				}
				set.Add(ids)
			})
		}
		group.Wait()
	}
	returned := func(s *served) {
		t.Helper()
		for timeout := time.After(time.Minute); ; {
			select {
			case address := <-back:
				if address == "http://"+s.address {
					return
				}
			case <-timeout:
				t.Fatalf("the client did not return to a server within a minute: %+v", c.State().Servers)
			}
		}
	}
	ordered := strictly(t, c)
	state := func() client.NamespaceState { return c.State().Namespaces[0] } // orders: the list is sorted by name

	take("all servers run", 10_000)
	first.kill()
	take("one is killed", 20_000)
	second.signal(syscall.SIGSTOP)
	take("another is paused too", 20_000)
	second.signal(syscall.SIGCONT)
	returned(second)
	first.start()
	returned(first)
	take("all run again", 10_000)
	ordered()

	for deadline := time.Now().Add(time.Minute); state().Buffered < size*3/4; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the buffer is not filled: %+v", state())
		}
	}
	for _, s := range all {
		s.kill()
	}
	waits := state().Waits
	take("all are killed", size/2/4)
	if s := state(); s.Waits != waits || s.Buffered == 0 {
		t.Errorf("callers waited although ids were buffered: %+v", s)
	}
	for _, s := range all {
		s.start()
	}
	take("all are restarted", 20_000)
	if set.Duplicates() != 0 || set.Added() == 0 {
		t.Errorf("%d duplicates among %d ids: %v", set.Duplicates(), set.Added(), set.Examples())
	}
	t.Logf("%d ids; %+v", set.Added(), state())

	visits, err := c.Texts("visits")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := visits.Next(t.Context()); err != nil || !strings.HasPrefix(id, "visit_") {
		t.Errorf("%q, %v", id, err)
	}
}

// strictly takes ids of a sequence until end is called. Each must be greater than the one before,
// whichever server issued it.
func strictly(t *testing.T, c *client.Client) (end func()) {
	t.Helper()
	txn, err := c.IDs("txn")
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var last firn.ID
		for n := 0; ; n++ {
			select {
			case <-stop:
				t.Logf("%d ids of a sequence", n)
				return
			default:
			}
			ids, err := txn.Fetch(context.Background(), 1)
			if err != nil || ids[0] <= last {
				t.Errorf("sequence: %d after %d: %v", ids, last, err)
				return
			}
			last = ids[0]
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
