package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/firn-id/firn/bench/internal/ledger"
)

// A stream describes how callers request ids of a namespace.
type stream struct {
	namespace string
	count     int           // ids a call
	pause     time.Duration // between calls
	callers   int           // of each server
}

var (
	generated = []stream{
		{namespace: "steady", count: 2000, callers: 1},
		{namespace: "wall", count: 2000, callers: 1},
	}
	counted = []stream{
		{namespace: "segment", count: 2000, pause: 20 * time.Millisecond, callers: 1},
		{namespace: "sequence", count: 20, pause: 5 * time.Millisecond, callers: 2},
	}
)

// A caller requests ids of one namespace from one server, one call after the other.
type caller struct {
	world  *world
	issuer *issuer
	stream stream
	url    string
	client *http.Client
	out    *ledger.Writer
	in     *bufio.Reader
}

// answerTime bounds a call: a paused process answers when it continues.
const answerTime = 30 * time.Second

func (w *world) newCaller(i *issuer, s stream, n int) (*caller, error) {
	out, err := w.ledger(s.namespace, fmt.Sprintf("%s-%d", i.name, n))
	if err != nil {
		return nil, err
	}
	return &caller{
		world: w, issuer: i, stream: s, out: out, in: bufio.NewReaderSize(nil, 64<<10),
		url:    fmt.Sprintf("http://%s/v1/ids/%s?count=%d", i.Address, s.namespace, s.count),
		client: &http.Client{Transport: &http.Transport{DisableCompression: true}},
	}, nil
}

// run makes calls until the context ends.
func (c *caller) run(ctx context.Context) error {
	defer c.client.CloseIdleConnections()
	var runs ledger.Runs
	for ctx.Err() == nil {
		if !c.issuer.up.Load() {
			rest(ctx, 5*time.Millisecond)
			continue
		}
		var err error
		asked := c.world.now()
		runs, err = c.call(ctx, runs[:0])
		if failed := c.world.receive(c.stream.namespace, c.out, asked, runs); failed != nil {
			return failed
		}
		if err != nil {
			c.world.refusals.Add(1)
			rest(ctx, 20*time.Millisecond)
		}
		rest(ctx, c.stream.pause)
	}
	return nil
}

// call makes a call. Ids of an incomplete answer count, since they were issued.
func (c *caller) call(ctx context.Context, runs ledger.Runs) (ledger.Runs, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, nil)
	if err != nil {
		return runs, err
	}
	request.Header.Set("Accept", "text/plain")
	answer, err := c.client.Do(request)
	if err != nil {
		return runs, err
	}
	defer func() { _ = answer.Body.Close() }() // it has been read, or the call has failed
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, answer.Body) // so that the connection can be used again
		return runs, fmt.Errorf("%s: %s", c.url, answer.Status)
	}
	c.in.Reset(answer.Body)
	return readIDs(c.in, runs)
}

// readIDs reads ids, one a line, to the end.
func readIDs(in *bufio.Reader, runs ledger.Runs) (ledger.Runs, error) {
	for {
		var err error
		if runs, err = readID(in, runs); errors.Is(err, io.EOF) {
			return runs, nil
		} else if err != nil {
			return runs, err
		}
	}
}

// errNoID means that a line is not an id.
var errNoID = errors.New("not an id")

// readID reads a line. An incomplete line is not an id.
func readID(in *bufio.Reader, runs ledger.Runs) (ledger.Runs, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return runs, err
	}
	var id int64
	for _, digit := range line[:len(line)-1] {
		if digit < '0' || digit > '9' {
			return runs, fmt.Errorf("%w: %q", errNoID, line)
		}
		id = id*10 + int64(digit-'0')
	}
	return runs.Add(id), nil
}

// rest waits for d, or until the context ends.
func rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
