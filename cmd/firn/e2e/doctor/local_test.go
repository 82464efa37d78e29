package doctor

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/cli"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest/servers"
)

func init() {
	cases["files"] = func(d *doctor) {
		d.finds("bad", "persistence", "memory: exists only in this process", "--store", "memory:")
		url := "file:" + filepath.Join(d.TempDir(), "firn")
		d.firn("store", "make", url)
		d.finds("good", "write", "is confirmed", "--store", url)
		d.finds("good", "file", "on a disk of this machine", "--store", url)
		dir, err := os.MkdirTemp("/dev/shm", "firn-")
		d.must(err)
		d.Cleanup(func() { d.must(os.RemoveAll(dir)) })
		url = "sqlite:" + filepath.Join(dir, "firn.db")
		d.firn("store", "make", url)
		d.finds("doubtful", "file", "on tmpfs: ", "--store", url)
	}
	cases["pools"] = func(d *doctor) {
		url := "file:" + filepath.Join(d.TempDir(), "firn")
		d.firn("store", "make", url)
		d.finds("bad", "pool", "nope does not exist", "--store", url, "--pool", "nope")

		s, err := storeurl.Open(d.Context(), url)
		d.must(err)
		defer s.Close()
		d.join(s, "narrow", 4, firntest.NewClock(time.Now()))
		d.finds("good", "pool", "narrow: 1 of 16 workers is held", "--store", url, "--pool", "narrow")
		for range 14 {
			d.join(s, "narrow", 4, firntest.NewClock(time.Now()))
		}
		d.finds("doubtful", "pool", "fewer than a tenth are left", "--store", url, "--pool", "narrow")
		d.join(s, "narrow", 4, firntest.NewClock(time.Now()))
		d.finds("bad", "pool", "newcomers are refused", "--store", url, "--pool", "narrow")
		record, err := s.Get(d.Context(), "firn/narrow/pool")
		d.must(err)
		_, err = s.CompareAndSwap(d.Context(), record.Key, record.Revision, bytes.Replace(record.Value, []byte(`"open":true`), []byte(`"open":false`), 1)) // as a holder does that finds its slot gone
		d.must(err)
		d.finds("doubtful", "pool", "narrow: it is closed, as its store may have forgotten something", "--store", url, "--pool", "narrow")

		wrong := firntest.NewClock(time.Now().Add(time.Hour))
		d.join(clocked{s, wrong}, "ahead", 4, wrong)
		d.finds("bad", "pool", "all claims begin at", "--store", url, "--pool", "ahead")
		right := firntest.NewClock(time.Now())
		strict, err := lease.Open(d.Context(), lease.Config{Store: clocked{s, right}, Pool: "strict", Strict: 21 * time.Minute, Generator: firn.Config{Time: right}})
		d.must(err)
		defer strict.Close(d.Context())
		d.finds("good", "pool", "it is strict: a claim waits 21m0s", "--store", url, "--pool", "strict")
	}
	cases["configuration"] = func(d *doctor) {
		url := "file:" + filepath.Join(d.TempDir(), "firn")
		d.firn("store", "make", url)
		d.finds("good", "access", "callers on this machine may do everything", "--store", url, "--config", d.file("namespaces: {orders: {}}"))
		d.finds("doubtful", "access", "requests from other machines", "--store", url, "--config", d.file("listen: {http: 0.0.0.0:7070}"))
		const token = `tokens: [{name: shop, sha256: "9ba7e8c4e004487a8ee04d50850cd9c8b54623cf7dee8c10fd9c4543f8fea87e", namespaces: [order]}]`
		config := d.file("listen: {http: 0.0.0.0:7070}\nnamespaces: {orders: {kind: segment}}\n" + token)
		d.finds("doubtful", "tls", "unencrypted", "--store", url, "--config", config)
		d.finds("doubtful", "access", "allows no ids", "--store", url, "--config", config)
		d.finds("bad", "namespace", "which must exist: find the greatest id that anybody received, and raise the counter to it, or to 0 if it is new (firn raise; in Go: Raise) → firn raise orders LAST --config FILE; LAST is 0 for a new counter",
			"--store", url, "--config", d.file("namespaces: {orders: {kind: segment, must_exist: true}}"))
	}
	cases["latency"] = func(d *doctor) {
		server := servers.Redis(d)
		slow := servers.NewProxy(d, server.Addr(), func(server io.Writer, client io.Reader) {
			for b := make([]byte, 64<<10); ; {
				n, err := client.Read(b)
				if err != nil {
					return
				}
				time.Sleep(260 * time.Millisecond) // the network
				if _, err := server.Write(b[:n]); err != nil {
					return
				}
			}
		})
		d.finds("doubtful", "latency", "use a store that is nearer", "--store", "redis://"+slow.Addr())
	}
}

// clocked is a store whose server has a clock of the test.
type clocked struct {
	store.Store
	clock *firntest.Clock
}

func (c clocked) Traits() store.Traits { return store.Traits{Clock: c} }

func (c clocked) Now(context.Context) (time.Time, error) { return c.clock.Wall(), nil }

// join takes a worker of a pool, until the case ends.
func (d *doctor) join(s store.Store, pool string, workerBits int, clock *firntest.Clock) {
	d.Helper()
	layout, err := firn.NewLayout(firn.LayoutConfig{WorkerBits: workerBits, SequenceBits: 12, TimeBits: 41, Unit: time.Millisecond, Epoch: firn.DefaultLayout().Epoch()})
	d.must(err)
	l, err := lease.Open(d.Context(), lease.Config{Store: s, Pool: pool, Generator: firn.Config{Layout: layout, Time: clock}})
	d.must(err)
	d.Cleanup(func() { _ = l.Close(d.Context()) }) // the store may be closed
}

// file writes a configuration.
func (d *doctor) file(text string) string {
	d.Helper()
	name := filepath.Join(d.TempDir(), "firn.yaml")
	d.must(os.WriteFile(name, []byte(text+"\n"), 0o600))
	return name
}

// firn runs a command that must succeed.
func (d *doctor) firn(args ...string) {
	d.Helper()
	var out strings.Builder
	if status := cli.Main(args, strings.NewReader(""), &out, &out); status != 0 {
		d.Fatalf("firn %q exits with %d: %s", args, status, out.String())
	}
}

func appendTo(name, text string) error {
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(old, text...), 0o600)
}
