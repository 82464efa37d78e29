package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/backend"
)

// CompareAndSwap implements [store.Store]. A write is confirmed if, in one exchange on one
// connection, the server applied it, all replicas that were ever attached (or [Config.Replicas])
// acknowledged it within [Config.ConfirmTimeout], and the server was the primary before and
// after that, with no other replica online or recorded. Applied and not confirmed is [store.ErrUnavailable].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	was := ""
	if old != 0 {
		was = backend.Digits(old)
	}
	return s.calls.Swap(ctx, key, value, func(ctx context.Context, drawn store.Revision) (life string, err error) {
		return s.write(ctx, compareAndSwap, key, was, backend.Digits(drawn), value)
	})
}

const (
	maxMoves  = 6                     // that a write follows its set through a cluster
	moveWait  = 10 * time.Millisecond // before the first; it doubles
	maxRounds = 4                     // that a write waits for replicas that have come
)

// write runs a script that writes, on the server that has the set, waits until that is
// confirmed, and returns the life of the store that confirmed it.
func (s *Store) write(ctx context.Context, script *redis.Script, args ...any) (life string, err error) {
	where := "single"
	if s.cluster != nil {
		where = "cluster"
	}
	for move := range maxMoves {
		node, err := s.node(ctx)
		if err != nil {
			return "", err
		}
		life, err := s.writeTo(ctx, node, script, append([]any{where}, args...)...)
		switch {
		case redis.HasErrorPrefix(err, "EMPTY "):
			where, err = "alone", s.alone(ctx, node)
		case s.moved(err): // so the script did not run
			err = s.follow(ctx, moveWait<<move)
		default:
			return life, err
		}
		if err != nil {
			return "", err
		}
	}
	return "", errMoving
}

var errMoving = fmt.Errorf("%w: the cluster is moving the key: try again, or finish the move", store.ErrUnavailable)

// moved reports whether a server of a cluster says that another one has the key, or is to get it:
// a copy may be there already, and the cluster settle on that.
func (s *Store) moved(err error) bool {
	return s.cluster != nil && (redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK ") || redis.HasErrorPrefix(err, "MOVING "))
}

// follow waits and then reloads which server of the cluster has what, as ForEachMaster does
// first of all.
func (s *Store) follow(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return store.ContextError(ctx)
	case <-time.After(wait):
	}
	return s.cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
}

// writeTo is write on one server, over one connection, as WAIT waits for what its own
// connection has written. It alone decides what is confirmed. It does all again if a replica
// has come meanwhile, or the server has another history and so may have lost the write.
func (s *Store) writeTo(ctx context.Context, node *redis.Client, script *redis.Script, args ...any) (life string, err error) {
	conn := node.Conn()
	defer func() { _ = conn.Close() }() // back to the pool, or broken
	deadline := time.Now().Add(s.cfg.ConfirmTimeout)
	asked, excess := s.wanted(s.known().n), 0
	for n := 1; ; n++ {
		x, err := s.exchange(ctx, conn, deadline, asked, script, args...)
		if err != nil && n == 1 && x.life == "" {
			return "", err // of the script
		}
		need, all := s.wanted(x.n), s.wanted(max(x.n, x.after.n, x.after.online))
		if n == 1 {
			excess = x.excess
		}
		switch {
		case err != nil:
		case need > 0 && x.after.excess > excess:
			err = errors.New("a replica has come back while it waited, and may have acknowledged it twice")
		case x.after.primary == 0:
			err = errors.New("the server has become a replica")
		case x.acknowledged >= need && need == all && x.after.history == x.history:
			return x.life, nil
		case n == maxRounds, ctx.Err() != nil, time.Now().After(deadline), asked >= all && x.acknowledged < all:
			err = fmt.Errorf("%d of %d replicas have it after %v: start the missing ones, lower the number with firn store replicas, or wait for fewer with ?replicas=N",
				x.acknowledged, all, s.cfg.ConfirmTimeout)
		}
		if err != nil {
			// As text: the kind of a later command's error says nothing of the write.
			return "", fmt.Errorf("%w: applied, but not confirmed: %s", store.ErrUnavailable, err.Error())
		}
		if n := max(x.n, x.after.online); x.acknowledged >= n { // two with one address are two, then
			s.learn(record{n: n, since: x.since})
		}
		asked = all
	}
}

// wanted is how many of all replicas must have a write.
func (s *Store) wanted(all int) int {
	if s.cfg.Replicas != 0 {
		return max(s.cfg.Replicas, 0)
	}
	return all
}

// An exchange is one pipeline: a script, WAIT and a look.
type exchange struct {
	record              // of the replicas that must have the write
	excess       int    // connections of replicas beside another from the same address, at the script
	history      string // the server's, at the script: another one begins when it is promoted
	life         string // of the store
	acknowledged int
	after        look // the wait
}

func (s *Store) exchange(ctx context.Context, conn *redis.Conn, deadline time.Time, asked int, script *redis.Script, args ...any) (x exchange, err error) {
	known := s.known()
	keys, args := []string{s.cfg.Key}, append([]any{known.n, known.since}, args...)
	var wrote, waited, looked *redis.Cmd
	for _, run := range []func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd{script.EvalSha, script.Eval} {
		wait := max(time.Until(deadline).Milliseconds(), 1) // 0 would be for ever
		pipe := conn.Pipeline()
		wrote = run(ctx, pipe, keys, args...)
		waited = pipe.Do(ctx, "wait", asked, wait)
		looked = run(ctx, pipe, keys, 0, 0, "look")
		_, _ = pipe.Exec(ctx) // each command has its own error
		if !redis.HasErrorPrefix(wrote.Err(), "NOSCRIPT") {
			break
		}
		// It may have waited all the same, for replicas that are gone.
		deadline = time.Now().Add(s.cfg.ConfirmTimeout)
	}
	if err := read(wrote, &x.n, &x.since, &x.excess, &x.history, &x.life); err != nil {
		return x, err
	}
	s.learn(x.record)
	x.acknowledged, err = waited.Int()
	return x, errors.Join(err, x.after.read(looked))
}
