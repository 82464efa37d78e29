package rpc

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// stall is how long a client may leave a message of a stream untaken.
	stall = 30 * time.Second
	// hurry is the same while the server shuts down, within its time for that.
	hurry = 5 * time.Second
)

// steering moves the deadlines of a stream, which would else end with the time that the
// server gives to one answer.
type steering struct {
	control *http.ResponseController
	stall   time.Duration
	unhook  func() bool
	next    time.Time // when the deadline is worth moving again

	mu    sync.Mutex // guards below; held while the deadlines are moved
	hurry bool
	over  bool // the response may not be touched any more
}

// steer returns the steering of a stream, which its handler releases. When the
// server shuts down a client that takes nothing has less time.
func (a *API) steer(ctx context.Context) (*steering, error) {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errNoExchange
	}
	s := &steering{control: http.NewResponseController(e.response), stall: a.stall}
	if err := s.extend(); err != nil {
		return nil, err
	}
	s.unhook = context.AfterFunc(a.ending, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hurry = true
		if !s.over {
			// Without effect the deadline before holds.
			_ = s.control.SetWriteDeadline(time.Now().Add(a.hurry))
		}
	})
	return s, nil
}

// extend gives the client time to take what is sent next.
func (s *steering) extend() error {
	now := time.Now()
	if now.Before(s.next) {
		return nil
	}
	s.next = now.Add(s.stall / 8) // oftener would cost more than the ids
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hurry {
		return nil
	}
	if err := s.control.SetWriteDeadline(now.Add(s.stall)); err != nil {
		return fmt.Errorf("move the deadline of a stream: %w", err)
	}
	return nil
}

// release ends the steering, before the handler returns.
func (s *steering) release() {
	s.unhook()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
