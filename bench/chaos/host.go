package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// A host takes the place of the test in which package servers starts its servers.
type host struct {
	testing.TB // nil: methods not defined below are not used

	mu       sync.Mutex
	cleanups []func()
	errs     []error
}

// A refusal is what a host panics with; see attempt.
type refusal struct{ error }

func (h *host) Helper() {}

func (h *host) Cleanup(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanups = append(h.cleanups, f)
}

func (h *host) Error(args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, errors.New(fmt.Sprint(args...)))
}

func (h *host) Errorf(format string, args ...any) { h.Error(fmt.Sprintf(format, args...)) }
func (h *host) Fatal(args ...any)                 { panic(refusal{errors.New(fmt.Sprint(args...))}) }
func (h *host) Fatalf(format string, args ...any) { h.Fatal(fmt.Sprintf(format, args...)) }
func (h *host) Skipf(format string, args ...any)  { h.Fatal(fmt.Sprintf(format, args...)) }

// end stops what was started, in reverse order, and returns the errors.
func (h *host) end() error {
	h.mu.Lock()
	cleanups := h.cleanups
	h.cleanups = nil
	h.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		if err := attempt(f); err != nil {
			h.Error(err)
		}
	}
	return errors.Join(h.errs...)
}

// attempt returns the error with which f would have ended a test.
func attempt(f func()) (err error) {
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

// together attempts several functions concurrently.
func together(fs ...func()) error {
	errs := make([]error, len(fs))
	var group sync.WaitGroup
	for i, f := range fs {
		group.Go(func() { errs[i] = attempt(f) })
	}
	group.Wait()
	return errors.Join(errs...)
}
