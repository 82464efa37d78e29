// Package host lets programs use helpers that take a testing.TB, such as the servers of package servers.
package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// A Host takes the place of a test. The zero value is ready to use.
type Host struct {
	testing.TB // nil: methods not defined below are not used

	mu       sync.Mutex
	cleanups []func()
	errs     []error
}

// A refusal is what a host panics with; see Attempt.
type refusal struct{ error }

// Helper implements [testing.TB].
func (h *Host) Helper() {}

// Cleanup implements [testing.TB]: [Host.End] runs f.
func (h *Host) Cleanup(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanups = append(h.cleanups, f)
}

// Error implements [testing.TB]: [Host.End] returns it.
func (h *Host) Error(args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, errors.New(fmt.Sprint(args...)))
}

// Errorf implements [testing.TB].
func (h *Host) Errorf(format string, args ...any) { h.Error(fmt.Sprintf(format, args...)) }

// Fatal implements [testing.TB]: [Attempt] returns it.
func (h *Host) Fatal(args ...any) { panic(refusal{errors.New(fmt.Sprint(args...))}) }

// Fatalf implements [testing.TB].
func (h *Host) Fatalf(format string, args ...any) { h.Fatal(fmt.Sprintf(format, args...)) }

// Skipf implements [testing.TB]. A server that is missing is an error here.
func (h *Host) Skipf(format string, args ...any) { h.Fatal(fmt.Sprintf(format, args...)) }

// TempDir implements [testing.TB]: [Host.End] removes it.
func (h *Host) TempDir() string {
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			h.Error(err)
		}
	})
	return dir
}

// Run runs a program in a host, ends the host, and returns all errors.
func Run(program func(h *Host) error) (err error) {
	h := &Host{}
	refused := Attempt(func() { err = program(h) })
	return errors.Join(refused, err, h.End())
}

// End stops what was started, in reverse order, and returns the errors.
func (h *Host) End() error {
	h.mu.Lock()
	cleanups := h.cleanups
	h.cleanups = nil
	h.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		if err := Attempt(f); err != nil {
			h.Error(err)
		}
	}
	return errors.Join(h.errs...)
}

// Attempt returns the error with which f would have ended a test.
func Attempt(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			refused, ok := r.(refusal)
			if !ok {
				panic(r)
			}
			err = refused.error
		}
	}()
	f()
	return nil
}

// Together attempts several functions concurrently.
func Together(fs ...func()) error {
	errs := make([]error, len(fs))
	var group sync.WaitGroup
	for i, f := range fs {
		group.Go(func() { errs[i] = Attempt(f) })
	}
	group.Wait()
	return errors.Join(errs...)
}
