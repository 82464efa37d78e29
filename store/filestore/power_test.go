package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn/store"
)

// A weakDisk guarantees only the minimum: after a power failure, unsynced data is there, missing, or
// partly there, each file and each name by itself.
type weakDisk struct {
	random       *rand.Rand
	names, named map[string]*weakFile // now, and at the folder's last sync
	held         *process

	// Steps that a careless store would leave out.
	noFileSync, noFolderSync, oneFile bool
}

type weakFile struct {
	text, synced []byte
	lost         bool // a sync of the text failed: later ones report success, as in Linux
}

// A process uses the disk until it is killed.
type process struct {
	*weakDisk
	steps  int   // remaining
	fails  error // result of the last step; nil: the process is killed
	killed bool
}

var errKilled = errors.New("killed")

// step is one system call.
func (p *process) step() error {
	if p.killed {
		return errKilled
	}
	if p.steps--; p.steps == 0 {
		if p.fails != nil {
			return p.fails
		}
		p.killed = true
		if p.held == p {
			p.held = nil // the system releases its lock
		}
		return errKilled
	}
	return nil
}

// cut is a power failure.
func (d *weakDisk) cut() {
	d.held = nil
	names := map[string]*weakFile{}
	for _, name := range slices.Sorted(maps.Keys(mapUnion(d.names, d.named))) { // in the same order for each seed
		f := d.names[name]
		if d.random.IntN(2) == 0 {
			f = d.named[name]
		}
		if f == nil {
			continue
		}
		var kept []byte
		switch d.random.IntN(4) {
		case 0:
			kept = f.text
		case 1:
			kept = f.text[:d.random.IntN(len(f.text)+1)]
		case 2:
			kept = slices.Clone(f.text)
			clear(kept[d.random.IntN(len(kept)+1):]) // the length was written first
		default:
			kept = f.synced
		}
		if string(f.text) == string(f.synced) {
			kept = f.synced
		}
		if f.lost {
			kept = f.synced
		}
		names[name] = &weakFile{text: kept, synced: kept}
	}
	d.names, d.named = names, maps.Clone(names)
}

func mapUnion(a, b map[string]*weakFile) map[string]*weakFile {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

func (p *process) begin(bool) error {
	if p.names[lockName] == nil {
		p.names[lockName] = &weakFile{}
		p.named[lockName] = p.names[lockName]
	}
	return nil
}

func (p *process) present() error { return nil }

func (p *process) tryLock() (bool, error) {
	if err := p.step(); err != nil || p.held != nil {
		return false, err
	}
	p.held = p
	return true, nil
}

func (p *process) unlock() {
	if p.held == p {
		p.held = nil
	}
}

func (p *process) life() (string, error) { return "life", p.step() }

func (p *process) counts() (map[string]uint64, error) {
	f := p.names[countsName]
	if f == nil {
		f = &weakFile{}
	}
	return decodeCounts(f.text), p.step()
}

func (p *process) setCounts(counts map[string]uint64) error {
	if err := p.step(); err != nil {
		return unconfirmed(err)
	}
	f := p.names[countsName]
	if f == nil {
		f = &weakFile{}
		p.names[countsName] = f
	}
	f.text = encodeCounts(counts)
	return nil
}

func (p *process) read(name string, into []byte) ([]byte, error) {
	if err := p.step(); err != nil {
		return nil, err
	}
	if f := p.names[name]; f != nil {
		return append(into[:0], f.text...), nil
	}
	return nil, fs.ErrNotExist
}

func (p *process) write(name string, text []byte, withName bool) error {
	if p.oneFile {
		name = name[:len(name)-1] + "0"
	}
	if err := p.step(); err != nil {
		return err
	}
	f := p.names[name]
	if f == nil {
		f, withName = &weakFile{}, true
		p.names[name] = f
	}
	half := len(text) / 2
	for _, part := range [][2]int{{0, half}, {half, len(text)}} {
		if err := p.step(); err != nil {
			return unconfirmed(err)
		}
		f.text = slices.Concat(f.text[:min(part[0], len(f.text))], text[part[0]:part[1]], f.text[min(part[1], len(f.text)):])
	}
	if err := p.step(); err != nil {
		return unconfirmed(err)
	}
	f.text, f.lost = f.text[:len(text)], false
	if err := p.step(); err != nil {
		f.lost = !p.killed
		return unconfirmed(fmt.Errorf("%w: %w", errDisk, err))
	}
	if !p.noFileSync {
		f.synced = slices.Clone(f.text)
	}
	if !withName {
		return nil
	}
	if err := p.step(); err != nil {
		return unconfirmed(fmt.Errorf("%w: %w", errDisk, err))
	}
	if !p.noFolderSync {
		p.named = maps.Clone(p.names)
	}
	return nil
}

func (p *process) list() ([]string, error) {
	return slices.Sorted(maps.Keys(p.names)), p.step()
}

// A history runs processes that count on a weak disk; some are killed, or meet an error, at any step;
// then the power fails. It returns an error if a confirmed write or the whole store is lost.
func history(seed uint64, careless func(*weakDisk)) error {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &weakDisk{random: r, names: map[string]*weakFile{}, named: map[string]*weakFile{}}
	careless(d)
	keys := []string{"firn/a/pool", "firn/a/slot/1", "firn/b/pool", "firn/counter:c", "firn/counter:d"}
	least, most := map[string]int64{}, map[string]int64{} // confirmed, and possibly written
	ctx := context.Background()
	for range 40 {
		p := &process{weakDisk: d, steps: -1}
		if r.IntN(2) == 0 {
			p.steps = 1 + r.IntN(30)
			if r.IntN(3) == 0 {
				p.fails = []error{syscall.EIO, syscall.ENOSPC}[r.IntN(2)]
			}
		}
		s := newStore("weak", p)
		if err := s.disk.begin(true); err != nil {
			return err
		}
		for range 1 + r.IntN(4) {
			key := keys[r.IntN(len(keys))]
			failed := p.steps == 0 || p.killed
			e, err := s.Get(ctx, key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				if p.steps < -1 && s.failed.Load() == nil && !failed {
					return fmt.Errorf("get %s: %w", key, err)
				}
				continue
			}
			n, _ := strconv.ParseInt(string(e.Value), 10, 64) // 0 if the register does not exist
			if n < least[key] || n > most[key] {
				return fmt.Errorf("%s is %d; %d was confirmed, %d perhaps written", key, n, least[key], most[key])
			}
			_, err = s.CompareAndSwap(ctx, key, e.Revision, []byte(fmt.Sprint(n+1)))
			switch {
			case err == nil:
				least[key], most[key] = n+1, n+1
			case store.Unapplied(err):
				return fmt.Errorf("the only writer of %s: %w", key, err)
			default:
				most[key] = n + 1
				if p.steps < 0 && s.failed.Load() == nil && !p.killed && p.fails == nil {
					return fmt.Errorf("write %s: %w", key, err)
				}
			}
		}
		if r.IntN(3) == 0 {
			d.cut()
		}
	}
	return nil
}

func TestConfirmedWritesSurviveKillsErrorsAndPowerFailures(t *testing.T) {
	for seed := range uint64(histories) {
		if err := history(seed, func(*weakDisk) {}); err != nil {
			t.Fatalf("history %d: %v", seed, err)
		}
	}
}

func TestEachStepOfAWriteIsNeeded(t *testing.T) {
	for what, careless := range map[string]func(*weakDisk){
		"sync of the file":   func(d *weakDisk) { d.noFileSync = true },
		"sync of the folder": func(d *weakDisk) { d.noFolderSync = true },
		"second file":        func(d *weakDisk) { d.oneFile = true },
	} {
		found := false
		for seed := uint64(0); seed < 200 && !found; seed++ {
			found = history(seed, careless) != nil
		}
		if !found {
			t.Errorf("without the %s nothing is lost in 200 histories", what)
		}
	}
}

// An interruptedDisk runs interrupt before a reader reads the second file.
type interruptedDisk struct {
	disk
	interrupt func()
}

func (d *interruptedDisk) read(name string, into []byte) ([]byte, error) {
	if interrupt := d.interrupt; interrupt != nil && name == fileName("", 1) {
		d.interrupt = nil
		interrupt()
	}
	return d.disk.read(name, into)
}

// While a reader pauses between the two files, one write is confirmed and another one is half done.
func TestAReadBetweenTwoWritesReturnsTheConfirmedOne(t *testing.T) {
	ctx := context.Background()
	for before := range 3 {
		d := &weakDisk{random: rand.New(rand.NewPCG(1, 1)), names: map[string]*weakFile{}, named: map[string]*weakFile{}}
		p := &process{weakDisk: d, steps: -1}
		if err := p.begin(true); err != nil {
			t.Fatal(err)
		}
		writer := newStore("weak", p)
		var last store.Entry
		write := func() error {
			e, err := writer.CompareAndSwap(ctx, "k", last.Revision, nil)
			if err == nil {
				last = e
			}
			return err
		}
		for range 2*before + 1 { // the next write is of the first file, and the one after it of the second
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
		reader := newStore("weak", &interruptedDisk{&process{weakDisk: d, steps: -1}, func() {
			if err := write(); err != nil {
				t.Error(err)
			}
			const untilHalfWritten = 8
			p.steps = untilHalfWritten
			if err := write(); err == nil {
				t.Error("the second write was not interrupted")
			}
			if _, err := decodeHead("", d.names[fileName("", 1)].text); err == nil {
				t.Error("the second write left a valid file")
			}
		}})
		e, err := reader.Get(ctx, "k")
		if err != nil || e.Revision != last.Revision {
			t.Errorf("after %d writes: revision %d, %v; %d was confirmed", 2*before+1, e.Revision, err, last.Revision)
		}
	}
}

// For example, the disk turns read-only during a write.
func TestAVisibleWriteIsNeverRefused(t *testing.T) {
	ctx := context.Background()
	d := &weakDisk{random: rand.New(rand.NewPCG(1, 1)), names: map[string]*weakFile{}, named: map[string]*weakFile{}}
	var before store.Entry
	for steps := 1; ; steps++ {
		p := &process{weakDisk: d, steps: steps, fails: syscall.EROFS}
		if err := p.begin(true); err != nil {
			t.Fatal(err)
		}
		_, failed := newStore("weak", p).CompareAndSwap(ctx, "k", before.Revision, nil)
		found, err := newStore("weak", &process{weakDisk: d, steps: -1}).Get(ctx, "k")
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		if store.Unapplied(failed) && found.Revision != before.Revision {
			t.Errorf("step %d: it was written, and %v", steps, failed)
		}
		if before = found; failed == nil {
			return
		}
	}
}

// In a bubble, since a call ends after 10 s and a busy machine may need as long for so much.
func TestAFileTooLongToReadIsNeverWritten(t *testing.T) {
	full := content{writes: 1}
	for n := range maxFile / store.MaxValueBytes {
		key := fmt.Sprint(n)
		full = full.set(store.Entry{Key: key, Value: make([]byte, store.MaxValueBytes-50)})
	}
	text := &weakFile{text: full.encode("")}
	d := &weakDisk{
		random: rand.New(rand.NewPCG(1, 1)),
		names:  map[string]*weakFile{lockName: {}, fileName("", 1): text}, named: map[string]*weakFile{},
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStore("weak", &process{weakDisk: d, steps: -1})
		_, err := s.CompareAndSwap(context.Background(), "k", 0, make([]byte, store.MaxValueBytes))
		if err == nil || !store.Unapplied(err) || len(d.names) != 2 {
			t.Errorf("%v, %d files", err, len(d.names))
		}
		if _, err := s.CompareAndSwap(context.Background(), "k", 0, nil); err != nil {
			t.Error(err)
		}
	})
}

// A failing disk fails one read, as of a bad sector that is read again.
type failingDisk struct {
	disk
	fails bool
}

func (d *failingDisk) read(name string, into []byte) ([]byte, error) {
	if d.fails {
		d.fails = false
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EIO}
	}
	return d.disk.read(name, into)
}

func TestAFailedReadDoesNotEndTheHandle(t *testing.T) {
	ctx := context.Background()
	d := &weakDisk{random: rand.New(rand.NewPCG(1, 1)), names: map[string]*weakFile{}, named: map[string]*weakFile{}}
	p := &process{weakDisk: d, steps: -1}
	if err := p.begin(true); err != nil {
		t.Fatal(err)
	}
	s := newStore("weak", &failingDisk{p, true})
	if _, err := s.CompareAndSwap(ctx, "k", 0, nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("a write that cannot read: %v", err)
	}
	if _, err := s.CompareAndSwap(ctx, "k", 0, nil); err != nil {
		t.Errorf("the next write: %v", err)
	}
}
