// Package respapi is the Redis protocol interface of the server: RESP2 and RESP3 with
// pipelining, so that every Redis client can use Firn.
//
// Each connection has a goroutine that reads the available input, answers all commands in it
// and writes the answers together. An idle connection holds no buffers. For repeated
// commands in a pipeline, such as INCR of one namespace, it takes the ids in one call.
package respapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
)

// Bounds on the resources of a connection.
const (
	// keepAlive is how often a silent peer gets a probe; after keepAliveCount unanswered
	// probes the connection is dead.
	keepAlive      = 30 * time.Second
	keepAliveCount = 4

	bufferSize = 8 << 10  // read at once
	flushAt    = 16 << 10 // bytes of answers to write before the next command is read
	smallFlush = 4 << 10  // bytes of answers that are not charged to a client that does not read them
	maxRun     = 1024     // equal commands that are answered together, and ids whose memory is kept for the next commands
)

// The limits of a command before and after its client is known, as in Redis.
var (
	unauthenticatedLimits = commandLimits{args: 10, bulk: 16 << 10, command: 64 << 10}
	callerLimits          = commandLimits{args: 1024, bulk: 32 << 10, command: 64 << 10}
)

// maxBuffer lets a parser see that a command is too long.
const maxBuffer = 64<<10 + 64

// Config is the configuration of a [Server].
type Config struct {
	Service *issuing.Service
	Log     *slog.Logger
	Refused func(from string, err error) // called after a TLS handshake that failed; may be nil

	// ReadTimeout bounds how long a command may take to arrive, and how long a client may
	// take to authenticate. Default: 10s.
	ReadTimeout time.Duration
	// WriteTimeout bounds how long a client may leave its answers unread. Default: 10s.
	WriteTimeout time.Duration
	// TransactionTimeout bounds how long a transaction may stay open. Default: 20s.
	TransactionTimeout time.Duration
	// FinalAnswers is how long after the begin of a shutdown the commands that clients have sent are
	// answered. Later ones are refused. Default: 3s.
	FinalAnswers time.Duration
}

const (
	defaultReadTimeout  = 10 * time.Second
	defaultWriteTimeout = 10 * time.Second
	defaultFinalAnswers = 3 * time.Second
)

// Server is the interface. Make one with [New]. Its methods may be called concurrently.
type Server struct {
	cfg       Config
	front     *issuing.Front
	table     *table
	started   time.Time
	lastID    atomic.Int64
	commands  atomic.Int64      // answered
	warned    *telemetry.Seldom // of HTTP, in the log
	scratches sync.Pool         // of *scratch

	ctx      context.Context // of requests; ends with Close
	cancel   context.CancelFunc
	draining atomic.Bool
	late     atomic.Bool // the shutdown began FinalAnswers ago

	mu        sync.Mutex // guards all below
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	group     sync.WaitGroup // a member for each of conns
}

// New returns the interface to a service. Close ends it.
func New(cfg Config) *Server {
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, defaultReadTimeout)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, defaultWriteTimeout)
	cfg.TransactionTimeout = cmp.Or(cfg.TransactionTimeout, defaultTransactionTimeout)
	cfg.FinalAnswers = cmp.Or(cfg.FinalAnswers, defaultFinalAnswers)
	s := &Server{
		cfg: cfg, front: cfg.Service.Front(issuing.RESP), table: newTable(), started: time.Now(), warned: telemetry.NewSeldom(time.Minute),
		listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve answers on listener, which it closes, until Shutdown or Close; then it returns
// nil at once.
func (s *Server) Serve(listener net.Listener) error {
	if !s.begin(listener) {
		return listener.Close()
	}
	defer s.end(listener)
	var pause time.Duration
	for {
		c, err := listener.Accept()
		switch {
		case err == nil:
			pause = 0
			s.accept(c)
		case s.draining.Load():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("serve the redis protocol: %w", err)
		default:
			// For example without file descriptors: open connections continue.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.cfg.Log.Warn("cannot accept connections: trying again", "protocol", "resp", "error", err, "pause", pause)
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
		}
	}
}

// begin registers a listener, unless the server is shutting down.
func (s *Server) begin(listener net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		return false
	}
	s.listeners[listener] = struct{}{}
	return true
}

func (s *Server) end(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.listeners[listener]; open {
		delete(s.listeners, listener)
		_ = listener.Close() // it has failed already
	}
}

// TooMany is Redis's answer before it closes a connection above the limit; clients know it.
const TooMany = "-ERR max number of clients reached\r\n"

// accept starts the goroutine of a connection.
func (s *Server) accept(nc net.Conn) {
	s.mu.Lock()
	if s.draining.Load() {
		s.mu.Unlock()
		_ = nc.Close() // no command was read, so no answer is due
		return
	}
	c := newConn(s, nc)
	s.conns[c] = struct{}{}
	s.group.Add(1)
	s.mu.Unlock()
	go c.serve()
}

// gone removes a connection that has ended.
func (s *Server) gone(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.group.Done()
}

func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Shutdown closes the listeners and ends each connection once all commands that it has sent
// so far are answered. It returns when all have ended, or the error of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.drain()
	done := make(chan struct{})
	go func() { s.group.Wait(); close(done) }()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
}

func (s *Server) drain() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining.Swap(true) {
		time.AfterFunc(s.cfg.FinalAnswers, func() { s.late.Store(true) })
	}
	var errs []error
	for l := range s.listeners {
		delete(s.listeners, l)
		errs = append(errs, l.Close())
	}
	for c := range s.conns {
		c.wake()
	}
	return errors.Join(errs...)
}

// Close closes the listeners and cuts all connections off. It may be called again.
func (s *Server) Close() error {
	err := s.drain()
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.net.Close() // its goroutine finds out and ends
	}
	return err
}
