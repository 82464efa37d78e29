package main

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// A guard is a process that kills the issuers when this one ends in whatever way: its
// input ends then. Its last line has the process ids.
type guard struct {
	mu    sync.Mutex
	in    io.WriteCloser
	cmd   *exec.Cmd
	lives map[string]int // process ids, by name
}

func newGuard() (*guard, error) {
	g := &guard{lives: map[string]int{}}
	g.cmd = exec.Command("sh", "-c", `last=; while read -r pids; do last=$pids; done; [ -z "$last" ] || kill -9 $last`)
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is not for it
	var err error
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return g, g.cmd.Start()
}

// watch has it kill a process; 0 takes the one of that name off.
func (g *guard) watch(name string, pid int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.lives, name)
	if pid != 0 {
		g.lives[name] = pid
	}
	line := ""
	for _, pid := range g.lives {
		line += fmt.Sprint(pid, " ")
	}
	_, err := fmt.Fprintln(g.in, line)
	return err
}

// end dismisses it.
func (g *guard) end() error {
	if _, err := fmt.Fprintln(g.in); err != nil {
		return err
	}
	if err := g.in.Close(); err != nil {
		return err
	}
	return g.cmd.Wait()
}
