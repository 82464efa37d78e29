package rpc

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// stall is how long a client may leave a message of a stream unread, and how long it may be behind the least pace.
	stall = 30 * time.Second
	// pace is the least pace of a stream: a message in this time. Without it, a client that reads one every 29 s would
	// keep its place.
	pace = time.Second
	// hurry is the same during shutdown; it must be shorter than the shutdown timeout.
	hurry = 5 * time.Second
)

// lag is how far the client of a stream is behind the least pace.
type lag struct {
	stall  time.Duration
	behind time.Duration // how long the client has kept the server waiting, less pace for each message
}

// left returns how long the next message may wait for the client.
func (l *lag) left() time.Duration { return l.stall - l.behind }

// waited counts how long a message has waited. It reports whether the next one may wait less.
func (l *lag) waited(d time.Duration) bool {
	l.behind = max(0, l.behind+d-pace)
	return d > pace
}

// steering moves the write deadline of a stream: the server's timeout for one answer would
// otherwise end it.
type steering struct {
	control *http.ResponseController
	unhook  func() bool
	lag
	next    time.Time // when to move the deadline again
	sending time.Time // since when a message waits for the client

	mu    sync.Mutex // guards the fields below; held while the deadlines move
	hurry bool
	over  bool // the response must not be used any more
}

// steer returns the steering of a stream; its handler must release it. During shutdown a
// client that reads nothing has less time.
func (a *API) steer(ctx context.Context) (*steering, error) {
	s := &steering{control: http.NewResponseController(exchangeIn(ctx).response), lag: lag{stall: a.stall}}
	s.sending = time.Now()
	if err := s.extend(); err != nil {
		return nil, err
	}
	s.unhook = context.AfterFunc(a.ending, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hurry = true
		if !s.over {
			// If this fails, the earlier deadline stays in effect.
			_ = s.control.SetWriteDeadline(time.Now().Add(a.hurry))
		}
	})
	return s, nil
}

// extend gives the client time to read the next message, what is left of stall.
func (s *steering) extend() error {
	now := time.Now()
	s.sending = now
	if now.Before(s.next) {
		return nil
	}
	left := s.left()
	s.next = now.Add(left / 8) // moving it more often would cost more than the ids
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hurry {
		return nil
	}
	if err := s.control.SetWriteDeadline(now.Add(left)); err != nil {
		return fmt.Errorf("move the deadline of a stream: %w", err)
	}
	return nil
}

// sent counts how long a message has waited for the client.
func (s *steering) sent() {
	if s.waited(time.Since(s.sending)) {
		s.next = time.Time{} // the client has less time for the next
	}
}

// release ends the steering, before the handler returns.
func (s *steering) release() {
	s.unhook()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
