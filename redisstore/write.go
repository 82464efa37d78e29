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

// CompareAndSwap implements [store.Store]. A write is confirmed if, in one exchange on one connection,
// the server applied it, all replicas that were ever attached (or [Config.Replicas]) acknowledged it
// within [Config.ConfirmTimeout], and the server was the primary before and after that, with no other
// replica online or recorded. Applied and not confirmed is [store.ErrUnavailable].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	was := ""
	if old != 0 {
		was = backend.Digits(old)
	}
	return s.calls.Swap(ctx, key, value, func(ctx context.Context, e store.Entry) (life string, err error) {
		return s.write(ctx, compareAndSwap, key, was, backend.Digits(e.Revision), e.Value)
	})
}

const (
	maxMoves  = 6                     // how often a write follows its set through a cluster
	moveWait  = 10 * time.Millisecond // before the first move; it doubles
	maxRounds = 4                     // how often a write waits for newly attached replicas
)

// write runs a writing script on the server that has the set, and returns the life of the store that
// confirmed it.
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
		case s.moved(err): // then the script did not run
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

var errMoving = fmt.Errorf("%w: the cluster is moving the key, or its servers do not agree on which of them has it: try again, finish the move, or see redis-cli --cluster check", store.ErrUnavailable)

// moved reports whether a server of a cluster says that another server has the key, or will get it: a
// copy may be there already, and the cluster may settle on that one.
func (s *Store) moved(err error) bool {
	return s.cluster != nil && (redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK ") || redis.HasErrorPrefix(err, "MOVING "))
}

// follow waits and then reloads the cluster's map of slots; ForEachMaster does that first.
func (s *Store) follow(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return store.ContextError(ctx)
	case <-time.After(wait):
	}
	return s.cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
}

// writeTo is write on one server, over one connection: WAIT waits for the writes of its own. Only writeTo
// decides what is confirmed. It repeats everything if a replica was attached or connected again meanwhile,
// or may have done so unnoticed, or if the server has another history and so may have lost the write.
func (s *Store) writeTo(ctx context.Context, node *redis.Client, script *redis.Script, args ...any) (life string, err error) {
	conn := node.Conn()
	defer func() { _ = conn.Close() }() // return it to the pool, or drop it if it is broken
	deadline := time.Now().Add(s.cfg.ConfirmTimeout)
	asked, enough := s.wanted(s.known().n), false
	for n := 1; ; n++ {
		x, err := s.exchange(ctx, conn, deadline, asked, script, args...)
		if err != nil && n == 1 && x.life == "" {
			return "", err // the script's error
		}
		need, all := s.wanted(x.n), s.wanted(max(x.n, x.after.n, x.after.online))
		connected := need > 0 && x.after.changed(x.syncs)
		before := enough
		enough = x.acknowledged >= need && need == all && x.after.history == x.history && !connected
		again := n < maxRounds && ctx.Err() == nil && time.Now().Before(deadline)
		switch {
		case err != nil:
		case x.after.primary == 0:
			err = errors.New("the server has become a replica")
		case enough && (before || need <= min(x.addresses, x.after.addresses)):
			if err = s.keeps(ctx, conn, x.life); err == nil {
				return x.life, nil
			}
		case x.acknowledged < all && (asked >= all || !again):
			err = fmt.Errorf("%d of %d replicas have it after %v: start the missing ones, lower the number with firn store replicas, or wait for fewer with ?replicas=N",
				x.acknowledged, all, s.cfg.ConfirmTimeout)
		case !again:
			err = errors.New("its replicas changed while it waited for them, each time")
		}
		if err != nil {
			discard(ctx, conn) // the server may have lost its role to another that its address leads to
			// As text: the kind of a later command's error does not describe the write.
			text := err.Error()
			if hint, _ := classify(err); hint != "" {
				text += " (" + hint + ")"
			}
			return "", fmt.Errorf("%w: applied, but not confirmed: %s", store.ErrUnavailable, text)
		}
		if n := max(x.n, x.after.online); x.acknowledged >= n && !connected { // then two replicas with one address count as two
			s.learn(record{n, x.since, x.at})
		}
		asked = all
	}
}

// keeps returns an error if the server may evict the set. It asks once in each life: a failover, or the
// move of a slot, leads to a server with settings of its own.
func (s *Store) keeps(ctx context.Context, conn *redis.Conn, life string) error {
	s.mu.Lock()
	known := s.kept == life
	s.mu.Unlock()
	if known {
		return nil
	}
	text, err := conn.Info(ctx, "memory").Result()
	if err != nil {
		return err
	}
	if f := s.evicts(parseInfo(text), redis.NewDurationResult(-1, nil)); f.Verdict == store.Bad {
		return fmt.Errorf("%s: %s", f.Says, f.Advice)
	}
	s.mu.Lock()
	s.kept = life
	s.mu.Unlock()
	return nil
}

// wanted returns how many of all replicas must have a write.
func (s *Store) wanted(all int) int {
	if s.cfg.Replicas != 0 {
		return max(s.cfg.Replicas, 0)
	}
	return all
}

// An exchange is one pipeline: a script, WAIT and a query of the server's state.
type exchange struct {
	record              // of the replicas that must have the write
	syncs               // at the script
	addresses    int    // of the replicas online at the script
	history      string // the server's, at the script: a promotion begins another
	life         string // of the store
	acknowledged int
	after        look // after the wait
}

func (s *Store) exchange(ctx context.Context, conn *redis.Conn, deadline time.Time, asked int, script *redis.Script, args ...any) (x exchange, err error) {
	known := s.known()
	keys, args := []string{s.cfg.Key}, append([]any{known.n, known.since, known.at}, args...)
	var wrote, waited, looked *redis.Cmd
	for _, run := range []func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd{script.EvalSha, script.Eval} {
		wait := max(time.Until(deadline).Milliseconds(), 1) // 0 would wait for ever
		pipe := conn.Pipeline()
		wrote = run(ctx, pipe, keys, args...)
		waited = pipe.Do(ctx, "wait", asked, wait)
		looked = run(ctx, pipe, keys, 0, 0, "-", "look")
		_, _ = pipe.Exec(ctx) // each command has its own error
		if !redis.HasErrorPrefix(wrote.Err(), "NOSCRIPT") {
			break
		}
		// It may still have waited, for replicas that are gone.
		deadline = time.Now().Add(s.cfg.ConfirmTimeout)
	}
	if err := read(wrote, &x.n, &x.since, &x.at, &x.began, &x.commands, &x.addresses, &x.history, &x.life); err != nil {
		return x, err
	}
	s.learn(x.record)
	x.acknowledged, err = waited.Int()
	return x, errors.Join(err, x.after.read(looked))
}
