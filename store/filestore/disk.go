package filestore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/store"
)

// A disk is a folder as a store uses it. Between tryLock and unlock nobody else writes to it.
type disk interface {
	// begin finds the lock file, or makes it.
	begin(mayMake bool) error
	// present is nil if the lock file is there.
	present() error
	// tryLock is false if another has the lock. Unlock follows, at once or after more tries.
	tryLock() (bool, error)
	unlock()
	// marks and mark read and write what the lock file says. It is not synced, and may be lost.
	marks() (marks, error)
	mark(marks) error

	read(name string) ([]byte, error)
	// write writes a file and syncs it; if it is young, or new, with its name: who made it may
	// have been killed before that.
	write(name string, text []byte, young bool) error
	sync(name string) error // and its name
	list() ([]string, error)
}

// A marks is what the lock file says: the life of the store, and how many writes each file had at
// least.
type marks struct {
	life   string
	writes map[string]uint64
}

func (m marks) encode(id string) []byte {
	body := "life " + id + "\n"
	for _, of := range slices.Sorted(maps.Keys(m.writes)) {
		body += fmt.Sprintf("%d %s\n", m.writes[of], of)
	}
	return seal([]byte(body))
}

// decodeMarks reads what encode wrote; false: it was lost, as when power failed.
func decodeMarks(text []byte) (m marks, ok bool) {
	m.writes = map[string]uint64{}
	body, err := unseal(text)
	if err != nil {
		return m, false
	}
	first, rest, _ := strings.Cut(string(body), "\n")
	m.life, ok = strings.CutPrefix(first, "life ")
	for line := range strings.Lines(rest) {
		number, of, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if m.writes[of], err = strconv.ParseUint(number, 10, 64); err != nil {
			return m, false
		}
	}
	return m, ok
}

// lockName says whose it is: folders of other programs have a "lock" too, and are no stores.
const lockName = "firn.lock"

// osDisk is a folder of the operating system.
type osDisk struct {
	dir    string
	root   *os.Root // the folder that has the lock file, whatever has its name now
	locked *os.File // the lock file, while its lock is held or tried
	id     string   // of the life, from the lock file
}

func folder(dir string) disk { return &osDisk{dir: dir} }

func (d *osDisk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *osDisk) present() error {
	_, err := os.Stat(d.path(lockName))
	return err
}

// begin makes a lock file without a life, which gets one with the first write.
func (d *osDisk) begin(mayMake bool) error {
	flags := os.O_RDWR
	if mayMake {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(d.path(lockName), flags, 0o600)
	if err != nil {
		return err
	}
	if err = f.Close(); err == nil && mayMake {
		err = syncFolder(d.dir)
	}
	return err
}

// tryLock takes the lock of the file that has the name now: one that was removed or replaced
// since it was opened keeps nobody out.
func (d *osDisk) tryLock() (ok bool, err error) {
	if d.locked == nil {
		if d.root, err = os.OpenRoot(d.dir); err != nil {
			return false, err
		}
		if d.locked, err = d.root.OpenFile(lockName, os.O_RDWR, 0); err != nil {
			d.locked = nil
			return false, errors.Join(d.named(err), d.root.Close())
		}
	}
	if ok, err = lock(d.locked); err != nil {
		d.unlock()
		return false, err
	}
	current, err := d.current(d.locked)
	if !current { // another has its name, and is to be tried
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
	_ = d.locked.Close() // which releases it, whatever it says
	_ = d.root.Close()
	d.locked = nil
}

// named has an error of d.root say which folder that is.
func (d *osDisk) named(err error) error { return fmt.Errorf("%s: %w", d.dir, err) }

// maxFile bounds what is read of a file, and what is written: one that is damaged, or no file at all, may seem to have no end.
const maxFile = 64 << 20

func (d *osDisk) marks() (marks, error) {
	info, err := d.locked.Stat()
	if err != nil {
		return marks{}, err
	}
	text := make([]byte, min(info.Size(), maxFile))
	if _, err := d.locked.ReadAt(text, 0); err != nil {
		return marks{}, err
	}
	m, ok := decodeMarks(text)
	if d.id = m.life; !ok {
		d.id, m.writes = rand.Text(), map[string]uint64{}
	}
	m.life = d.id + " " + identity(d.locked, info)
	return m, nil
}

func (d *osDisk) mark(m marks) error {
	text := m.encode(d.id)
	_, err := d.locked.WriteAt(text, 0)
	if err == nil {
		err = d.locked.Truncate(int64(len(text)))
	}
	return err
}

func (d *osDisk) read(name string) ([]byte, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	return text, errors.Join(err, f.Close())
}

// write looks whether the lock is still one: if the folder was emptied meanwhile, another may have
// begun a new store in it.
func (d *osDisk) write(name string, text []byte, young bool) error {
	current, err := d.current(d.locked)
	if err == nil && !current {
		err = fmt.Errorf("%w: the lock file was replaced", store.ErrUnavailable)
	}
	if err != nil {
		return err
	}
	_, err = d.root.Stat(name)
	young = young || err != nil
	f, err := d.openToWrite(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		err = sync(f)
	}
	if err = errors.Join(err, f.Close()); err == nil && young {
		f, err = d.root.Open(".")
		if err == nil {
			err = errors.Join(sync(f), f.Close())
		}
	}
	if err != nil {
		return unconfirmed(d.named(err))
	}
	return nil
}

// openToWrite opens a file in the folder that has the lock: by its name it could be that of a store
// which was begun in its place, whose lock others have.
func (d *osDisk) openToWrite(name string) (*os.File, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, d.named(err)
	}
	return f, nil
}

func (d *osDisk) sync(name string) error {
	f, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err = errors.Join(sync(f), f.Close()); err == nil {
		err = syncFolder(d.dir)
	}
	return err
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

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(sync(f), f.Close())
}

// errDisk is of a sync that failed: what it was to keep may be lost, and no later sync says so.
var errDisk = errors.New("its disk failed")

func sync(f *os.File) error {
	err := f.Sync()
	if err != nil {
		err = fmt.Errorf("%w: %w", errDisk, err)
	}
	return err
}

// machineID outlasts restarts. Containers often have none.
func machineID() string {
	text, _ := os.ReadFile("/etc/machine-id")
	return strings.TrimSpace(string(text))
}
