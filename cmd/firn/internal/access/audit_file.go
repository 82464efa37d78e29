package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// mode keeps the audit log private to its owner.
const mode = 0o600

// An AuditFile is a file for the records of an [Audit]. Lines are appended; after a rotation
// Reopen begins a new file. Its methods may be called concurrently.
type AuditFile struct {
	path   string
	failed func(error)
	file   atomic.Pointer[os.File] // no lock: Reopen must not wait for a write to a mount that hangs

	mu   sync.Mutex // held during a write
	lost bool       // the last one failed and was reported
}

// OpenAuditFile opens a file for appending. It calls failed for the first of consecutive
// records that cannot be written; requests go on.
func OpenAuditFile(path string, failed func(error)) (*AuditFile, error) {
	f := &AuditFile{path: path, failed: failed}
	return f, f.Reopen()
}

// CheckAuditFile returns the error that [OpenAuditFile] would, as far as it is known without creating the file.
func CheckAuditFile(path string) error {
	file, err := openRecords(path, 0)
	if err == nil {
		return file.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("audit: %w", err)
}

// openRecords opens a regular file for appending. A pipe would hold the server until somebody reads it.
func openRecords(path string, create int) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file (%s): name a file, or leave audit out and the records go to the log", path, info.Mode())
	}
	return os.OpenFile(path, os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK|create, mode) // never waits, not even if it just became a pipe
}

// Reopen opens the path again. If that fails, it keeps the current file.
func (f *AuditFile) Reopen() error {
	file, err := openRecords(f.path, os.O_CREATE)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	old := f.file.Swap(file)
	if old != nil {
		if err := old.Close(); err != nil {
			return fmt.Errorf("audit: the file until now: %w", err)
		}
	}
	return nil
}

// Write appends a record.
func (f *AuditFile) Write(record []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file := f.file.Load()
	n, err := file.Write(record)
	if errors.Is(err, os.ErrClosed) && f.file.Load() != file { // Reopen came between
		n, err = f.file.Load().Write(record)
	}
	if err != nil && !f.lost {
		f.failed(err)
	}
	f.lost = err != nil
	return n, err
}

// Close closes the file. It may be called again.
func (f *AuditFile) Close() error {
	if err := f.file.Load().Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
