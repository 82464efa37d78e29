package wallclock_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/firn-id/firn/bench/internal/wallclock"
)

const asChild = "FIRN_WALLCLOCK_CHILD"

// TestMain lets the test run itself as the process whose clock is moved.
func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		tell()
		return
	}
	os.Exit(m.Run())
}

// tell prints wall and monotonic time whenever a line comes in, while other
// goroutines read the clock all the time.
func tell() {
	for range 2 {
		go func() {
			for time.Now().Year() > 0 {
			}
		}()
	}
	begun := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		now := time.Now()
		fmt.Println(now.UnixNano(), now.Sub(begun).Nanoseconds())
	}
}

func TestTheWallClockOfARunningProcessIsMovedAndItsMonotonicClockIsNot(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	answers := bufio.NewReader(out)
	ask := func() (before, wall, after time.Time, monotonic time.Duration) {
		t.Helper()
		before = time.Now().Round(0)
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		var w, m int64
		if _, err := fmt.Fscanln(answers, &w, &m); err != nil {
			t.Fatal(err)
		}
		return before, time.Unix(0, w), time.Now().Round(0), time.Duration(m)
	}
	firstAsked, _, _, firstMonotonic := ask()
	for _, offset := range []time.Duration{0, time.Hour, -time.Hour, 3 * time.Millisecond, -3 * time.Millisecond, 999_999_999, -1, time.Second, 0} {
		for range 20 { // the threads are elsewhere each time
			if err := wallclock.Move(cmd.Process.Pid, offset); err != nil {
				t.Fatal(err)
			}
			before, wall, after, monotonic := ask()
			if wall.Before(before.Add(offset)) || wall.After(after.Add(offset)) {
				t.Fatalf("moved by %v: it says %v between %v and %v", offset, wall, before, after)
			}
			if passed := after.Sub(firstAsked); monotonic-firstMonotonic > passed {
				t.Fatalf("moved by %v: %v passed by its monotonic clock in %v", offset, monotonic-firstMonotonic, passed)
			}
		}
	}
}

func TestAProcessThatIsGoneIsAnError(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := wallclock.Move(cmd.Process.Pid, time.Second); err == nil {
		t.Error("the clock of a process that has ended was moved")
	}
}
