package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/bench/internal/program"
	"github.com/firn-id/firn/bench/internal/wallclock"
)

// The settings of all processes of a store. There are few workers and few ids per tick, so that two
// processes that share a worker issue the same ids at once.
const (
	layout       = "41/0/3/6"
	wallWindow   = 2 * time.Second // and of firn next
	steadyWindow = 4 * time.Second

	// Over a store that loses data the window is longer than a new pool waits, so that a holder that
	// did not notice the loss still issues ids when new processes start.
	wallForgets   = 6 * time.Second
	steadyForgets = 20 * time.Second
)

const configuration = `store: %s
namespaces:
  steady: {pool: steady, layout: ` + layout + `, window: %v}
  wall: {pool: wall, layout: ` + layout + `, window: %v, clock: wall, rollback: [wait 500ms, history 2000, switch, refuse]}
`

const counters = `  segment: {kind: segment, min_step: 1000, max_step: 50000, target: 1s}
  sequence: {kind: sequence}
`

// An issuer is a firn serve.
type issuer struct {
	program.Program
	name string
	up   atomic.Bool
	net  *network.Network
}

// newIssuer prepares a firn serve with its configuration in a folder.
func newIssuer(name, firn, dir string, store *backend, net *network.Network) (*issuer, error) {
	address, err := program.FreeAddress()
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(configuration, store.url, steadyWindow, wallWindow) + counters
	if store.forgets {
		text = fmt.Sprintf(configuration, store.url, steadyForgets, wallForgets)
	}
	file := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	i := &issuer{name: name, net: net}
	i.Address, i.Path, i.Says = address, firn, program.Serving
	i.Args = []string{"serve", "--config", file, "--http", address, "--resp", "off", "--grpc", "off", "--linger", "100ms"}
	return i, nil
}

// startTime is how long a start is retried while the store has faults: a new process may have to wait
// for holders several times.
const startTime = 3 * time.Minute

// start starts it with a wall clock that is ahead.
func (i *issuer) start(ahead time.Duration) (err error) {
	i.Begun = func(pid int) error {
		i.net.Process(pid, i.name)
		if ahead == 0 {
			return nil
		}
		return wallclock.Move(pid, ahead)
	}
	for deadline := time.Now().Add(startTime); ; time.Sleep(100 * time.Millisecond) {
		if err = i.Start(); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", i.name, err)
	}
	i.up.Store(true)
	return nil
}

// kill ends it like a crash.
func (i *issuer) kill() error {
	i.up.Store(false)
	return i.Kill()
}

// leave shuts it down.
func (i *issuer) leave() error {
	i.up.Store(false)
	return i.End()
}

// stop pauses it for a time.
func (i *issuer) stop(d time.Duration) error {
	if err := wallclock.Stop(i.PID()); err != nil {
		return err
	}
	time.Sleep(d)
	return i.Signal(syscall.SIGCONT)
}

// clock sets how far its wall clock is ahead.
func (i *issuer) clock(offset time.Duration) error { return wallclock.Move(i.PID(), offset) }
