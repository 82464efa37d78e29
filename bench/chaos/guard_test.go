package main

import (
	"os/exec"
	"syscall"
	"testing"
)

// Of two processes, the guard kills the one that is still watched.
func TestAGuardKillsWhatIsLeft(t *testing.T) {
	g, err := newGuard()
	if err != nil {
		t.Fatal(err)
	}
	var sleeps [2]*exec.Cmd
	for k, name := range []string{"a", "b"} {
		sleeps[k] = exec.Command("sleep", "60")
		if err := sleeps[k].Start(); err != nil {
			t.Fatal(err)
		}
		if err := g.watch(name, sleeps[k].Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.watch("b", 0); err != nil {
		t.Fatal(err)
	}
	if err := g.in.Close(); err != nil { // as when this process ends
		t.Fatal(err)
	}
	if err := g.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	_ = sleeps[0].Wait()
	if status, ok := sleeps[0].ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the first ended with %v", sleeps[0].ProcessState)
	}
	if err := sleeps[1].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = sleeps[1].Wait()
	if status, ok := sleeps[1].ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("the second ended with %v", sleeps[1].ProcessState)
	}
}

func TestAGuardThatIsDismissedKillsNothing(t *testing.T) {
	g, err := newGuard()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.watch("a", 1<<30); err != nil { // no such process: to kill it would fail
		t.Fatal(err)
	}
	if err := g.end(); err != nil {
		t.Error(err)
	}
}
