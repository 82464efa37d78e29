package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/httpapi"
	"github.com/firn-id/firn/cmd/firn/internal/rpc"
)

// starting answers HTTP requests until the server has its workers.
func starting(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/livez" {
		httpapi.Plain(w, "ok\n")
		return
	}
	fail(w, r, errStarting())
}

// whileStarting is starting, but a browser gets the console, which shows the error and asks again.
func (s *Server) whileStarting() http.Handler {
	other := http.HandlerFunc(starting)
	mux := http.NewServeMux()
	s.page.Register(mux, func(h http.Handler) http.Handler { return h }, other)
	mux.Handle("/{$}", s.page.Page(other))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/console/")) {
			mux.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})
}

func errStarting() *failure.Failure {
	return failure.New(http.StatusServiceUnavailable, "starting", "the server is starting: it takes its workers").After(time.Second)
}

// fail answers a request that is refused before it reaches its handler, in its own protocol.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if !rpc.Fail(w, r, err) {
		httpapi.Fail(w, err)
	}
}

// loading is the error of Redis during startup; clients know it and retry.
const loading = "-LOADING the server is starting: it takes its workers\r\n"

// openWhile calls open, and meanwhile answers clients of the Redis protocol
// that the server is loading. Afterwards the listener is as before. Without RESP it only calls open.
func (s *Server) openWhile(ctx context.Context, under, bounded net.Listener, open func(context.Context) error) error {
	timed, ok := under.(interface{ SetDeadline(time.Time) error })
	if !ok { // an Accept could not be interrupted, so clients wait
		return open(ctx)
	}
	loadingCtx, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { answerLoading(loadingCtx, bounded, &group) })
	err := open(ctx)
	end()
	err = errors.Join(err, timed.SetDeadline(time.Now()))
	group.Wait()
	if reset := timed.SetDeadline(time.Time{}); reset != nil {
		err = errors.Join(err, fmt.Errorf("listen for the redis protocol: %w", reset))
	}
	return err
}

// answerLoading answers clients until ctx has ended and the listener's deadline has passed.
func answerLoading(ctx context.Context, on net.Listener, group *sync.WaitGroup) {
	for ctx.Err() == nil {
		c, err := on.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // the deadline has passed, or descriptors have run out
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		group.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			refuseLoading(c)
		})
	}
}

// refuseLoading answers the first bytes of a client with loading.
func refuseLoading(c net.Conn) {
	defer func() { _ = c.Close() }() // no answer is outstanding
	var first [512]byte
	if c.SetDeadline(time.Now().Add(defaultTimeouts.header)) != nil {
		return
	}
	if _, err := c.Read(first[:]); err == nil {
		_, _ = c.Write([]byte(loading)) // the client may have gone
	}
}
