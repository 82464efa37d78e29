package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/bench/internal/program"
)

// A target is the protocol, kind and address that a load uses.
type target struct{ protocol, kind, url string }

// A result is what firn bench prints.
type result struct {
	PerSecond float64       `json:"ids_per_second"` // equals calls per second: each call takes one id
	Timed     int64         `json:"calls_timed"`
	Median    time.Duration `json:"median_ns"`
	P99       time.Duration `json:"p99_ns"`
	P999      time.Duration `json:"p999_ns"`
	Max       time.Duration `json:"max_ns"`
	Slow      int64         `json:"calls_over_50ms"`
}

// merge returns the medians of rounds, and the greatest of all maxima.
func merge(rounds []result) (m result) {
	for _, r := range rounds {
		m.Timed += r.Timed
		m.Slow += r.Slow
		m.Max = max(m.Max, r.Max)
	}
	m.PerSecond = program.Median(rounds, func(r result) float64 { return r.PerSecond })
	m.Median = program.Median(rounds, func(r result) time.Duration { return r.Median })
	m.P99 = program.Median(rounds, func(r result) time.Duration { return r.P99 })
	m.P999 = program.Median(rounds, func(r result) time.Duration { return r.P999 })
	return m
}

// bench puts a load on a target: calls at a rate or, if rate is 0, one call after the other. A failed
// call is an error.
func (s *server) bench(t target, set settings, rate int) (r result, err error) {
	args := []string{"bench", "--json", "--callers", strconv.Itoa(set.callers), "--duration", set.duration.String(), t.url}
	if rate > 0 {
		args = append(args, "--rate", fmt.Sprintf("%d/s", rate))
	}
	out, err := exec.Command(s.Path, args...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return r, fmt.Errorf("firn %s: %w", strings.Join(args, " "), err)
	}
	return r, json.Unmarshal(out, &r)
}

// seconds finds, in the metrics of the server, how many requests of a protocol took up to
// 50 ms, and how many there were.
var seconds = regexp.MustCompile(`firn_request_seconds_(?:bucket\{protocol="(\w+)",le="0.05"\}|count\{protocol="(\w+)"\}) (\d+)`)

// slow returns how many requests took longer than 50 ms in the server, by protocol: from reading the
// request to the finished answer.
func (s *server) slow() (map[string]int, error) {
	answer, err := http.Get("http://" + s.Address + "/metrics")
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	names := map[string]string{"http": "HTTP", "resp": "RESP", "rpc": "gRPC"}
	slow := map[string]int{}
	for _, m := range seconds.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(m[3])
		if err != nil {
			return nil, err
		}
		slow[names[m[1]]] -= n
		slow[names[m[2]]] += n
	}
	delete(slow, "") // from the group that did not match
	if len(slow) != len(names) {
		return nil, fmt.Errorf("GET /metrics: %s, and no firn_request_seconds of three protocols", answer.Status)
	}
	return slow, nil
}

// during puts a load on all targets, makes an event happen meanwhile, and returns the results of the
// loads and how late a timer was.
func during(set settings, s *server, targets []target, happen func() error) (found []result, late time.Duration, err error) {
	var (
		loads sync.WaitGroup
		errs  = make([]error, len(targets)+1)
	)
	found = make([]result, len(targets))
	stop := timer()
	for i, t := range targets {
		loads.Go(func() { found[i], errs[i] = s.bench(t, set, set.rate) })
	}
	time.Sleep(set.duration / 4) // in the middle of the load
	errs[len(targets)] = happen()
	loads.Wait()
	return found, stop(), errors.Join(errs...)
}

// timer sleeps a millisecond at a time until the returned function is called, which returns by how much
// the longest sleep was too long. For that time this program got no processor, and the server and
// its load may have been without one as well.
func timer() (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	late := make(chan time.Duration)
	go func() {
		var most time.Duration
		for ctx.Err() == nil {
			began := time.Now()
			time.Sleep(time.Millisecond)
			most = max(most, time.Since(began)-time.Millisecond)
		}
		late <- most
	}()
	return func() time.Duration { cancel(); return <-late }
}
