//go:build unix

package servers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Server is a running server that tests can disturb. Its methods are for one goroutine and end the
// test when they fail.
type Server struct {
	t    testing.TB
	kind kind
	dir  string
	port int

	cmd    *exec.Cmd
	exited chan struct{}
	output *bytes.Buffer
	guard  io.Writer // of Guard
}

// A kind holds the differences between servers.
type kind struct {
	name    string
	program string // looked up in the path, or absolute
	user    string // the account it runs under if the test runs as root
	// prepare sets up the server's folder, once.
	prepare func(s *Server) error
	args    func(s *Server) []string
	// ready returns nil once the server answers.
	ready func(s *Server) error
}

const (
	startTimeout = 60 * time.Second
	startTries   = 3 // another program may take a free port in between
	pollEvery    = 20 * time.Millisecond
)

// start starts a server and stops it when the test ends.
func start(t testing.TB, k kind) *Server {
	t.Helper()
	if _, err := exec.LookPath(k.program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed: run scripts/need-servers", k.name)
		}
		t.Skipf("%s is not installed: run scripts/need-servers, or make test", k.name)
	}
	dir, err := os.MkdirTemp("", "firn-"+k.name+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := &Server{t: t, kind: k, dir: dir}
	if err := cmp.Or(os.Chmod(dir, 0o755), s.own(dir)); err != nil {
		t.Fatal(err)
	}
	s.port = FreePort(t)
	if k.prepare != nil {
		if err := k.prepare(s); err != nil {
			t.Fatalf("prepare %s: %v", k.name, err)
		}
	}
	for try := 1; ; try++ {
		err := s.launch()
		if err == nil {
			break
		}
		if try == startTries {
			t.Fatalf("start %s: %v", k.name, err)
		}
		s.port = FreePort(t)
	}
	t.Cleanup(s.Kill)
	return s
}

// Server ports lie below the system's ephemeral ports (32768 and up on Linux). An outgoing connection
// could otherwise take the port of a server before its restart.
const (
	firstPort = 15_000
	endOfPort = 32_000
)

// FreePort returns a loopback port that nothing listens on, and that no other call returns while this process runs, in
// this process or another.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := UnusedPort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// UnusedPort is [FreePort] without a test.
func UnusedPort() (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(endOfPort-firstPort)
		if last = reserve(net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d was found: %w", firstPort, endOfPort-1, last)
}

// reserve binds UDP's port of the same number, which no server here uses, until the process ends: a server may be down
// for a moment, or not up yet, and the test of another package would then share one server with this one.
func reserve(address string) error {
	reservation, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return errors.Join(err, reservation.Close())
	}
	mu.Lock()
	defer mu.Unlock()
	reservations = append(reservations, reservation) // a connection that nothing refers to is closed
	return nil
}

var (
	mu           sync.Mutex
	reservations []net.PacketConn
)

// own gives path to the account the server runs under.
func (s *Server) own(path string) error {
	attr, err := s.credentials()
	if err != nil || attr.Credential == nil {
		return err
	}
	return os.Chown(path, int(attr.Credential.Uid), int(attr.Credential.Gid))
}

// credentials are those of the kind's account if the test runs as root, which some servers refuse.
func (s *Server) credentials() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true} // shields it from an interrupt at the terminal
	if s.kind.user == "" || os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup(s.kind.user)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{}
	_, err = fmt.Sscan(u.Uid+" "+u.Gid, &attr.Credential.Uid, &attr.Credential.Gid)
	return attr, err
}

// run runs a program to its end under the server's account.
func (s *Server) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...) // mariadb-admin waits 12 h for a server that says nothing
	cmd.Dir = s.dir
	cmd.WaitDelay = time.Second
	var err error
	if cmd.SysProcAttr, err = s.credentials(); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return nil
}

func (s *Server) launch() error {
	s.cmd = exec.Command(s.kind.program, s.kind.args(s)...)
	s.cmd.Dir = s.dir
	s.output = &bytes.Buffer{}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	s.cmd.WaitDelay = time.Second
	var err error
	if s.cmd.SysProcAttr, err = s.credentials(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	if s.guard, err = Guard(s.cmd.Process.Pid); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.exited = exited
	go func() {
		_ = s.cmd.Wait() // its output tells how it ended
		close(exited)
	}()
	deadline := time.Now().Add(startTimeout)
	for {
		err := s.kind.ready(s)
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			s.dismiss()
			return fmt.Errorf("it ended: %s", tail(s.output.Bytes()))
		case <-time.After(pollEvery):
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("not ready after %v: %w: %s", startTimeout, err, tail(s.output.Bytes()))
		}
	}
}

func tail(b []byte) []byte {
	return b[max(0, len(b)-2000):]
}

// Guard starts a process that kills pid when this one ends for any reason: its input, which Guard returns, ends then.
// A line on it dismisses the guard.
func Guard(pid int) (io.WriteCloser, error) {
	cmd := exec.Command("sh", "-c", "read _ && exit; kill -9 "+strconv.Itoa(pid))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }()
	return w, nil
}

func (s *Server) dismiss() {
	if _, err := io.WriteString(s.guard, "done\n"); err != nil { // its Wait closes the pipe
		s.t.Errorf("dismiss the guard of %s: %v", s.kind.name, err)
	}
}

// answers returns nil once a listener accepts.
func (s *Server) answers() error {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// says returns nil once the server answers a line with text that begins with want.
func (s *Server) says(line, want string) error {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the answer was read
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, line); err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("it answers %q, not %q", got, want)
	}
	return nil
}

// Port is the port on 127.0.0.1 where clients are served.
func (s *Server) Port() int { return s.port }

// Addr is host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Path names a file in the server's folder, which is removed when the test ends.
func (s *Server) Path(name string) string { return filepath.Join(s.dir, name) }

// Kill ends the server at once, like a power failure, except that the operating system still writes
// its cached data. It may be called twice.
func (s *Server) Kill() {
	select {
	case <-s.exited:
		return
	default:
	}
	s.signal(syscall.SIGKILL)
	<-s.exited
	s.dismiss()
}

// Restart starts the server again after [Server.Kill], on the same port with the data it kept.
func (s *Server) Restart() {
	s.t.Helper()
	err := s.launch()
	// A killed PostgreSQL's children notice late, and it does not start while they run.
	for deadline := time.Now().Add(startTimeout); err != nil && bytes.Contains(s.output.Bytes(), []byte("still in use")) && time.Now().Before(deadline); {
		time.Sleep(pollEvery)
		err = s.launch()
	}
	if err != nil {
		s.t.Fatalf("restart %s: %v", s.kind.name, err)
	}
}

// Pause stops the server's processes: it accepts connections and answers nothing. Pause returns once
// all threads have stopped.
func (s *Server) Pause() {
	s.signal(syscall.SIGSTOP)
	s.awaitStop(append(descendants(s.cmd.Process.Pid), s.cmd.Process.Pid)...)
}

// awaitStop waits until all threads of processes have stopped, or ended.
func (s *Server) awaitStop(processes ...int) {
	for deadline := time.Now().Add(startTimeout); !stopped(processes); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Errorf("%s does not stop", s.kind.name)
			return
		}
	}
}

func stopped(processes []int) bool {
	for _, pid := range processes {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			return false
		}
		for _, name := range threads {
			if is := stat(name); is != nil && is[0] != "T" && is[0] != "Z" {
				return false
			}
		}
	}
	return true
}

// Resume ends a pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// signal signals the server and, after it, the processes it started.
func (s *Server) signal(sig syscall.Signal) {
	// A process that it starts meanwhile would be missed, and outlive it. Any other signal waits until a
	// stopped process continues.
	if sig == syscall.SIGSTOP || sig == syscall.SIGKILL {
		if err := s.cmd.Process.Signal(syscall.SIGSTOP); err == nil {
			s.awaitStop(s.cmd.Process.Pid)
		}
	}
	children := descendants(s.cmd.Process.Pid)
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("%s: %v: %v", s.kind.name, sig, err)
	}
	for _, pid := range children {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			s.t.Errorf("%s: %v to its process %d: %v", s.kind.name, sig, pid, err)
		}
	}
}

// stat returns the fields of PID (NAME) STATE PARENT ... after the name, which may contain any character;
// nil if the process or thread has ended.
func stat(file string) []string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// descendants returns the processes below one, by /proc.
func descendants(parent int) []int {
	below := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, name := range stats {
		if is := stat(name); is != nil {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			ppid, _ := strconv.Atoi(is[1])
			below[ppid] = append(below[ppid], pid)
		}
	}
	var all []int
	for next := below[parent]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, below[next[0]]...)
	}
	return all
}
