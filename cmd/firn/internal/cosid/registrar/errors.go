package registrar

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/store"
)

// The sentinels a caller branches on with [errors.Is].
var (
	// ErrOverflow: no machine number is left.
	ErrOverflow = errors.New("no machine number left")
	// ErrNotFound: the instance has no machine number; it never had one, or returned it.
	ErrNotFound = errors.New("instance without a machine number")
	// ErrLost: the instance was silent for so long that another instance has its number now.
	ErrLost = errors.New("machine number lost")
	// ErrClock: the clocks of server and store are too far apart for either to be trusted.
	ErrClock = errors.New("clocks differ")
)

// refuse returns an error that matches one of the sentinels, with a text of its own.
func refuse(is error, format string, args ...any) error {
	return &store.TextError{Kind: is, Err: fmt.Errorf(format, args...)}
}

func notFound(of Instance) error {
	return refuse(ErrNotFound, "instance %q has no machine number in %q: request one first", of.Name, of.Namespace)
}

// A refusedError is an error of Instance.New.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }
