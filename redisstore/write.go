package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/store"
)

// CompareAndSwap implements [store.Store]. A write is confirmed if, in one exchange on
// one connection, the server applied it, all replicas that were ever attached (or
// [Config.Replicas]) acknowledged it within [Config.ConfirmTimeout], and the server was its
// primary before and after that, with no other replica online. A write that was
// applied and not confirmed is an error that is [store.ErrUnavailable].
func (s *Store) CompareAndSwap(ctx context.Context, key string, old store.Revision, value []byte) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	if err := store.CheckValue(key, value); err != nil {
		return store.Entry{}, err
	}
	was := ""
	if old != 0 {
		was = digits(old)
	}
	revision := store.Revision(rand.Int64() | 1) // never 0
	return do(ctx, s, "compare-and-swap", key, func(ctx context.Context) (store.Entry, error) {
		a, err := s.write(ctx, compareAndSwap, key, was, digits(revision), value)
		if err != nil {
			return store.Entry{}, err
		}
		return store.Entry{Key: key, Value: value, Revision: revision, Life: a.life()}, nil
	})
}

// An answer is that of a script: what must have the write, and who wrote it. A process
// begins another history, with another replication id, when it is promoted; and no two
// processes have the same while they are primaries.
type answer struct {
	record
	run, history string
}

// life names the life of the store: process, history, and since when the number of
// replicas counts.
func (a answer) life() string {
	life := a.run + "/" + a.history
	if a.since > 0 {
		life += "/" + strconv.FormatInt(a.since, 10)
	}
	return life
}

func parseAnswer(cmd *redis.Cmd) (a answer, err error) {
	list, err := cmd.Slice()
	if err != nil {
		return a, err
	}
	if _, err := fmt.Sscan(fmt.Sprintln(list...), &a.n, &a.since, &a.run, &a.history); err != nil {
		return a, fmt.Errorf("%w: the script answers %v", store.ErrUnavailable, list)
	}
	return a, nil
}

const (
	// maxMoves bounds how often a write follows its set through a cluster, with a
	// wait in between that doubles: 310 ms in all.
	maxMoves = 6
	moveWait = 10 * time.Millisecond
	// maxRounds bounds how often a write waits again for replicas that have come.
	maxRounds = 4
)

// write runs a script that writes, where the set is, and waits until that is confirmed.
func (s *Store) write(ctx context.Context, script *redis.Script, args ...any) (answer, error) {
	for move := range maxMoves {
		node, err := s.node(ctx)
		if err != nil {
			return answer{}, err
		}
		a, err := s.writeTo(ctx, node, script, args...)
		// The script was not run if its key is on another server.
		if s.cluster == nil || !redis.HasErrorPrefix(err, "MOVED ") && !redis.HasErrorPrefix(err, "ASK ") {
			return a, err
		}
		if err := s.follow(ctx, moveWait<<move); err != nil {
			return answer{}, err
		}
	}
	return answer{}, fmt.Errorf("%w: the cluster is moving the key: try again", store.ErrUnavailable)
}

// follow waits and then learns anew who has what in a cluster: ForEachMaster does that
// before it calls anybody.
func (s *Store) follow(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return store.ContextError(ctx)
	case <-time.After(wait):
	}
	return s.cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
}

// writeTo is write on one server, over one connection, and so in one process: WAIT waits
// for what its own connection has written. Where a replica has come meanwhile, or the server
// has another history and so may have lost the write, all is done again.
func (s *Store) writeTo(ctx context.Context, node *redis.Client, script *redis.Script, args ...any) (answer, error) {
	conn := node.Conn()
	defer func() { _ = conn.Close() }() // back to the pool, or broken
	deadline := time.Now().Add(s.cfg.ConfirmTimeout)
	asked := s.wanted(s.known())
	for n := 1; ; n++ {
		x, err := s.exchange(ctx, conn, deadline, asked, script, args...)
		if err != nil && n == 1 && x.run == "" {
			return answer{}, err // of the script
		}
		if err == nil {
			asked, err = s.judge(x, n == maxRounds || time.Now().After(deadline))
		}
		if err != nil {
			// In words only: that a later command was refused does not undo the write.
			return answer{}, fmt.Errorf("%w: applied, but not confirmed: %s", store.ErrUnavailable, err.Error())
		}
		if asked == confirmed {
			return x.answer, nil
		}
	}
}

// confirmed is what judge says of a write that is confirmed.
const confirmed = -1

// judge says whether a write is confirmed, else how many replicas to ask for it in another
// round, unless this was the last.
func (s *Store) judge(x exchange, last bool) (ask int, err error) {
	need := s.wanted(x.record)
	all := s.wanted(record{n: max(x.n, x.after.online)})
	switch {
	case x.after.role != "master":
		return 0, errors.New("the server has become a replica")
	case x.acknowledged >= need && need == all && x.after.history == x.history:
		return confirmed, nil
	case last, x.asked >= all && x.acknowledged < all:
		return 0, fmt.Errorf("%d of %d replicas have it after %v: start the missing ones, lower the number with firn store replicas, or wait for fewer with ?replicas=N",
			x.acknowledged, all, s.cfg.ConfirmTimeout)
	}
	return all, nil
}

// wanted is how many replicas must have a write.
func (s *Store) wanted(r record) int {
	if s.cfg.Replicas != 0 {
		return max(s.cfg.Replicas, 0)
	}
	return r.n
}

// An exchange is one pipeline: a script, WAIT and INFO.
type exchange struct {
	answer
	asked, acknowledged int
	after               replication
}

func (s *Store) exchange(ctx context.Context, conn *redis.Conn, deadline time.Time, asked int, script *redis.Script, args ...any) (exchange, error) {
	known := s.known()
	args = append([]any{known.n, known.since}, args...)
	run := script.EvalSha
	for {
		wait := max(time.Until(deadline).Milliseconds(), 1) // 0 would be for ever
		pipe := conn.Pipeline()
		wrote := run(ctx, pipe, []string{s.cfg.Key}, args...)
		waited := pipe.Do(ctx, "wait", asked, wait)
		info := pipe.Info(ctx, "replication")
		_, _ = pipe.Exec(ctx) // each command has its own error
		if redis.HasErrorPrefix(wrote.Err(), "NOSCRIPT") {
			run = script.Eval
			continue
		}
		a, err := parseAnswer(wrote)
		if err != nil {
			return exchange{}, err
		}
		s.learn(a.record)
		acknowledged, err := waited.Int()
		return exchange{a, asked, acknowledged, replicationOf(parseInfo(info.Val()))}, errors.Join(err, info.Err())
	}
}
