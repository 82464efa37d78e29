package main

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// A guard is a process that kills the issuers when this process ends, even in a crash: the guard's
// input then ends. Its last line has the process ids.
type guard struct {
	mu    sync.Mutex
	in    io.WriteCloser
	cmd   *exec.Cmd
	lives map[string]int // process ids, by name
}

func newGuard() (*guard, error) {
	g := &guard{lives: map[string]int{}}
	g.cmd = exec.Command("sh", "-c", `last=; while read -r pids; do last=$pids; done; [ -z "$last" ] || kill -9 $last`)
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that an interrupt at the terminal does not end it
	var err error
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return g, g.cmd.Start()
}

// watch adds a process to kill; 0 removes the process with that name.
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

// end ends the guard without killing.
func (g *guard) end() error {
	if _, err := fmt.Fprintln(g.in); err != nil {
		return err
	}
	if err := g.in.Close(); err != nil {
		return err
	}
	return g.cmd.Wait()
}
