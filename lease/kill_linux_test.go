//go:build amd64 || arm64

package lease_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/firntest"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

const (
	killedIn  = "FIRN_LEASE_KILLED_IN"
	hourOf    = "FIRN_LEASE_HOUR"
	notTraced = 77 // the exit status where the system stops no process at its calls
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedIn); dir != "" {
		if err := stopAtCalls(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(notTraced)
		}
		hour, err := time.ParseDuration(os.Getenv(hourOf))
		if err == nil {
			err = round(dir, hour, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A reportingStore reports each write before it begins, and when it is confirmed.
type reportingStore struct {
	store.Store
	out io.Writer
}

func (s reportingStore) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	fmt.Fprintf(s.out, "write %s\n", key)
	e, err := s.Store.CompareAndSwap(ctx, key, old, value)
	if err == nil {
		fmt.Fprintf(s.out, "confirmed %s %d %q\n", key, e.Revision, e.Life)
	}
	return e, err
}

// round joins a pool in a folder, renews, and releases, and reports each step.
func round(dir string, hour time.Duration, out io.Writer) error {
	ctx := context.Background()
	s, err := filestore.Create(dir)
	if err != nil {
		return err
	}
	slots, ask, err := only(reportingStore{s, out}, hour)
	if err != nil {
		return err
	}
	grant, err := slots.Acquire(ctx, ask)
	for range 2 {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "granted %d %d\n", grant.After, grant.Through)
		grant, err = slots.Renew(ctx, grant, ask())
	}
	if err == nil {
		err = slots.Release(ctx, grant, grant.Through)
	}
	return errors.Join(err, s.Close())
}

// only returns a source of worker 1 alone. Its clock is a time ahead, and moves only by waits, which
// take no time.
func only(s store.Store, ahead time.Duration) (lease.Source, func() lease.Ask, error) {
	layout, worker, clock := firn.DefaultLayout(), int64(1), firntest.NewClock(time.Now().Add(ahead))
	slots, err := lease.NewSource(lease.Config{Store: s, Pinned: &worker, Generator: firn.Config{Time: clock}})
	return slots, func() lease.Ask {
		now, _ := layout.Tick(clock.Wall()) // within the layout until 2095
		return lease.Ask{Now: now, From: now, Window: 1000}
	}, err
}

// A report is what a killed process had reported.
type report struct {
	confirmed     map[string]store.Revision
	pending, life string // the key of a write that was not confirmed
	granted       bool
	through       firn.Tick // of its last grant
}

func read(t *testing.T, out io.Reader) report {
	t.Helper()
	r := report{confirmed: map[string]store.Revision{}}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var revision store.Revision
		var after firn.Tick
		var err error
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "write":
			r.pending = rest
		case "confirmed":
			_, err = fmt.Sscanf(rest, r.pending+" %d %q", &revision, &r.life)
			r.confirmed[r.pending], r.pending = revision, ""
		case "granted":
			r.granted = true
			_, err = fmt.Sscanf(rest, "%d %d", &after, &r.through)
		}
		if err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
	}
	return r
}

// stopAtCalls has the tracer stop this process before each system call that changes a file, a lock or
// what is reported. Stops at all calls would take a hundred times as long.
func stopAtCalls() error {
	numbers := []uint32{
		syscall.SYS_OPENAT, syscall.SYS_MKDIRAT, syscall.SYS_WRITE, syscall.SYS_PWRITE64, syscall.SYS_FTRUNCATE,
		syscall.SYS_FSYNC, syscall.SYS_FLOCK, syscall.SYS_CLOSE,
	}
	const allow, trace = 0x7fff0000, 0x7ff00000
	filter := []syscall.SockFilter{{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS}} // the number of the call
	for i, number := range numbers {
		filter = append(filter, syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ, Jt: uint8(len(numbers) - i), K: number})
	}
	filter = append(filter, syscall.SockFilter{Code: syscall.BPF_RET, K: allow}, syscall.SockFilter{Code: syscall.BPF_RET, K: trace})
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const noNewPrivileges, filterMode, allThreads = 38, 1, 1
	seccomp := map[string]uintptr{"amd64": 317, "arm64": 277}[runtime.GOARCH]
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0); err != 0 {
		return os.NewSyscallError("prctl", err)
	}
	if _, _, err := syscall.RawSyscall(seccomp, filterMode, allThreads, uintptr(unsafe.Pointer(&program))); err != 0 {
		return os.NewSyscallError("seccomp", err)
	}
	return nil
}

// killAt runs a round in a process that is killed before its k-th system call. It returns false if the
// round ended before.
func killAt(t *testing.T, k int, dir string) (report, bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedIn+"="+dir, hourOf+"="+hours(k).String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // only the thread that started a process traces it
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
			t.Skipf("this system lets no process trace another: %v", err)
		}
		t.Fatal(err)
	}
	status := trace(t, cmd.Process.Pid, k)
	r := read(t, out)
	if err := errors.Join(out.Close(), cmd.Process.Release()); err != nil {
		t.Fatal(err)
	}
	if status.Exited() && status.ExitStatus() == notTraced && os.Getenv("CI") != "true" {
		t.Skip("this system stops no process at its calls")
	}
	if status.Exited() && status.ExitStatus() != 0 {
		t.Fatalf("call %d: the process exits with %d", k, status.ExitStatus())
	}
	return r, status.Signaled()
}

// trace lets a process run until it is killed before its k-th call, or ends.
func trace(t *testing.T, pid, k int) syscall.WaitStatus {
	t.Helper()
	const traceSeccomp, exitKill, wall, seccompEvent = 1 << 7, 1 << 20, 1 << 30, 7
	for calls, configured := 0, false; ; {
		var status syscall.WaitStatus
		thread, err := syscall.Wait4(-pid, &status, wall, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			t.Fatal(err)
		case !status.Stopped() && thread == pid:
			return status
		case !status.Stopped(): // another thread has ended
			continue
		case !configured:
			configured = true
			if err := syscall.PtraceSetOptions(pid, exitKill|traceSeccomp|syscall.PTRACE_O_TRACECLONE); err != nil {
				t.Fatal(err)
			}
		}
		signal := int(status.StopSignal())
		switch {
		case status.TrapCause() == seccompEvent:
			if calls++; calls == k {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			signal = 0
		case signal == int(syscall.SIGTRAP), signal == int(syscall.SIGSTOP): // a start, or a new thread
			signal = 0
		}
		if err := syscall.PtraceCont(thread, signal); err != nil && !errors.Is(err, syscall.ESRCH) { // ESRCH: it was killed
			t.Fatal(err)
		}
	}
}

// hours is when the k-th process runs: every fence of those before it has passed.
func hours(k int) time.Duration { return time.Duration(k) * time.Hour }

// A process that joins, renews and releases is killed before each of its system calls in turn. What it
// had been confirmed stays, and its successor's times begin behind its own.
func TestAKillAtEverySystemCallLosesNothing(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "state", "firn")
		lives := map[string]bool{}
		k := 1
		for killed := true; killed; k++ {
			var r report
			r, killed = killAt(t, k, dir)
			life := succeed(t, k, dir, r)
			if r.life != "" && life != r.life {
				t.Fatalf("call %d: life %q follows %q", k, life, r.life)
			}
			if lives[life] == fresh && k > 1 {
				t.Fatalf("call %d, a new folder: %v; life %q, after %v", k, fresh, life, lives)
			}
			lives[life] = true
			if fresh {
				if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Logf("%d calls", k-2)
		if k < 50 {
			t.Errorf("a round took only %d calls", k-2)
		}
	}
}

// succeed checks a folder that a killed process left, and plays the next holder. It returns the life.
func succeed(t *testing.T, k int, dir string, r report) string {
	t.Helper()
	ctx := context.Background()
	s, err := filestore.Create(dir)
	if err != nil {
		t.Fatalf("call %d: %v", k, err)
	}
	for key, revision := range r.confirmed {
		e, err := s.Get(ctx, key)
		if err != nil || e.Revision != revision && key != r.pending {
			t.Fatalf("call %d: %s has revision %d, %v; %d was confirmed", k, key, e.Revision, err, revision)
		}
	}
	slots, ask, err := only(s, hours(k)+time.Hour/2)
	if err != nil {
		t.Fatal(err)
	}
	grant, err := slots.Acquire(ctx, ask)
	if err != nil {
		t.Fatalf("call %d: %v", k, err)
	}
	if r.granted && grant.After < r.through {
		t.Fatalf("call %d: the successor may issue from %d on, the killed process up to %d", k, grant.After+1, r.through)
	}
	if err := slots.Release(ctx, grant, grant.Through); err != nil {
		t.Fatalf("call %d: %v", k, err)
	}
	e, err := s.Get(ctx, "probe")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	e, err = s.CompareAndSwap(ctx, "probe", e.Revision, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return e.Life
}
