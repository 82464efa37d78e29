package issuing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// config reads a configuration.
func config(t *testing.T, text string) settings.Config {
	t.Helper()
	cfg, err := settings.Parse("firn.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// opened is a service over a store, closed at the end of the test.
func opened(t *testing.T, st store.Store, text string, change ...func(*issuing.Config)) *issuing.Service {
	t.Helper()
	cfg := issuing.Config{Settings: config(t, text), Store: st, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()}
	for _, c := range change {
		c(&cfg)
	}
	s, err := issuing.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// local is the caller on this machine.
func local(t *testing.T, f *issuing.Front) *access.Caller {
	t.Helper()
	caller, err := f.Identify(access.Credentials{Local: true})
	if err != nil {
		t.Fatal(err)
	}
	return caller
}

// take requests ids as a front end does.
func take(t *testing.T, f *issuing.Front, caller *access.Caller, name string, n int, b *issuing.Batch) error {
	t.Helper()
	_, err := f.Issue(t.Context(), caller, issuing.Ask{Namespace: name, Count: n}, b)
	return err
}

// goroutines waits until at most n goroutines run, and returns their number.
func goroutines(n int) int {
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > n && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	return runtime.NumGoroutine()
}

// seen records the ids that callers of a namespace got.
type seen struct {
	name  string
	mu    sync.Mutex
	set   idset.Set
	texts map[string]bool
	last  atomic.Int64 // of a sequence
	bad   atomic.Int64
}

func (s *seen) add(b *issuing.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set.Add(b.IDs)
	for _, text := range b.Texts {
		if s.texts[text] {
			s.bad.Add(1)
		}
		s.texts[text] = true
	}
}

func TestApplyUnderLoadFailsNoRequestAndRepeatsNoID(t *testing.T) {
	before := runtime.NumGoroutine()
	folder := t.TempDir()
	key := filepath.Join(folder, "keys")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const one, two = "1:000102030405060708090a0b0c0d0e0f\n", "2:0f0e0d0c0b0a09080706050403020100\n"
	write(key, one)
	// What changes: the pool's generator, steps, another's presence, a prefix.
	text := func(i int) string {
		return fmt.Sprintf(`
namespaces:
  orders: {ahead: %dms}
  users:  {ahead: %[1]dms}
  fixed:  {pool: fixed}
  veiled: {pool: fixed, veil: {key_file: %q, bits: 63, version_bits: 2}}
  items:  {kind: segment, min_step: %d, max_step: 100000}
  same:   {kind: segment}
  txn:    {kind: sequence, from: %d}
  bills:  {kind: number, template: "B{yyyy}-{n:9}"}
  visits: {kind: uuid, prefix: %s}
%s
`, 10+i%2, key, 10+i%3, 1+i%2, []string{"visit", "call"}[i%2], []string{"", "  extra: {kind: segment}"}[i%2])
	}
	mem := memstore.New(nil)
	s := opened(t, mem, text(0))
	f := s.Front(issuing.RESP)
	caller := local(t, f)
	all := map[string]*seen{}
	for _, name := range []string{"orders", "users", "fixed", "veiled", "items", "same", "txn", "bills", "visits"} {
		all[name] = &seen{name: name, texts: map[string]bool{}}
	}
	all["users"] = all["orders"] // both use one pool: their ids are never equal
	stop := make(chan struct{})
	var group sync.WaitGroup
	var requests atomic.Int64
	for name, got := range all {
		for range 1 + len(name)%2 { // two of some
			group.Go(func() {
				var b issuing.Batch
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					greatest := got.last.Load()
					if err := take(t, f, caller, name, 1+n%7, &b); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					requests.Add(1)
					if name == "txn" {
						if int64(b.IDs[0]) <= greatest {
							t.Errorf("a sequence gave %d after %d", b.IDs[0], greatest)
						}
						last := int64(b.IDs[len(b.IDs)-1])
						for was := got.last.Load(); was < last && !got.last.CompareAndSwap(was, last); was = got.last.Load() {
						}
					}
					got.add(&b)
				}
			})
		}
	}
	for i := 1; i <= 15; i++ {
		write(key, one+[]string{"", two}[i%2])
		if err := s.Apply(t.Context(), config(t, text(i))); err != nil {
			t.Errorf("configuration %d: %v", i, err)
		}
		for goal := requests.Load() + 200; requests.Load() < goal && !t.Failed(); {
			runtime.Gosched()
		}
	}
	close(stop)
	group.Wait()
	for name, got := range all {
		if got.set.Duplicates() != 0 || got.bad.Load() != 0 || got.set.Added()+int64(len(got.texts)) == 0 {
			t.Errorf("%s: %d ids, %d duplicates", name, got.set.Added()+int64(len(got.texts)), got.set.Duplicates()+got.bad.Load())
		}
	}
	t.Logf("%d requests, %d ids of orders", requests.Load(), all["orders"].set.Added())
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := goroutines(before); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	for _, pool := range []string{"default", "fixed"} {
		p, err := lease.Inspect(t.Context(), mem, pool)
		if err != nil {
			t.Fatal(err)
		}
		for _, slot := range p.Slots {
			if !slot.Free {
				t.Errorf("pool %s: worker %d was not given back", pool, slot.Worker)
			}
		}
	}
}

func TestARefusedConfigurationChangesNothing(t *testing.T) {
	mem := memstore.New(nil)
	s := opened(t, mem, "namespaces:\n  orders: {}\n  items: {kind: segment}\n  txn: {kind: sequence}\n  pay: {kind: serial, zone: \"+08:00\"}\nlimits: {batch: 7}\n")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	var b issuing.Batch
	for _, name := range []string{"orders", "items", "txn"} {
		if err := take(t, f, caller, name, 1, &b); err != nil {
			t.Fatal(err)
		}
	}
	before, workers := runtime.NumGoroutine(), live(t, mem, "default")
	for text, want := range map[string]string{
		// a new pool and a new segment first, then what fails: they are given back
		"{a: {kind: segment}, b: {pool: other}, orders: {}, z: {veil: {key_file: /nowhere/key}}}": "configuration firn.yaml: line 1: namespaces.z.veil.key_file: key file: open /nowhere/key",
		"{b: {pool: other}, orders: {layout: twitter}}":                                           "layout",
		"{items: {kind: sequence}}":                                                               "namespaces.items.kind: it cannot change from segment to sequence",
		"{txn: {kind: segment}}":                                                                  "namespaces.txn.kind: it cannot change from sequence to segment",
		"{orders: {pool: other}}":                                                                 "namespaces.orders.pool: it cannot change from default to other",
		"{items: {kind: segment, offset: 1, stride: 2}}":                                          "namespaces.items.offset: it cannot change from 0 to 1",
		"{items: {kind: segment, stride: 2}}":                                                     "namespaces.items.stride: it cannot change from 1 to 2",
		"{pay: {kind: serial}}":                                                                   "namespaces.pay.zone: it cannot change from +08:00 to UTC while the namespace is served, since its ids could repeat earlier ones: use a new name; a restart permits it, if you are sure that they cannot",
		"{orders: {worker: 5}}":                                                                   "settings of a pool with a fixed worker cannot change",
	} {
		err := s.Apply(t.Context(), config(t, "namespaces: "+text+"\nlimits: {batch: 5}\nanonymous: [x]\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if f.Limits().MaxBatch() != 7 {
			t.Errorf("%s: the limit is %d", text, f.Limits().MaxBatch())
		}
		for _, name := range []string{"orders", "items", "txn"} {
			if err := take(t, f, caller, name, 3, &b); err != nil {
				t.Errorf("%s: then %s: %v", text, name, err)
			}
		}
	}
	if n := goroutines(before); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	if now := live(t, mem, "default"); now != workers {
		t.Errorf("%d workers are held, %d before", now, workers)
	}
	if n := live(t, mem, "other"); n != 0 {
		t.Errorf("%d workers of a pool that is not served are held", n)
	}
}

// live returns how many workers of a pool are held.
func live(t *testing.T, st store.Store, pool string) (n int) {
	t.Helper()
	p, err := lease.Inspect(t.Context(), st, pool)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // joining may have ended before it made the record
		t.Fatal(err)
	}
	for _, slot := range p.Slots {
		if !slot.Free {
			n++
		}
	}
	return n
}

func TestARemovedNamespaceIsUnknownAtOnce(t *testing.T) {
	s := opened(t, memstore.New(nil), "namespaces: {orders: {}, items: {kind: segment}}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	var b issuing.Batch
	removing := issuing.Ask{Namespace: "items", Count: 1, Fits: func(*issuing.Namespace) error {
		return s.Apply(t.Context(), config(t, "namespaces: {orders: {}}"))
	}}
	if _, err := f.Issue(t.Context(), caller, removing, &b); failure.Of(err).Code != "unknown_namespace" {
		t.Errorf("a request that found it before: %v", err)
	}
	if err := take(t, f, caller, "items", 1, &b); failure.Of(err).Code != "unknown_namespace" {
		t.Error(err)
	}
}

func TestARequestInFlightIsAnsweredInTheFormThatItExpects(t *testing.T) {
	s := opened(t, memstore.New(nil), "namespaces: {orders: {ahead: 10ms}}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	// meanwhile is a request during which configurations come into force.
	meanwhile := func(configurations ...string) issuing.Ask {
		return issuing.Ask{Namespace: "orders", Count: 2, Fits: func(*issuing.Namespace) error {
			for _, text := range configurations {
				if err := s.Apply(t.Context(), config(t, "namespaces: {orders: {"+text+"}}")); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	var b issuing.Batch
	if _, err := f.Issue(t.Context(), caller, meanwhile("ahead: 20ms", "ahead: 30ms"), &b); err != nil || len(b.IDs) != 2 {
		t.Errorf("%v, %v", b, err)
	}
	_, err := f.Issue(t.Context(), caller, meanwhile("ahead: 40ms, prefix: ord"), &b)
	if f := failure.Of(err); f.Code != "namespace_changed" || f.Retry != time.Second {
		t.Errorf("%v", err)
	}
	if err := take(t, f, caller, "orders", 2, &b); err != nil || len(b.Texts) != 2 || len(b.IDs) != 0 {
		t.Errorf("%v, %v", b, err)
	}
}

// slowStore holds the first write of a pool, and later ones, until the gate opens.
type slowStore struct {
	*memstore.Store
	prefix  string
	entered chan struct{}
	gate    chan struct{}
	once    sync.Once
}

func (s *slowStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if strings.HasPrefix(key, s.prefix) {
		s.once.Do(func() { close(s.entered) })
		<-s.gate
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

func TestRequestsAreServedWhileAConfigurationWaitsForTheStore(t *testing.T) {
	slow := &slowStore{Store: memstore.New(nil), prefix: "firn/other/", entered: make(chan struct{}), gate: make(chan struct{})}
	s := opened(t, slow, "limits: {batch: 10}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	applied := make(chan error, 1)
	go func() { applied <- s.Apply(t.Context(), config(t, "namespaces: {a: {}, b: {pool: other}}")) }()
	<-slow.entered
	var b issuing.Batch
	for _, name := range []string{"a", "new"} { // one is made on first use meanwhile
		if err := take(t, f, caller, name, 3, &b); err != nil {
			t.Error(err)
		}
	}
	close(slow.gate)
	if err := <-applied; err != nil {
		t.Fatal(err)
	}
	if err := take(t, f, caller, "b", 3, &b); err != nil {
		t.Error(err)
	}
	if _, err := f.Find(caller, issuing.Ask{Namespace: "new"}); failure.Of(err).Code != "unknown_namespace" {
		t.Error(err)
	}
}

// meetingStore holds the first write of each of some pools until all pools have made theirs.
type meetingStore struct {
	*memstore.Store
	missing atomic.Int64
	met     chan struct{}
	seen    sync.Map // pools by prefix
}

func (s *meetingStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	pool, _, _ := strings.Cut(strings.TrimPrefix(key, "firn/"), "/")
	if _, again := s.seen.LoadOrStore(pool, true); !again && s.missing.Add(-1) == 0 {
		close(s.met)
	}
	select {
	case <-s.met:
	case <-ctx.Done():
		return store.Entry{}, context.Cause(ctx)
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

func TestPoolsAreOpenedTogether(t *testing.T) {
	meeting := &meetingStore{Store: memstore.New(nil), met: make(chan struct{})}
	meeting.missing.Store(4)
	s := opened(t, meeting, "namespaces: {a: {pool: a}, b: {pool: b}, c: {pool: c}, d: {pool: d}, again: {pool: a}}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	var b issuing.Batch
	for _, name := range []string{"a", "b", "c", "d", "again"} {
		if err := take(t, f, caller, name, 3, &b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// brokenStore fails the writes of a pool, either applied or not applied.
type brokenStore struct {
	*memstore.Store
	prefix  string
	applies bool
}

func (s *brokenStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if !strings.HasPrefix(key, s.prefix) {
		return s.Store.CompareAndSwap(ctx, key, old, value)
	}
	if s.applies {
		if _, err := s.Store.CompareAndSwap(ctx, key, old, value); err != nil {
			return store.Entry{}, err
		}
	}
	return store.Entry{}, fmt.Errorf("the answer was lost: %w", store.ErrUnavailable)
}

func TestAFailingStoreLeavesTheOldConfigurationInForce(t *testing.T) {
	for _, applies := range []bool{false, true} {
		broken := &brokenStore{Store: memstore.New(nil), prefix: "firn/other/", applies: applies}
		s := opened(t, broken, "namespaces: {orders: {}}")
		f := s.Front(issuing.HTTP)
		caller := local(t, f)
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := s.Apply(ctx, config(t, "namespaces: {orders: {}, new: {pool: other}}"))
		cancel()
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "namespace new: ") {
			t.Errorf("%v", err)
		}
		var b issuing.Batch
		if err := take(t, f, caller, "orders", 5, &b); err != nil {
			t.Error(err)
		}
		if n := goroutines(before); n > before {
			t.Errorf("%d goroutines, %d before", n, before)
		}
		broken.prefix = "none"
		if err := s.Apply(t.Context(), config(t, "namespaces: {orders: {}, new: {pool: other}}")); err != nil {
			t.Error(err)
		}
		if err := take(t, f, caller, "new", 5, &b); err != nil {
			t.Error(err)
		}
	}
}

func TestNamespacesMadeOnFirstUseOutliveAConfigurationWithoutThem(t *testing.T) {
	s := opened(t, memstore.New(nil), "limits: {batch: 10}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	var b issuing.Batch
	if err := take(t, f, caller, "mine", 10, &b); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), config(t, "limits: {batch: 20, rate: {mine: 15/s}}")); err != nil {
		t.Fatal(err)
	}
	if err := take(t, f, caller, "mine", 20, &b); err != nil {
		t.Errorf("above a second's worth: %v", err)
	}
	if err := take(t, f, caller, "mine", 1, &b); failure.Of(err).Status != 429 {
		t.Errorf("in debt: %v", err)
	}
	if list := list(t, f, caller); len(list) != 1 || list[0].Namespace != "mine" {
		t.Errorf("%+v", list)
	}
}

func TestNamespacesMadeWhileAConfigurationIsAppliedAreKept(t *testing.T) {
	s := opened(t, memstore.New(nil), "limits: {batch: 10}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	const names = 2000
	var made atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		defer made.Store(true)
		var b issuing.Batch
		for i := range names {
			if err := take(t, f, caller, fmt.Sprint("n", i), 1, &b); err != nil {
				t.Error(err)
			}
		}
	})
	for i := 0; !made.Load(); i++ {
		if err := s.Apply(t.Context(), config(t, fmt.Sprintf("limits: {batch: %d}", 10+i%2))); err != nil {
			t.Error(err)
		}
	}
	group.Wait()
	if n := len(list(t, f, caller)); n != names {
		t.Errorf("%d namespaces of %d", n, names)
	}
}

func TestUnchangedPartsKeepRunning(t *testing.T) {
	s := opened(t, memstore.New(nil), "namespaces: {orders: {}, items: {kind: segment}, txn: {kind: sequence}}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	state := func(name string) issuing.State {
		t.Helper()
		var b issuing.Batch
		if err := take(t, f, caller, name, 1, &b); err != nil {
			t.Fatal(err)
		}
		got, err := f.State(caller, name)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	worker := state("orders").Worker
	state("items")
	state("txn")
	if err := s.Apply(t.Context(), config(t, "namespaces: {orders: {prefix: ord}, items: {kind: segment}, txn: {kind: sequence}, more: {}}")); err != nil {
		t.Fatal(err)
	}
	if now := state("orders").Worker; now != worker {
		t.Errorf("worker %d, and %d before", now, worker)
	}
	if st := state("items").Segment; st.Fetches != 1 {
		t.Errorf("%+v", st)
	}
	if st := state("txn").Sequence; st.Issued != 2 {
		t.Errorf("%+v", st)
	}
}

func TestNothingIsAppliedAfterClose(t *testing.T) {
	mem := memstore.New(nil)
	s := opened(t, mem, "namespaces: {a: {}}")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), config(t, "namespaces: {a: {ahead: 1s}}")); !errors.Is(err, firn.ErrClosed) {
		t.Error(err)
	}
	if n := live(t, mem, "default"); n != 0 {
		t.Errorf("%d workers are held", n)
	}
}

// lines is a log that a test can read.
type lines struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{} // closed by the next write; nil without a waiter
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return l.buf.Write(p)
}

// await waits until the log has a text: a line may follow the answer to the caller.
func (l *lines) await(ctx context.Context, text string) error {
	for {
		l.mu.Lock()
		found := strings.Contains(l.buf.String(), text)
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("the log lacks %q: %s", text, l)
		}
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Without namespaces in the configuration, served ones continue as if made on first use:
// this must not change their kind.
func TestAConfigurationWithoutNamespacesDoesNotChangeTheirKind(t *testing.T) {
	for text, want := range map[string]string{
		"namespaces: {orders: {kind: segment}}":                      "namespaces.orders.kind: it cannot change from segment to snowflake",
		"namespaces: {orders: {pool: other}}":                        "namespaces.orders.pool: it cannot change from other to default",
		"namespaces: {orders: {veil: {key_env: KEYS}}}":              "namespaces.orders.veil: it cannot",
		"namespaces: {a: {kind: uuid}, orders: {}}":                  "namespaces.a.kind:",
		"namespaces: {orders: {prefix: ord}, users: {layout: firn}}": "",
	} {
		t.Setenv("KEYS", "1:000102030405060708090a0b0c0d0e0f")
		s := opened(t, memstore.New(nil), text)
		err := s.Apply(t.Context(), config(t, "limits: {batch: 20}"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Ids veiled with two keys may be equal, unless version bits tell the keys apart.
func TestAKeyThatCouldRepeatVeilsIsRefused(t *testing.T) {
	const one, two, three = "1:000102030405060708090a0b0c0d0e0f\n", "2:0f0e0d0c0b0a09080706050403020100\n", "3:ff0e0d0c0b0a09080706050403020100\n"
	for _, c := range []struct {
		bits        int // for versions
		first, then string
		refused     bool
	}{
		{0, one, one, false}, {0, one, two, true}, {0, one, strings.Replace(one, "00", "ff", 1), true},
		{1, one, one + two, false}, {1, one + two, two, false}, {1, two, two + three, false}, {1, one + two, two + three, true}, {2, one + two, two + three, false},
	} {
		t.Setenv("KEYS", c.first)
		text := fmt.Sprintf("namespaces: {orders: {kind: segment, veil: {key_env: KEYS, bits: 24, version_bits: %d}}}", c.bits)
		s := opened(t, memstore.New(nil), text)
		f := s.Front(issuing.HTTP)
		got := &seen{}
		var b issuing.Batch
		made := func() {
			if err := take(t, f, local(t, f), "orders", 5000, &b); err != nil {
				t.Fatal(err)
			}
			got.add(&b)
		}
		made()
		t.Setenv("KEYS", c.then)
		err := s.Apply(t.Context(), config(t, text))
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "namespace orders: veil: the newest key") {
			t.Errorf("%+v: %v", c, err)
		}
		made()
		if n := got.set.Duplicates(); n != 0 {
			t.Errorf("%+v: %d ids twice", c, n)
		}
	}
}

// With one version bit the third key has the version of the first, whatever was served in
// between.
func TestAnOldKeysVersionIsNotReused(t *testing.T) {
	const one, two, three, four = "1:000102030405060708090a0b0c0d0e0f\n", "2:0f0e0d0c0b0a09080706050403020100\n", "3:ff0e0d0c0b0a09080706050403020100\n", "4:fe0e0d0c0b0a09080706050403020100\n"
	t.Setenv("KEYS", one)
	text := "namespaces: {orders: {kind: segment, veil: {key_env: KEYS, bits: 24, version_bits: 1}}}"
	s := opened(t, memstore.New(nil), text)
	f := s.Front(issuing.HTTP)
	got := &seen{}
	for _, c := range []struct {
		keys    string
		refused bool
	}{{one + two, false}, {two, false}, {two + three, true}, {one + two, false}, {one, false}, {three, true}, {four, true}} {
		var b issuing.Batch
		if err := take(t, f, local(t, f), "orders", 20_000, &b); err != nil {
			t.Fatal(err)
		}
		got.add(&b)
		t.Setenv("KEYS", c.keys)
		if err := s.Apply(t.Context(), config(t, text)); (err != nil) != c.refused {
			t.Errorf("%q: %v", c.keys, err)
		}
	}
	if n := got.set.Duplicates(); n != 0 {
		t.Errorf("%d ids twice", n)
	}
}

// A key listed beside the newest was in use before, on this server or another.
func TestAListedKeysVersionIsNotReused(t *testing.T) {
	const one, two, three = "1:000102030405060708090a0b0c0d0e0f\n", "2:0f0e0d0c0b0a09080706050403020100\n", "3:ff0e0d0c0b0a09080706050403020100\n"
	t.Setenv("KEYS", two)
	text := "namespaces: {orders: {kind: segment, veil: {key_env: KEYS, bits: 24, version_bits: 1}}}"
	s := opened(t, memstore.New(nil), text)
	for _, c := range []struct {
		keys    string
		refused bool
	}{{one + two, false}, {two, false}, {two + three, true}} {
		t.Setenv("KEYS", c.keys)
		if err := s.Apply(t.Context(), config(t, text)); (err != nil) != c.refused {
			t.Errorf("%q: %v", c.keys, err)
		}
	}
}

// In a serial with a check digit, the number is one digit further left.
func TestTheCheckOfServedSerialsDoesNotChange(t *testing.T) {
	text := func(check string) string {
		return `namespaces: {pay: {kind: serial, layout: "31/0/10/22,unit=1h,epoch=2026-01-01", start: zero, worker: 0` + check + "}}"
	}
	s := opened(t, memstore.New(nil), text(", check: luhn"))
	f := s.Front(issuing.HTTP)
	got := &seen{texts: map[string]bool{}}
	for _, check := range []string{"", ", check: mod97", ", check: luhn"} {
		err := s.Apply(t.Context(), config(t, text(check)))
		if check != ", check: luhn" && (err == nil || !strings.Contains(err.Error(), "namespaces.pay.check: it cannot change from luhn to ")) {
			t.Errorf("%q: %v", check, err)
		}
		for range 10 {
			var b issuing.Batch
			if err := take(t, f, local(t, f), "pay", 10_000, &b); err != nil {
				t.Fatal(err)
			}
			got.add(&b)
		}
	}
	if n := got.bad.Load(); n != 0 {
		t.Errorf("%d serials twice", n)
	}
}

func TestTheTemplateOfServedNumbersDoesNotChange(t *testing.T) {
	s := opened(t, memstore.New(nil), "namespaces: {bills: {kind: number, template: 'B{yyyy}1{n:3}'}}")
	f := s.Front(issuing.HTTP)
	got := &seen{texts: map[string]bool{}}
	for range 2 {
		var b issuing.Batch
		if err := take(t, f, local(t, f), "bills", 400, &b); err != nil {
			t.Fatal(err)
		}
		got.add(&b)
		err := s.Apply(t.Context(), config(t, "namespaces: {bills: {kind: number, template: 'B{yyyy}{n:4}'}}"))
		if err == nil || !strings.Contains(err.Error(), "namespaces.bills.template: it cannot change from B{yyyy}1{n:3} to B{yyyy}{n:4} while the namespace is served, since its ids could repeat earlier ones: use a new name (a restart does not help: the store keeps the template)") {
			t.Error(err)
		}
	}
	if n := got.bad.Load(); n != 0 {
		t.Errorf("%d numbers twice", n)
	}
}

// pairedStore makes two namespaces wait for each other when they give ranges back.
type pairedStore struct {
	*memstore.Store
	closing atomic.Bool
	both    sync.WaitGroup
}

func (s *pairedStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if s.closing.Load() && strings.HasPrefix(key, "firn/counter:") {
		s.both.Done()
		met := make(chan struct{})
		go func() { s.both.Wait(); close(met) }()
		select {
		case <-met:
		case <-ctx.Done():
			return store.Entry{}, ctx.Err()
		}
	}
	return s.Store.CompareAndSwap(ctx, key, old, value)
}

// All share one timeout; with a slow store, one after the other would exceed it.
func TestNamespacesGiveBackTogether(t *testing.T) {
	st := &pairedStore{Store: memstore.New(nil)}
	s := opened(t, st, "namespaces: {a: {kind: segment}, b: {kind: segment}}")
	f := s.Front(issuing.HTTP)
	caller := local(t, f)
	var b issuing.Batch
	for _, name := range []string{"a", "b"} {
		if err := take(t, f, caller, name, 1, &b); err != nil {
			t.Fatal(err)
		}
	}
	st.both.Add(2)
	st.closing.Store(true)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	st.closing.Store(false)
}
