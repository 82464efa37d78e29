package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
)

// starting answers while workers are taken.
func starting(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/livez" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n")) // a failed write means that the client has gone
		return
	}
	f := failure.New(http.StatusServiceUnavailable, "starting", "the server is starting: it takes its workers")
	f.Retry = time.Second
	fail(w, r, f)
}

// fail answers what is refused before it comes to who serves it, in the way of its protocol.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if !rpc.Fail(w, r, err) {
		httpapi.Fail(w, err)
	}
}

// loading is what Redis says while it starts, and clients know.
const loading = "-LOADING the server is starting: it takes its workers\r\n"

// openWhile opens the server, if it is not open, and tells clients of the Redis protocol meanwhile to try
// again. Afterwards the listener is as it was. Without RESP there is nobody to tell.
func (s *Server) openWhile(ctx context.Context, under, bounded net.Listener, open func(context.Context) error) error {
	if open == nil {
		return nil
	}
	timed, ok := under.(interface{ SetDeadline(time.Time) error })
	if !ok { // it can not be taken back: clients wait
		return open(ctx)
	}
	told, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { tellAll(told, bounded, &group) })
	err := open(ctx)
	end()
	err = errors.Join(err, timed.SetDeadline(time.Now()))
	group.Wait()
	if reset := timed.SetDeadline(time.Time{}); reset != nil {
		err = errors.Join(err, fmt.Errorf("listen for the redis protocol: %w", reset))
	}
	return err
}

// tellAll tells clients until ctx ends, and the listener's deadline with it.
func tellAll(ctx context.Context, on net.Listener, group *sync.WaitGroup) {
	for ctx.Err() == nil {
		c, err := on.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // of the deadline, or for want of descriptors
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		group.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			tell(c)
		})
	}
}

// tell answers the first thing that a client says.
func tell(c net.Conn) {
	defer func() { _ = c.Close() }() // there is nothing that it could be owed
	var first [512]byte
	if c.SetDeadline(time.Now().Add(defaultTimeouts.header)) != nil {
		return
	}
	if _, err := c.Read(first[:]); err == nil {
		_, _ = c.Write([]byte(loading)) // it may have gone
	}
}
