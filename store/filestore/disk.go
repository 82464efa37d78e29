package filestore

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store"
)

// A disk is a folder as a store uses it. Between tryLock and unlock no other process writes to it.
type disk interface {
	// begin finds the lock file, or creates it.
	begin(mayMake bool) error
	// present is nil if the lock file is there.
	present() error
	// tryLock returns false if it must be tried again: another process has the lock. Call unlock after
	// it, at once or after more tries.
	tryLock() (bool, error)
	unlock()
	// life names the life of the store.
	life() (string, error)
	// counts returns the least number of writes made to each family. SetCounts does not sync.
	counts() (map[string]uint64, error)
	setCounts(map[string]uint64) error

	// read returns the content of a file, in the memory of into if there is enough of it.
	read(name string, into []byte) ([]byte, error)
	// write writes and syncs a file. It also syncs the file's name if the file is new or withName is
	// set: its creator may have been killed before it synced the name.
	write(name string, text []byte, withName bool) error
	list() ([]string, error)
}

func encodeCounts(counts map[string]uint64) []byte {
	var body strings.Builder
	for _, family := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&body, "%d %s\n", counts[family], family)
	}
	return seal([]byte(body.String()))
}

// decodeCounts parses the text that encodeCounts writes. Damaged text was not synced before power
// failed: it counts as zero writes.
func decodeCounts(text []byte) map[string]uint64 {
	counts := map[string]uint64{}
	body, err := unseal(text)
	if err != nil {
		return counts
	}
	for line := range strings.Lines(string(body)) {
		number, family, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if n, err := strconv.ParseUint(number, 10, 64); err == nil {
			counts[family] = n
		}
	}
	return counts
}

// Other programs keep a "lock" in their folders, so these names identify Firn.
const (
	lockName   = "firn.lock"
	countsName = "firn.counts"
)

// osDisk is a folder of the operating system.
type osDisk struct {
	dir    string
	root   *os.Root // the folder with the lock file, even if it was renamed since
	locked *os.File // the lock file, while its lock is held or being tried
	id     string   // that the locked file has
}

func (d *osDisk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *osDisk) present() error {
	_, err := os.Stat(d.path(lockName))
	return err
}

// begin creates a lock file without a life; the first write adds the life.
func (d *osDisk) begin(mayMake bool) error {
	f, err := os.OpenFile(d.path(lockName), os.O_RDWR, 0o600)
	if mayMake && errors.Is(err, fs.ErrNotExist) {
		if err := d.unused(); err != nil {
			return err
		}
		f, err = os.OpenFile(d.path(lockName), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return err
	}
	if err = f.Close(); err == nil && mayMake {
		err = syncFolder(os.Open, d.dir)
	}
	return err
}

// unused refuses a folder with registers and without a lock file: a process that still has the removed
// file locked would write beside the holder of a new one. Another process may have made both just now.
func (d *osDisk) unused() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); (name == countsName || len(familiesOf([]string{name})) > 0) && d.present() != nil {
			return fmt.Errorf("%w: %s is missing, and %s is there: end all processes that use the folder, and take it away, to begin with an empty store",
				store.ErrRefused, lockName, name)
		}
	}
	return nil
}

// tryLock takes the lock of the file that has the name now: a file that was removed or replaced after
// it was opened excludes no other process.
func (d *osDisk) tryLock() (ok bool, err error) {
	if d.locked == nil {
		if d.root, err = os.OpenRoot(d.dir); err != nil {
			return false, err
		}
		if d.locked, err = d.root.OpenFile(lockName, os.O_RDWR, 0); err != nil {
			d.locked = nil
			return false, errors.Join(d.inFolder(err), d.root.Close())
		}
	}
	if err = local(fileSystemAt(d.locked)); err == nil { // one that was mounted over the folder since it was opened
		ok, err = lock(d.locked)
	}
	if err != nil {
		d.unlock()
		return false, err
	}
	current, err := d.current(d.locked)
	if ok && current {
		current, err = d.begun()
	}
	if !current { // try the file that has the name now
		d.unlock()
	}
	return ok && current, err
}

// current reports whether an open lock file still has its name.
func (d *osDisk) current(f *os.File) (bool, error) {
	open, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(d.path(lockName))
	return err == nil && os.SameFile(open, named), err
}

func (d *osDisk) unlock() {
	unlock(d.locked)
	_ = d.locked.Close() // it releases the lock too, even with an error
	_ = d.root.Close()
	d.locked = nil
}

// inFolder adds the folder to an error of d.root, which names only the file.
func (d *osDisk) inFolder(err error) error { return fmt.Errorf("%s: %w", d.dir, err) }

// maxFile bounds reads and writes: a link to a device has no end.
const maxFile = 64 << 20

// begun reads the id of the locked file; false: the file was empty or damaged, and has one now. Close
// it then: Windows may set the time of a change when the file is closed.
func (d *osDisk) begun() (bool, error) {
	text, err := io.ReadAll(io.NewSectionReader(d.locked, 0, maxFile))
	if err != nil {
		return false, err
	}
	id, err := unseal(text)
	if err == nil {
		d.id = string(id)
		return true, nil
	}
	text = seal([]byte(rand.Text()))
	if _, err = d.locked.WriteAt(text, 0); err == nil {
		err = d.locked.Truncate(int64(len(text)))
	}
	return false, err
}

// life has the time of the lock file's last change, which distinguishes it from a copy restored in its
// place, even one with its inode: only begun writes that file, once.
func (d *osDisk) life() (string, error) {
	file, err := identity(d.locked)
	return fmt.Sprintf("%s %s %s", d.id, file, machineID()), err
}

func (d *osDisk) counts() (map[string]uint64, error) {
	text, err := d.read(countsName, nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return decodeCounts(text), err
}

func (d *osDisk) setCounts(counts map[string]uint64) error {
	return d.replace(countsName, encodeCounts(counts), false)
}

func (d *osDisk) read(name string, into []byte) ([]byte, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	text, err := readAll(f, into)
	return text, errors.Join(err, f.Close())
}

// readAll reads a file into memory of its size, or into that which is given.
func readAll(f *os.File, into []byte) ([]byte, error) {
	at, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := bytes.NewBuffer(into[:0])
	text.Grow(int(min(at.Size(), maxFile)) + bytes.MinRead)
	_, err = text.ReadFrom(io.LimitReader(f, maxFile))
	return text.Bytes(), err
}

// write first checks that the lock file still has its name: if the folder was emptied meanwhile,
// another process may have created a new store in it.
func (d *osDisk) write(name string, text []byte, withName bool) error {
	current, err := d.current(d.locked)
	if err == nil && !current {
		err = fmt.Errorf("%w: the lock file was replaced", store.ErrUnavailable)
	}
	if err != nil {
		return err
	}
	if _, err := d.root.Stat(name); err != nil {
		withName = true
	}
	if err = d.replace(name, text, true); err == nil && withName {
		err = d.syncNames()
	}
	return err
}

// replace writes to a file of the locked folder. A path could lead to a new store in its place, whose
// lock another process has.
func (d *osDisk) replace(name string, text []byte, andSync bool) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return d.inFolder(err)
	}
	if _, err = f.Write(text); err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil && andSync {
		err = syncFile(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return unconfirmed(d.inFolder(err))
	}
	return nil
}

// syncNames syncs the locked folder.
func (d *osDisk) syncNames() error {
	if err := syncFolder(d.root.Open, "."); err != nil {
		return unconfirmed(d.inFolder(err))
	}
	return nil
}

func (d *osDisk) list() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	if err == nil {
		err = d.present()
	}
	return names, err
}

// syncFolder syncs the names in a folder. On Windows no call does so, and NTFS has a file's name in
// its journal when the sync of the file returns.
func syncFolder(open func(string) (*os.File, error), dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := open(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncFile(f), f.Close())
}

// errDisk: a sync failed. The data may be lost, and no later sync would report it.
var errDisk = errors.New("its disk failed")

func syncFile(f *os.File) error {
	err := f.Sync()
	if err != nil {
		err = fmt.Errorf("%w: %w", errDisk, err)
	}
	return err
}
