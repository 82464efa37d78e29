// Package program runs the programs that are measured: servers that listen on loopback,
// and end with what measures them.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// patience bounds how long a program may take to listen.
const patience = 30 * time.Second

// A Program is one that listens on an address when it runs.
type Program struct {
	Address string
	Path    string
	Args    []string
	Env     []string // beside this process's own
	Says    string   // what it says when it can be used; empty: it can when it listens
	Log     Log      // what it has said, over all its runs

	// Begun, if there is one, is called with the process id of each run as soon as there is
	// one: before the program has done much.
	Begun func(pid int) error

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	err   error         // why, after that
}

// Start runs the program and waits until it can be used.
func (p *Program) Start() error {
	before := p.Log.Count(p.Says)
	p.cmd = exec.Command(p.Path, p.Args...)
	p.cmd.Env = append(os.Environ(), p.Env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.Log, &p.Log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if p.Begun != nil {
		if err := p.Begun(p.PID()); err != nil {
			return errors.Join(err, p.Kill())
		}
	}
	for deadline := time.Now().Add(patience); ; {
		err := p.listens()
		if err == nil && (p.Says == "" || p.Log.Count(p.Says) > before) {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %w\n%s", p.cmd, p.err, p.Log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%s cannot be used on %s: %w\n%s", p.cmd, p.Address, err, p.Log.String()), p.Kill())
		}
	}
}

// listens tries the address.
func (p *Program) listens() error {
	conn, err := net.DialTimeout("tcp", p.Address, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

// PID returns the process id of the latest run.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Program) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends it at once.
func (p *Program) Kill() error {
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}

// End lets it end, stopped or not. After Kill it does nothing.
func (p *Program) End() error {
	select {
	case <-p.ended:
		return nil // an error is why nobody started it again
	default:
	}
	err := errors.Join(p.Signal(syscall.SIGCONT), p.Signal(syscall.SIGTERM))
	<-p.ended
	return errors.Join(err, p.err)
}

// FreeAddress returns an address on loopback where nothing listens.
func FreeAddress() (string, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// BuildFirn builds the command into a folder and returns its path. The working directory
// is the repository's top.
func BuildFirn(dir string) (string, error) {
	firn := filepath.Join(dir, "firn")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", firn, "./cmd/firn").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return firn, nil
}

// Serving is what firn serve says when it issues ids.
const Serving = "msg=serving"

// Redis returns a redis-server with its files in a folder.
func Redis(dir string, settings ...string) (*Program, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return &Program{Address: address, Path: "redis-server", Args: append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", dir}, settings...)}, nil
}

// A Log keeps what a program says.
type Log struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.String()
}

// Count returns how often something was said.
func (l *Log) Count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.said.Bytes(), []byte(words))
}
