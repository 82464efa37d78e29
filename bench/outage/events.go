package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/firn-id/firn/store/storetest/servers"
)

// An event should not delay any request.
type event struct {
	name   string
	happen func() error
}

// away is how long the store is unreachable.
const away = 3 * time.Second

func events(s *server, redis *servers.Server) []event {
	return []event{
		{"nothing", func() error { return nil }},
		{"the store stands still for 3 s", func() error {
			redis.Pause()
			time.Sleep(away)
			redis.Resume()
			return nil
		}},
		{"the store is killed, and restarted after 3 s", func() error {
			redis.Kill()
			time.Sleep(away)
			redis.Restart()
			return nil
		}},
		{"a namespace is added, another changed", func() error { return s.reload(false) }},
		{"the settings of generator and ranges are changed", func() error { return s.reload(true) }},
		{"the worker is taken away", s.handOver},
	}
}

// reload makes the server load another configuration, several times.
func (s *server) reload(all bool) error {
	for range 3 {
		if all {
			s.version++
		}
		s.extra++
		if err := os.WriteFile(s.Config, []byte(s.configuration()), 0o600); err != nil {
			return err
		}
		seen := s.Log.Count(inForce)
		if err := s.Signal(syscall.SIGHUP); err != nil {
			return err
		}
		if err := wait("the new configuration is in force", func() bool { return s.Log.Count(inForce) > seen }); err != nil {
			return errors.Join(err, errors.New(s.Log.String()))
		}
	}
	return nil
}

// inForce is the server's log message for a new configuration.
const inForce = `msg="in force: configuration"`

// handOver takes the server's worker away and waits until it has another.
func (s *server) handOver() error {
	worker, err := s.worker()
	if err != nil {
		return err
	}
	out, err := exec.Command(s.Path, "workers", "release", strconv.FormatInt(worker, 10), "--store", s.store).CombinedOutput()
	if err != nil {
		return fmt.Errorf("firn workers release %d: %w: %s", worker, err, out)
	}
	var failed error
	err = wait("the server takes another worker", func() bool {
		var now int64
		now, failed = s.worker()
		return failed != nil || now != worker
	})
	return errors.Join(failed, err)
}

// worker returns the worker in use.
func (s *server) worker() (int64, error) {
	answer, err := http.Get("http://" + s.Address + "/v1/namespaces/orders")
	if err != nil {
		return 0, err
	}
	var state struct {
		Worker *int64 `json:"worker"`
	}
	err = json.NewDecoder(answer.Body).Decode(&state)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return 0, err
	}
	if state.Worker == nil {
		return 0, fmt.Errorf("GET /v1/namespaces/orders: %s, and no worker", answer.Status)
	}
	return *state.Worker, nil
}

// wait polls for a state.
func wait(what string, is func() bool) error {
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("timeout after 30 s: %s", what)
		}
	}
	return nil
}
