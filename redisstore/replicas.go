package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// A record holds how many replicas must have a write: see the scripts.
type record struct {
	n     int
	since int64
	at    string
}

// A look is a server's view of its replicas.
type look struct {
	record // of the set
	syncs
	history   string // the server's: a promotion begins another
	attached  int
	online    int
	addresses int // of the online replicas
	primary   int // 1, or 0
	promoted  int // 1 if its former primary may wait for no replica, so that n is one more than it has
}

// syncs tell whether replicas connected between two moments: see the scripts.
type syncs struct{ began, commands int }

func (s syncs) changed(earlier syncs) bool {
	return s.began != earlier.began || s.commands < earlier.commands
}

// read parses a script's answer.
func (l *look) read(answer *redis.Cmd) error {
	return read(answer, &l.n, &l.since, &l.at, &l.began, &l.commands, &l.history, &l.attached, &l.online, &l.addresses, &l.primary, &l.promoted)
}

func read(answer *redis.Cmd, fields ...any) error {
	list, err := answer.Slice()
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(fmt.Sprintln(list...), fields...); err != nil {
		return fmt.Errorf("%w: the script answers %v", store.ErrUnavailable, list)
	}
	return nil
}

// learn merges r into this handle's record and returns the latest record it has seen. Each write sends
// that, so that it survives a FLUSHALL.
func (s *Store) learn(r record) record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.since > s.latest.since || r.since == s.latest.since && r.n > s.latest.n {
		s.latest = r
	}
	return s.latest
}

func (s *Store) known() record { return s.learn(record{}) }

func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// Replicas are those of the server that has the set.
type Replicas struct {
	// The most that were ever attached, or the number an operator set. If the server was promoted while
	// none were recorded, it is one more than are online: the former primary may be alive.
	Recorded int       `json:"recorded"`
	Lowered  time.Time `json:"lowered,omitzero"`
	Attached int       `json:"attached"` // now; they may still load
	Online   int       `json:"online"`   // those that have acknowledged something; the first time they may still be behind
	CaughtUp int       `json:"caughtUp"` // those that have everything; no other must be promoted
	promoted bool
}

// Replicas returns how many replicas are recorded, and how many there are now. It writes something that
// changes nothing, and waits up to [Config.ConfirmTimeout] until all have it.
func (s *Store) Replicas(ctx context.Context) (Replicas, error) {
	return backend.Do(ctx, s.calls, "count the replicas of", s.cfg.Key, func(ctx context.Context) (Replicas, error) {
		there, err := s.count(ctx)
		if err == nil {
			there.CaughtUp, err = s.caughtUp(ctx, there)
		}
		return there, err
	})
}

// caughtUp returns how many of the attached replicas have all that was written so far. That a replica is
// online says less: its first acknowledgement may be of a copy that is minutes old.
func (s *Store) caughtUp(ctx context.Context, there Replicas) (int, error) {
	if there.Attached == 0 {
		return 0, nil
	}
	node, err := s.node(ctx)
	if err != nil {
		return 0, err
	}
	conn := node.Conn() // WAIT waits for the writes of its own
	defer func() { _ = conn.Close() }()
	pipe := conn.Pipeline()
	touched := touch.Eval(ctx, pipe, []string{s.cfg.Key})
	waited := pipe.Do(ctx, "wait", there.Attached, s.cfg.ConfirmTimeout.Milliseconds())
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := touched.Err(); err != nil {
		return 0, err
	}
	n, err := waited.Int()
	return min(n, there.Attached), err
}

func (s *Store) count(ctx context.Context) (there Replicas, err error) {
	var l look
	if err := l.read(compareAndSwap.Run(ctx, s.client, []string{s.cfg.Key}, 0, 0, "-", "look")); err != nil {
		return there, err
	}
	if l.promoted == 0 {
		s.learn(record{max(l.n, l.addresses), l.since, l.at}) // so that a write need not be sent twice
	}
	there = Replicas{Recorded: l.n, Attached: l.attached, Online: l.online, promoted: l.promoted == 1}
	if l.since > 0 {
		there.Lowered = time.UnixMicro(l.since)
	}
	return there, nil
}

// answerHolds is how long, by the server's clock, a number may still be set after Sentinels or cluster
// agreed: a server that is stopped with the request in flight, and replaced, must not execute it later.
const answerHolds = 3 * time.Second

// MaxReplicas bounds how many replicas a write can wait for.
const MaxReplicas = 100

// SetReplicas sets how many replicas must have a write, for all handles and for good. Use it to lower the
// number after replicas were removed; it rises by itself. A lower number begins a new life of the store,
// so that newcomers wait for holders.
//
// Lowering is safe only if no other server with this data is a primary, or may become one with its
// present data. So the error is [store.ErrRefused] if the server is not the primary named by the URL's
// Sentinels or the cluster, if they know more than n replicas, including ones that are gone, if more are
// online, or if Sentinels that the URL does not name watch the server. Without Sentinels or a cluster you
// must make sure of that yourself.
func (s *Store) SetReplicas(ctx context.Context, n int) error {
	if n < 0 || n > MaxReplicas {
		return fmt.Errorf("redisstore: %w: %d replicas: 0 to %d are allowed", store.ErrRefused, n, MaxReplicas)
	}
	_, err := backend.Do(ctx, s.calls, "set the replicas of", s.cfg.Key, func(ctx context.Context) (life string, err error) {
		run, asked, err := s.authority(ctx, n)
		if err != nil {
			return "", err
		}
		life, err = s.write(ctx, setReplicas, n, asked.Add(answerHolds).UnixMicro(), run)
		if redis.HasErrorPrefix(err, "ONLINE ") {
			online := strings.TrimPrefix(err.Error(), "ONLINE ")
			err = fmt.Errorf("%w: %d replicas, but %s online: stop the ones to remove first", store.ErrRefused, n, online)
		}
		return life, err
	})
	return err
}
