package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/bench/internal/program"
)

// settled is when the memory of an idle server is read.
const settled = 10 * time.Second

// starts measures whole processes: the command, beside a program that makes an id with the same lease and nothing
// else; the memory of a server without requests; and the first id of a checkout whose build cache is empty.
func starts(t testing.TB) error {
	dir := t.TempDir()
	all, err := commands(dir)
	if err != nil {
		return err
	}
	for range 100 {
		if err := runEach(all); err != nil {
			return err
		}
	}
	fmt.Println("| | at best, ms | median, ms | processor, ms | page faults |")
	fmt.Println("| --- | --: | --: | --: | --: |")
	for _, c := range all {
		wall, busy := sorted(c.wall), sorted(c.busy)
		fmt.Printf("| %s | %.1f | %.1f | %.1f | %d |\n", c.name, wall[0], wall[len(wall)/2], busy[len(busy)/2], slices.Min(c.faults))
	}
	resident, err := idle(all[0].path, dir)
	if err != nil {
		return err
	}
	fmt.Printf("\nAn idle server has %.1f MB of resident memory after %v.\n", resident, settled)
	cold := command{path: "go", args: []string{"run", "./cmd/firn", "next"}, env: []string{stateIn(filepath.Join(dir, "cold")), "GOCACHE=" + filepath.Join(dir, "cache")}}
	if err := cold.run(); err != nil {
		return err
	}
	fmt.Printf("\nThe first id of a checkout with an empty build cache takes %.0f s, and %.0f s of processor time.\n", cold.wall[0]/1000, cold.busy[0]/1000)
	return nil
}

// A command is a program that is run again and again.
type command struct {
	name, path string
	args       []string
	env        []string

	wall, busy []float64 // milliseconds
	faults     []int64
	said       string // by the last run, on standard error
}

// commands builds firn and the small program into a folder, whose store they share.
func commands(dir string) ([]*command, error) {
	firn, small := filepath.Join(dir, "firn"), filepath.Join(dir, "small")
	if err := errors.Join(program.Build(firn, "cmd/firn"), program.Build(small, "bench/report/small")); err != nil {
		return nil, err
	}
	env := []string{stateIn(dir)}
	return []*command{
		{name: "`firn next`", path: firn, args: []string{"next"}, env: env},
		{name: "`firn version`", path: firn, args: []string{"version"}, env: env},
		{name: "a small program with the same lease", path: small, env: env},
	}, nil
}

// stateIn sets where the default store is.
func stateIn(dir string) string { return "XDG_STATE_HOME=" + filepath.Join(dir, "state") }

// runEach runs each command once.
func runEach(all []*command) error {
	for _, c := range all {
		if err := c.run(); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) run(env ...string) error {
	cmd := exec.Command(c.path, c.args...)
	cmd.Env = slices.Concat(os.Environ(), c.env, env)
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, &said)
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	c.wall = append(c.wall, ms(time.Since(began)))
	c.busy = append(c.busy, ms(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.faults = append(c.faults, int64(used.Minflt)) //nolint:unconvert // int32 on some systems
	}
	c.said = said.String()
	return nil
}

func sorted(v []float64) []float64 { return slices.Sorted(slices.Values(v)) }

// idle returns the resident memory of a server without requests, in megabytes.
func idle(firn, dir string) (mb float64, err error) {
	address, err := program.FreeAddress()
	if err != nil {
		return 0, err
	}
	p := &program.Program{
		Address: address, Path: firn, Args: []string{"serve", "--http", address, "--resp", "127.0.0.1:0"},
		Env: []string{stateIn(dir)}, Says: program.Serving,
	}
	if err := p.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.End()) }()
	time.Sleep(settled)
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID()), "status"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	var kb float64
	_, err = fmt.Sscan(string(rest), &kb)
	return kb / 1000, err
}
