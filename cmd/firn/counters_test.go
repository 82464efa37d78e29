package main

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

// readIDs reads ids, one a line, until it has enough or the output ends. It drops a last line
// without a line break, which a kill has cut off.
func readIDs(t *testing.T, lines *bufio.Reader, enough int) (ids []firn.ID) {
	t.Helper()
	for len(ids) < enough {
		line, err := lines.ReadString('\n')
		if err != nil {
			return ids
		}
		id, err := firn.ParseID(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// counting runs firn next for a kind until it has written enough ids, sends it a signal and
// returns all ids that it wrote.
func counting(t *testing.T, state, kind string, enough int, signal syscall.Signal) []firn.ID {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := firnCommand(ctx, state, "next", "--kind", kind, "--name", "orders", "-n", "1000000000")
	cmd.Stderr = io.Discard
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(pipe)
	ids := readIDs(t, lines, enough)
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	ids = append(ids, readIDs(t, lines, 1<<30)...)
	if err := cmd.Wait(); err == nil {
		t.Fatal("the command ended before the signal")
	}
	if len(ids) < enough {
		t.Fatalf("the command is stuck after %d ids", len(ids))
	}
	return ids
}

func increasing(t *testing.T, last firn.ID, ids []firn.ID) firn.ID {
	t.Helper()
	for _, id := range ids {
		if id <= last {
			t.Fatalf("%d follows %d", id, last)
		}
		last = id
	}
	return last
}

// TestAKilledCounterContinuesAboveAllIssuedIDs kills the command with SIGKILL repeatedly, each time
// at another moment.
func TestAKilledCounterContinuesAboveAllIssuedIDs(t *testing.T) {
	for kind, lost := range map[string]firn.ID{"segment": 100_000, "sequence": 4096} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			last := firn.ID(0)
			for range 30 {
				ids := counting(t, state, kind, 1+rand.IntN(20_000), syscall.SIGKILL)
				// A kill loses at most one fetched range and the ids in the output buffer.
				if gap := ids[0] - last - 1; gap > lost+4096 {
					t.Errorf("%d ids are missing after %d", gap, last)
				}
				last = increasing(t, last, ids)
			}
		})
	}
}

// TestATerminatedSegmentReturnsItsRest ends the command with SIGTERM. No id may be missing.
func TestATerminatedSegmentReturnsItsRest(t *testing.T) {
	state := t.TempDir()
	var all []firn.ID
	for range 10 {
		all = append(all, counting(t, state, "segment", 1+rand.IntN(20_000), syscall.SIGTERM)...)
	}
	for i, id := range all {
		if id != firn.ID(i+1) {
			t.Fatalf("id %d, want %d", id, i+1)
		}
	}
}

// TestConcurrentCommandsShareACounter runs many short commands for one name, sixteen at a time.
func TestConcurrentCommandsShareACounter(t *testing.T) {
	const commands = 80
	for _, kind := range []string{"segment", "sequence", "number"} {
		t.Run(kind, func(t *testing.T) {
			state := t.TempDir()
			var set idset.Set
			var group sync.WaitGroup
			work := make(chan int)
			for range 16 {
				group.Go(func() {
					for n := range work {
						args := []string{"next", "--kind", kind, "--name", "orders", "-n", strconv.Itoa(n)}
						if kind == "number" {
							args = append(args, "--template", "N-{n:9}")
						}
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						out, err := firnCommand(ctx, state, args...).Output()
						cancel()
						if err != nil {
							t.Errorf("%v", err)
							continue
						}
						numbers := regexp.MustCompile(`(?m)^N-0*`).ReplaceAllString(string(out), "")
						ids := readIDs(t, bufio.NewReader(strings.NewReader(numbers)), 1<<30)
						if len(ids) != n {
							t.Errorf("%d ids, want %d", len(ids), n)
						}
						increasing(t, 0, ids)
						set.Add(ids)
					}
				})
			}
			for i := range commands {
				work <- 1 + i%20
			}
			close(work)
			group.Wait()
			if set.Duplicates() != 0 || set.Added() == 0 {
				t.Errorf("%d duplicates among %d ids: %v", set.Duplicates(), set.Added(), set.Examples())
			}
		})
	}
}

func TestWrongUseOfCountersExitsWithTwoAndSaysWhatIsAllowed(t *testing.T) {
	run := session(t)
	for _, test := range []struct{ environment, args, want string }{
		{"", "segment", `--kind segment needs a --name, as in --name orders`},
		{"", "segment --name=", `--name: "" is not a valid segment name: .*1 to 64`},
		{"FIRN_NAME=", "sequence", `environment variable FIRN_NAME: "" is not a valid sequence name: .*1 to 64`},
		{"", "number --template {n:3} --name a/b", `"a/b" is not a valid number name: 1 to 64 letters`},
		{"", "segment --name " + strings.Repeat("a", 65), `1 to 64 letters, digits, dots, dashes and underscores are allowed`},
		{"", "segment --name a --step 0", `step 0 is out of range: 1 to 1099511627776 are allowed`},
		{"", "segment --name a --step -5", `step -5 is out of range`},
		{"FIRN_STEP=1e3", "segment --name a", `environment variable FIRN_STEP "1e3" is not a valid number of ids: 1 to 1099511627776 are allowed, as in FIRN_STEP=1000\n`},
		{"", "segment --name a --stride 0", `--stride "0" is not a valid stride: 1 to 1048576 are allowed`},
		{"", "segment --name a --stride x", `--stride "x" is not a valid stride: 1 to 1048576 are allowed, as in --stride 2\n`},
		{"", "segment --name a --stride 2 --offset 2", `offset 2 is out of range: 0 to 1 are allowed`},
		{"", "segment --name a --offset -1", `offset -1 is out of range`},
		{"", "sequence --name a --first 0", `--first "0" is not a valid id: 1 to 9223372036854775807 are allowed`},
		{"", "sequence --name a --first x", `--first "x" is not a valid id: 1 to 9223372036854775807 are allowed, as in --first 1\n`},
		{"", "segment --name a -n 0", `: -n 0 is out of range`},
		{"", "number --name a", `--kind number needs a --template`},
		{"", "number --name a --template=", `"" is not a valid template`},
		{"", "number --name a --template {n:11}", `a width from 1 to 10 is wanted`},
		{"", "number --name a --template {dd}{n:3}", `numbers would repeat themselves`},
		{"", "number --name a --template {n:3} --zone Nowhere/Else", `"Nowhere/Else" is not a valid zone`},
		{"", "number --name a --template {n:2} -n 5000 --store sqlite:file.db", `: -n 5000 is out of range: 1 to 99 are allowed \(template \{n:2\}\)`},
		{"", "segment --name a --store bogus://x", `unknown scheme`},
		{"", "segment --name a", `no home directory for the user.s store`},
		{"", "sequence --name a --format nosuch", `"nosuch" is not a valid encoding`},
	} {
		var environment []string
		if test.environment != "" {
			environment = []string{test.environment}
		}
		status, out := run(environment, append([]string{"next", "--kind"}, strings.Fields(test.args)...)...)
		if status != 2 || !regexp.MustCompile(test.want).MatchString(out) || !strings.Contains(out, "\nTry: firn next --help\n") || strings.Contains(out, "strconv") {
			t.Errorf("%s firn next --kind %s exits with %d:\n%s", test.environment, test.args, status, out)
		}
	}
	// Environment variables for other kinds are ignored.
	url := sqliteStore(t)
	for _, args := range []string{"segment --name a", "uuid", "snowflake"} {
		if status, out := run([]string{"FIRN_STEP=5", "FIRN_LAYOUT=twitter", "FIRN_STORE=" + url, "FIRN_ZONE=UTC"},
			append([]string{"next", "--kind"}, strings.Fields(args)...)...); status != 0 {
			t.Errorf("firn next --kind %s exits with %d:\n%s", args, status, out)
		}
	}
}
