package server

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/firn-id/firn/store/memstore"
)

// New returns a server that has a worker for every pool that the settings name. Close gives them back.
func New(ctx context.Context, c Config) (*Server, error) {
	s, err := prepare(c)
	if err != nil {
		return nil, err
	}
	err = s.open(ctx, c)
	if err == nil {
		err = s.service.Joined(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Serve is Start for a server of New, which it leaves open. Until it calls opened, requests are answered that it starts.
func (s *Server) Serve(ctx context.Context, on Listeners, opened func()) error {
	open := func(context.Context) error { return nil }
	return s.serve(ctx, on, open, func() {}, opened)
}

// SetTimeouts shortens the timeouts; call it before Serve.
func (s *Server) SetTimeouts(header, read, write, idle time.Duration) {
	s.timeouts.header, s.timeouts.read, s.timeouts.write, s.timeouts.idle, s.timeouts.ping = header, read, write, idle, idle
}

// SetDrain sets how long a shutdown waits for requests in flight; call it before Serve.
func (s *Server) SetDrain(longest time.Duration) { s.timeouts.drain = longest }

// LongestStop is how long a server takes at most from the end of --linger until all requests have ended.
var LongestStop = settle + defaultTimeouts.drain

// SetWall sets the clock that checks when certificates expire; call it before Serve.
func (s *Server) SetWall(wall func() time.Time) { s.certificates.wall = wall }

// Panic makes each later request over HTTP fail in the server's own code; call it while the server serves.
func (s *Server) Panic() {
	s.answerWith(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault of ours") }))
}

// NewPatientConn is newPatientConn.
var NewPatientConn = newPatientConn

// Patterns returns the patterns of the mux, which the standard library does not tell.
func (s *Server) Patterns() (all []string, err error) {
	mux := http.NewServeMux()
	_, err = s.routes(mux, memstore.New(nil))
	add := func(list reflect.Value) {
		for i := range list.Len() {
			all = append(all, list.Index(i).Elem().FieldByName("str").String())
		}
	}
	index := reflect.ValueOf(mux).Elem().FieldByName("index")
	for each := index.FieldByName("segments").MapRange(); each.Next(); {
		add(each.Value())
	}
	add(index.FieldByName("multis"))
	slices.Sort(all)
	return slices.Compact(all), err
}
