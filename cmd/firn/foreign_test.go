package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
)

// TestForeignContentIsAFailureThatNamesItsKey stores values that Firn never writes under keys of a
// pool. No command may treat them as wrong usage, or as a slot.
func TestForeignContentIsAFailureThatNamesItsKey(t *testing.T) {
	const (
		pool = `{"layout":"41/0/10/12","open":true}`
		slot = "firn/default/slot/0/0007"
	)
	for _, test := range []struct{ poolValue, slotValue, key string }{
		{pool, `{}`, slot},
		{pool, `{"fence":"9223372036854775807","owner":"x"}`, slot},
		{pool, `not ours`, slot},
		{`{"layout":"41/6/6/12"}`, `{"fence":"1","owner":"x"}`, "firn/default/pool"},
	} {
		url := "sqlite:" + filepath.Join(t.TempDir(), "firn.db")
		s, err := storeurl.Create(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]string{"firn/default/pool": test.poolValue, slot: test.slotValue} {
			if _, err := s.CompareAndSwap(context.Background(), key, 0, []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{"next", "next --worker 7", "workers", "workers --json", "workers release 7", "workers release 8", "doctor"} {
			cmd := exec.Command("firn", append(strings.Fields(args), "--store", url)...)
			cmd.Env = os.Environ()
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatalf("firn %s: %v", args, err)
			}
			if status := cmd.ProcessState.ExitCode(); status != 1 || strings.Contains(string(out), "Try:") || !strings.Contains(string(out), test.key) {
				t.Errorf("%s: firn %s exits with %d: %s", test.slotValue, args, status, out)
			}
		}
	}
}

// The error must blame the counter in the store, and not the requested number of ids.
func TestAForeignCounterIsNamedForAnyNumberOfIDs(t *testing.T) {
	const key = "firn/counter:s"
	url := "sqlite:" + filepath.Join(t.TempDir(), "firn.db")
	s, err := storeurl.Create(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompareAndSwap(context.Background(), key, 0, []byte(`{"last":"-5"}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"sequence -n 1", "sequence -n 2", "number --template {n:3} -n 1", "number --template {n:3} -n 2"} {
		cmd := exec.Command("firn", append(strings.Fields("next --name s --kind "+args), "--store", url)...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatalf("%s: %v", args, err)
		}
		if status := cmd.ProcessState.ExitCode(); status != 1 || !strings.Contains(string(out), key+`" was not written by Firn: "-5" is not a valid last id`) {
			t.Errorf("%s exits with %d: %s", args, status, out)
		}
	}
}
