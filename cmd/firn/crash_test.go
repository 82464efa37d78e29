package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

// firnCommand runs this test binary as firn. Commands with the same state folder share a store.
func firnCommand(ctx context.Context, state string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "firn", args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKilledProcessesIssueNoIDTwice kills one process after another with SIGKILL while it issues
// ids, each time at another moment.
func TestKilledProcessesIssueNoIDTwice(t *testing.T) {
	state := t.TempDir()
	var set idset.Set
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := firnCommand(ctx, state, "next", "-n", "100000000")
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(pipe)
		var ids []firn.ID
		kill := 1 + random.IntN(20_000) // ids from now
		for lines.Scan() {
			id, err := firn.ParseID(lines.Text())
			if err != nil {
				break // the kill has cut off this line
			}
			ids = append(ids, id)
			if len(ids) == kill {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the process ended before it was killed")
		}
		if len(ids) < kill {
			t.Fatalf("round %d: only %d ids within a minute", round, len(ids))
		}
		set.Add(ids[:len(ids)-1]) // the last line may be cut off and still parse
		cancel()
	}
	if set.Duplicates() != 0 {
		t.Errorf("%d duplicates among %d ids: %v", set.Duplicates(), set.Added(), set.Examples())
	}
	t.Logf("%d ids, no duplicate", set.Added())
}

// TestAThousandProcessesShareAStore runs short processes, sixteen at a time.
func TestAThousandProcessesShareAStore(t *testing.T) {
	state := t.TempDir()
	var set idset.Set
	var group sync.WaitGroup
	work := make(chan int)
	for range 8 { // more would wait longer than a release may take, on a busy machine
		group.Go(func() {
			for n := range work {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				out, err := firnCommand(ctx, state, "next", "-n", fmt.Sprint(n)).Output()
				cancel()
				if err != nil {
					t.Errorf("%v", err)
					continue
				}
				var ids []firn.ID
				for line := range strings.Lines(string(out)) {
					id, err := firn.ParseID(strings.TrimSuffix(line, "\n"))
					if err != nil {
						t.Error(err)
					}
					ids = append(ids, id)
				}
				if len(ids) != n {
					t.Errorf("%d ids, want %d", len(ids), n)
				}
				set.Add(ids)
			}
		})
	}
	for i := range 1000 {
		work <- 1 + i%50
	}
	close(work)
	group.Wait()
	if set.Duplicates() != 0 || set.Added() == 0 {
		t.Errorf("%d duplicates among %d ids: %v", set.Duplicates(), set.Added(), set.Examples())
	}
	t.Logf("%d ids, no duplicate", set.Added())
}
