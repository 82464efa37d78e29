// Package filestore is a [store.Store] in a folder of this machine, over the standard library alone.
//
//	s, err := filestore.Create(filepath.Join(state, "firn"))
//	l, err := lease.Open(ctx, lease.Config{Store: s})
//
// It is for the processes of one machine, on Linux, macOS, the BSDs and Windows. Folders on a file system
// that machines share are refused: locks do not reach across machines there, so two machines would issue
// the same ids. Use a server's store for several machines, for containers or pods without a common
// folder, and for pools of thousands of workers: each write rewrites the whole pool.
//
// # Files
//
// All registers of a pool are stored together, and likewise all counters: if single registers could vanish, a
// held slot would look free. They are in two files: a write overwrites the
// older one and syncs it. Each file is text of at most 64 MiB, with a checksum and the number of writes
// made so far; the valid file with the greater number counts. So after a crash or a loss of power the
// registers are in their state before the write or after it, and a confirmed write stays. This takes
// one sync. Renaming a new file over the old one takes two, and fails on Windows while others read.
//
// Writers take turns by a lock on the file "firn.lock". They retry until their context ends: if a
// process is stopped while it holds the lock, the others fail instead of hanging. Readers take no
// lock. The lock file also names the life of the store: a restored copy has another life.
//
// The file "firn.counts" has the number of writes made to each pair of files. If a pair has fewer,
// nothing is written: its later file was damaged, lost, or replaced by an older copy.
//
// After a failed sync, or another failure of the disk while it is written to, the store is unavailable until it is
// opened again. A second sync may report success although the first one lost the data, so the next write, of
// any process, first writes that data again.
package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// Store is a [store.Store] in a folder. Open one with [Open] or [Create]: the zero value and nil are not usable.
type Store struct {
	dir    string
	disk   disk
	calls  *backend.Calls
	turn   chan struct{} // held by this handle's writer; file locks distinguish processes only by their open file
	failed atomic.Pointer[error]
	memory sync.Pool // of *texts, of reads of one key: each holder of a worker makes one every few seconds
}

// Open opens the store in a folder, whose path may be relative to the working directory. Errors: [store.ErrNotFound] if it
// does not exist; [store.ErrRefused] if the path is empty, machines share its file system, or it is not writable; and
// [store.ErrUnavailable].
func Open(dir string) (*Store, error) { return open(dir, false) }

// Create is [Open], but first creates the store, with its folder, if it does not exist. Only the owner
// may read the new folder.
func Create(dir string) (*Store, error) { return open(dir, true) }

func open(dir string, mayMake bool) (*Store, error) {
	if dir == "" { // an unset variable would name another store in each working directory
		return nil, fmt.Errorf("filestore: open: %w: the path is empty: name a folder", store.ErrRefused)
	}
	dir, err := filepath.Abs(dir) // the working directory may change
	if err != nil {
		return nil, fmt.Errorf("filestore: open %q: %w: %w", dir, store.ErrRefused, err)
	}
	s := newStore(dir, &osDisk{dir: dir})
	return backend.Do(context.Background(), s.calls, "open", dir, func(ctx context.Context) (*Store, error) {
		if mayMake {
			if err := makeFolder(dir); err != nil {
				return nil, err
			}
		}
		err := local(fileSystemOf(dir))
		if err == nil {
			err = s.disk.begin(mayMake)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: there is no store in it: name another folder, or create one with firn store make, in Go with Create", store.ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

// newStore returns a store on a disk without accessing it.
func newStore(dir string, d disk) *Store {
	return &Store{dir: dir, disk: d, calls: backend.NewCalls("filestore", backend.NewLanes(0), classify), turn: make(chan struct{}, 1)}
}

// classify returns an error's kind and a hint. A file system refuses a call before it changes anything.
func classify(err error) (hint string, kind error) {
	switch {
	case errors.Is(err, fs.ErrPermission), readOnly.has(err):
		return "the folder and its files must be writable", store.ErrRefused
	case full.has(err):
		return "free space on its disk", store.ErrUnavailable
	case errors.Is(err, fs.ErrNotExist):
		return "the folder is gone: put it back, or end all that use it, to begin with an empty one", store.ErrUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		return "if another process that uses the folder is stopped, end it", store.ErrUnavailable
	case tooMany.has(err):
		return "raise the limit of open files", store.ErrUnavailable
	case inUse.has(err):
		return "another program does not share the file: exclude the folder from its scans or backups", store.ErrUnavailable
	}
	return "", store.ErrUnavailable
}

// errnos are errors of the operating system.
type errnos []syscall.Errno

func (list errnos) has(err error) bool {
	return slices.ContainsFunc(list, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// Traits implements [store.Store].
func (s *Store) Traits() store.Traits { return store.Traits{Embedded: true} }

// String returns the folder.
func (s *Store) String() string { return s.dir }

// Close makes later calls fail. No file is open between calls. It may be called twice.
func (s *Store) Close() error { return s.calls.Close(s.dir, func() error { return nil }) }

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	return s.calls.Get(ctx, key, func(ctx context.Context) (store.Entry, error) {
		memory, ok := s.memory.Get().(*texts)
		if !ok {
			memory = new(texts)
		}
		defer s.memory.Put(memory)
		f, err := s.read(ctx, family(key), memory)
		if err != nil {
			return store.Entry{}, err
		}
		e, err := findRegister(f.text, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			err = s.damaged(family(key), err)
		}
		return e, err
	})
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	return backend.Do(ctx, s.calls, "list", prefix, func(ctx context.Context) (list []store.Entry, err error) {
		names, err := s.disk.list()
		if err != nil {
			return nil, err
		}
		for _, of := range familiesOf(names) {
			if !strings.HasPrefix(of, prefix) && !strings.HasPrefix(prefix, of) {
				continue
			}
			f, err := s.parse(ctx, of)
			if err != nil {
				return nil, err
			}
			for _, e := range f.registers {
				if strings.HasPrefix(e.Key, prefix) {
					list = append(list, e)
				}
			}
		}
		slices.SortFunc(list, func(a, b store.Entry) int { return strings.Compare(a.Key, b.Key) })
		return list, nil
	})
}

// parse reads the registers of a family and parses them.
func (s *Store) parse(ctx context.Context, of string) (content, error) {
	f, err := s.read(ctx, of, new(texts))
	if err != nil {
		return f, err
	}
	if f.registers, err = decodeRegisters(f.text); err != nil {
		err = s.damaged(of, err)
	}
	return f, err
}

// texts is the memory for both files of a family.
type texts [2][]byte

// read reads the registers of a family. A reader takes no lock: between two consecutive writes it may
// find both files half written, and tries again.
func (s *Store) read(ctx context.Context, of string, memory *texts) (content, error) {
	for try := 1; ; try++ {
		newest, err := s.readOnce(of, memory)
		if try == maxReads || !errors.Is(err, errDamaged) {
			return newest, err
		}
		if err := pause(ctx); err != nil {
			return newest, err
		}
	}
}

// maxReads is far more than concurrent writes can need.
const maxReads = 50

func (s *Store) readOnce(of string, memory *texts) (content, error) {
	if err := s.failed.Load(); err != nil {
		return content{}, *err
	}
	zero, err0 := s.readFile(of, 0, memory)
	one, err1 := s.readFile(of, 1, memory)
	if errors.Is(err1, errInvalid) { // perhaps half written, after a whole write of file 0
		zero, err0 = s.readFile(of, 0, memory)
	}
	newest := zero
	if one.writes > zero.writes {
		newest = one
	}
	invalid0, invalid1 := errors.Is(err0, errInvalid), errors.Is(err1, errInvalid)
	switch {
	case err0 != nil && !invalid0:
		return newest, err0
	case err1 != nil && !invalid1:
		return newest, err1
	case invalid0 && invalid1:
		return newest, s.damaged(of, err0, err1)
	case newest.writes == 0:
		return newest, s.disk.present() // otherwise the store itself is missing
	}
	return newest, nil
}

// errInvalid: a file was not written as a whole.
var errInvalid = errors.New("invalid")

// readFile reads one of the two files of a family, without its registers. A missing file has no writes.
func (s *Store) readFile(of string, file int, memory *texts) (content, error) {
	text, err := s.disk.read(fileName(of, file), memory[file])
	memory[file] = text
	if errors.Is(err, fs.ErrNotExist) {
		return content{file: file}, nil
	}
	if err != nil {
		return content{file: file}, err
	}
	c, err := decodeHead(of, text)
	if err != nil {
		err = fmt.Errorf("%s is %w: %w", fileName(of, file), errInvalid, err)
	}
	c.file = file
	return c, err
}

// errDamaged: neither file of a family is valid, or the newer one is missing.
var errDamaged = fmt.Errorf("%w: the registers are damaged", store.ErrUnavailable)

func (s *Store) damaged(of string, why ...error) error {
	return fmt.Errorf("%w: %s.0 and .1: %w", errDamaged, filepath.Join(s.dir, escape(of)), errors.Join(why...))
}

// CompareAndSwap implements [store.Store].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	return s.calls.Swap(ctx, key, value, func(ctx context.Context, e store.Entry) (life string, err error) {
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-ctx.Done():
			return "", store.ContextError(ctx)
		}
		if err := s.failed.Load(); err != nil {
			return "", *err
		}
		if err := s.lock(ctx); err != nil {
			return "", err
		}
		defer s.disk.unlock()
		return s.swap(ctx, e, old)
	})
}

// tryEvery is the time between two tries, the same for all: with growing pauses a process that has
// waited for long would lose against each newcomer.
const tryEvery = time.Millisecond

// pause waits between two tries.
func pause(ctx context.Context) error {
	select {
	case <-time.After(tryEvery/2 + rand.N(tryEvery)):
		return nil
	case <-ctx.Done():
		return store.ContextError(ctx)
	}
}

// lock waits for the lock of the folder.
func (s *Store) lock(ctx context.Context) error {
	for {
		ok, err := s.disk.tryLock()
		if ok || err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			s.disk.unlock()
			return err
		}
	}
}

// swap makes a write while this process holds the folder's lock.
func (s *Store) swap(ctx context.Context, e store.Entry, old store.Revision) (life string, err error) {
	of := family(e.Key)
	if life, err = s.disk.life(); err != nil {
		return "", err
	}
	counts, err := s.disk.counts()
	if err != nil {
		return "", err
	}
	f, err := s.parse(ctx, of)
	switch {
	case err != nil:
		return "", err
	case f.writes < counts[of]:
		return "", s.damaged(of, fmt.Errorf("they have %d writes, and had %d: the later one is damaged, lost, or an older copy; put it back, or end all that use it, and take the whole folder away to begin with an empty store",
			f.writes, counts[of]))
	case f.get(e.Key).Revision != old:
		return "", store.ErrConflict
	case ctx.Err() != nil: // the caller has stopped waiting
		return "", store.ContextError(ctx)
	}
	if f.writes > counts[of] { // its writer was killed, perhaps before the sync, or its sync failed: a mere sync could report success now
		err = s.poison(s.disk.write(fileName(of, f.file), f.encode(of), true))
	}
	f = f.set(e)
	f.writes++
	text := f.encode(of)
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%w: the registers of %q are more than %d bytes: use another store", store.ErrRefused, of, maxFile)
	}
	if err == nil {
		err = s.poison(s.disk.write(fileName(of, 1-f.file), text, f.writes <= 2))
	}
	if err != nil {
		return "", err
	}
	counts[of] = f.writes
	if err := s.disk.setCounts(counts); err != nil { // the write itself is done
		return "", s.poison(unconfirmed(err))
	}
	return life, nil
}

// unconfirmed is the error of a write that other processes may see: never [store.ErrRefused].
func unconfirmed(err error) error {
	return fmt.Errorf("%w: the write was not confirmed: %w", store.ErrUnavailable, err)
}

// poison makes all later calls of this handle fail if err says that the disk failed.
func (s *Store) poison(err error) error {
	if errors.Is(err, errDisk) || broken.has(err) {
		err = fmt.Errorf("%w: the disk may have lost writes; check it, then restart all processes that use the folder: %s", store.ErrUnavailable, err.Error())
		s.failed.CompareAndSwap(nil, &err)
	}
	return err
}

func makeFolder(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w: %w: name a folder", store.ErrRefused, err)
	}
	if err != nil {
		return err
	}
	err = syncFolder(os.Open, filepath.Dir(dir))
	if errors.Is(err, fs.ErrPermission) { // as in a home directory that others may not list
		err = nil
	}
	return cmp.Or(err, syncFolder(os.Open, dir))
}
