package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// A process is a program that listens on an address.
type process struct {
	address string
	program string
	args    []string
	log     *journal
	cmd     *exec.Cmd
}

// start runs the program and waits until it listens.
func (p *process) start() error {
	p.cmd = exec.Command(p.program, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	err := wait(p.program+" listens on "+p.address, func() bool {
		conn, err := net.DialTimeout("tcp", p.address, time.Second)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	if err != nil {
		return errors.Join(err, errors.New(p.log.String()), p.kill())
	}
	return nil
}

// kill ends it at once, end by SIGTERM.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = p.cmd.Wait() // it was killed, as it says
	return nil
}

func (p *process) end() error {
	if p.cmd.ProcessState != nil {
		return nil // it was killed, and an error is why nobody started it again
	}
	return errors.Join(p.cmd.Process.Signal(syscall.SIGCONT), p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait())
}

// A journal keeps what a process says.
type journal struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said.String()
}

// count returns how often something was said.
func (j *journal) count(words string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Count(j.said.Bytes(), []byte(words))
}

// freeAddress returns an address on loopback where nothing listens.
func freeAddress() (string, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startRedis starts a Redis that keeps every write.
func startRedis(dir string) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	p := &process{address: address, program: "redis-server", log: &journal{}, args: []string{
		"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
	}}
	return p, p.start()
}

// A server is firn serve.
type server struct {
	process
	firn   string
	store  string
	resp   string
	config string

	version int // of the settings of generator and ranges
	extra   int // namespaces
}

// startServer starts firn serve.
func startServer(dir, firn, redis string) (*server, error) {
	s := &server{firn: firn, store: "redis://" + redis + "/0", config: filepath.Join(dir, "firn.yaml")}
	var err error
	if s.resp, err = freeAddress(); err != nil {
		return nil, err
	}
	if s.address, err = freeAddress(); err != nil {
		return nil, err
	}
	if err := s.configure(); err != nil {
		return nil, err
	}
	s.program, s.log = firn, &journal{}
	s.args = []string{"serve", "--config", s.config, "--http", s.address, "--resp", s.resp}
	if err := s.start(); err != nil {
		return nil, err
	}
	// It listens before it has a worker, which in a store where nobody was before takes a
	// few seconds.
	if err := wait("the server serves", func() bool { return s.log.count("msg=serving") > 0 }); err != nil {
		return nil, errors.Join(err, errors.New(s.log.String()), s.kill())
	}
	return s, nil
}

// configure writes the configuration. The window is short, so that fences are moved
// in every measurement.
func (s *server) configure() error {
	text := fmt.Sprintf("store: %s\nnamespaces:\n  orders: {window: 20s, ahead: %dms}\n  items: {kind: segment, max_step: %d}\n",
		s.store, 10+s.version, 1_000_000+s.version)
	for i := range s.extra {
		text += fmt.Sprintf("  extra-%d: {kind: segment, prefix: e%d}\n", i, i)
	}
	return os.WriteFile(s.config, []byte(text), 0o600)
}

// targets are a namespace over all protocols.
func (s *server) targets(namespace string) []target {
	kind := map[string]string{"orders": "snowflake", "items": "segment"}[namespace]
	return []target{
		{"HTTP", kind, "http://" + s.address + "/" + namespace},
		{"RESP", kind, "redis://" + s.resp + "/" + namespace},
		{"gRPC", kind, "grpc://" + s.address + "/" + namespace},
	}
}
