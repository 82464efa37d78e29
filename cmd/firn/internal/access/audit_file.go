package access

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// mode lets nobody else read who asked for what.
const mode = 0o600

// A AuditFile is where records go if not to the log: lines are appended, and after a
// rotation Reopen begins a new file. Its methods may be called concurrently.
type AuditFile struct {
	path   string
	failed func(error)

	mu   sync.Mutex
	file *os.File
	lost bool // the last write failed, which was said
}

// OpenAuditFile opens a file for appending. Failed is told, once in a row, when a record
// cannot be written: requests go on.
func OpenAuditFile(path string, failed func(error)) (*AuditFile, error) {
	f := &AuditFile{path: path, failed: failed}
	return f, f.Reopen()
}

// Reopen opens the path anew; without success the file until now is kept.
func (f *AuditFile) Reopen() error {
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	f.mu.Lock()
	old := f.file
	f.file = file
	f.mu.Unlock()
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
	n, err := f.file.Write(record)
	if err != nil && !f.lost {
		f.failed(err)
	}
	f.lost = err != nil
	return n, err
}

// Close closes the file. It may be called again.
func (f *AuditFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
