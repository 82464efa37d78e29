package wallclock

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// patience bounds how long a process may take to stop.
const patience = 10 * time.Second

// Stop stops a process and returns when all its threads stand still.
func Stop(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Microsecond) {
		runs, err := anyThread(pid, "stat", func(stat string) (bool, error) {
			// PID (NAME) STATE ...; the name may have anything in it.
			state := stat[bytes.LastIndexByte([]byte(stat), ')')+2]
			return state != 'T' && state != 't', nil
		})
		if err != nil || !runs {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop", pid)
		}
	}
}

func resume(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }

// anyThread reports whether what /proc says of a thread is so for any of them.
func anyThread(pid int, file string, is func(text string) (bool, error)) (bool, error) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/%s", pid, file)) // the pattern is well-formed
	if len(threads) == 0 {
		return false, fmt.Errorf("process %d: %w", pid, os.ErrProcessDone)
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // this thread has ended
		}
		if err != nil {
			return false, err
		}
		if yes, err := is(string(text)); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}
