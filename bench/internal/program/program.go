// Package program runs the programs that are measured: servers that listen on loopback and end with the
// measuring program.
package program

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/store/storetest/servers"
)

// patience bounds how long a program may take to listen.
const patience = 30 * time.Second

// A Program listens on an address while it runs.
type Program struct {
	Address string
	Path    string
	Args    []string
	Env     []string // in addition to this process's environment
	Says    string   // its log message when it is ready; empty: it is ready when it listens
	Log     Log      // its output, over all runs

	// Begun, if set, is called with the process id of each run right after the start of the
	// process.
	Begun func(pid int) error

	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	err   error         // why, after that
}

// Start runs the program and waits until it is ready. If this process ends, even in a crash, the program is killed.
func (p *Program) Start() error {
	before := p.Log.Count(p.Says)
	p.cmd = exec.Command(p.Path, p.Args...)
	p.cmd.Env = append(os.Environ(), p.Env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.Log, &p.Log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	guard, guardErr := servers.Guard(p.PID())
	p.ended = make(chan struct{})
	go func() {
		p.err = p.cmd.Wait()
		if guardErr == nil {
			_, err := io.WriteString(guard, "done\n")
			p.err = errors.Join(p.err, err)
		}
		close(p.ended)
	}()
	if guardErr != nil {
		return errors.Join(guardErr, p.Kill())
	}
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
			return errors.Join(fmt.Errorf("%s is not ready on %s: %w\n%s", p.cmd, p.Address, err, p.Log.String()), p.Kill())
		}
	}
}

// listens tries to connect to the address.
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

// End terminates it, even if it is paused, and waits. After Kill it does nothing.
func (p *Program) End() error {
	select {
	case <-p.ended:
		return nil // Start has returned the error of a failed start
	default:
	}
	err := errors.Join(p.Signal(syscall.SIGCONT), p.Signal(syscall.SIGTERM))
	<-p.ended
	return errors.Join(err, p.err)
}

// FreeAddress returns an address on loopback where nothing listens. Outgoing connections do not take its port while the
// program is down.
func FreeAddress() (string, error) {
	port, err := servers.UnusedPort()
	return fmt.Sprintf("127.0.0.1:%d", port), err
}

// BuildFirn builds the command into a folder and returns its path.
func BuildFirn(dir string) (string, error) {
	firn := filepath.Join(dir, "firn")
	return firn, Build(firn, "cmd/firn")
}

// Build builds a program of the repository, as make build does. The working directory must be in the repository.
func Build(to, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", to, "github.com/firn-id/firn/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// Median returns the median of a figure of some results.
func Median[R any, F cmp.Ordered](results []R, of func(R) F) F {
	figures := make([]F, len(results))
	for i, r := range results {
		figures[i] = of(r)
	}
	slices.Sort(figures)
	return figures[len(figures)/2]
}

// Serving is the log message of firn serve when it is ready.
const Serving = "msg=serving"

// A Firn is a firn serve, whose Address is that of HTTP.
type Firn struct {
	Program
	RESP, GRPC string // its other addresses
	Config     string // the path of its configuration
}

// StartFirn starts the binary at a path with a configuration, until the test ends.
func StartFirn(t testing.TB, path, config string) *Firn {
	t.Helper()
	f := &Firn{Config: filepath.Join(t.TempDir(), "firn.yaml")}
	for _, address := range []*string{&f.Address, &f.RESP, &f.GRPC} {
		*address = net.JoinHostPort("127.0.0.1", strconv.Itoa(servers.FreePort(t)))
	}
	f.Path, f.Says = path, Serving
	f.Args = []string{"serve", "--config", f.Config, "--http", f.Address, "--resp", f.RESP, "--grpc", f.GRPC}
	if err := os.WriteFile(f.Config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.End(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// A Log keeps the output of a program.
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

// Count returns how often words occur.
func (l *Log) Count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.said.Bytes(), []byte(words))
}
