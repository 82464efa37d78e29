package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
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
	a, err := await(ctx, s, func() (answer, error) {
		return s.write(ctx, compareAndSwap, key, was, digits(revision), value)
	})
	if err != nil {
		return store.Entry{}, s.wrap("compare-and-swap", key, err)
	}
	if !a.written {
		return store.Entry{}, fmt.Errorf("redisstore: compare-and-swap %q: %w: the revision is not %d", key, store.ErrConflict, old)
	}
	return store.Entry{Key: key, Value: value, Revision: revision, Life: a.life()}, nil
}

// An answer is that of a script.
type answer struct {
	written bool
	record
	run, replication string // the server's ids
}

// life names the life of the store. A server that is restarted has another run id; one
// that is promoted, or was a replica in between, another replication id.
func (a answer) life() string {
	life := a.run + "/" + a.replication
	if a.since > 0 {
		life += fmt.Sprintf("/%d", a.since)
	}
	return life
}

func parseAnswer(cmd *redis.Cmd) (a answer, err error) {
	list, err := cmd.Slice()
	if err != nil {
		return a, err
	}
	if len(list) == 1 {
		return a, nil // {0}
	}
	if len(list) == 5 {
		n, ok1 := list[1].(int64)
		since, ok2 := list[2].(int64)
		run, ok3 := list[3].(string)
		replication, ok4 := list[4].(string)
		if ok1 && ok2 && ok3 && ok4 {
			return answer{true, record{int(n), since}, run, replication}, nil
		}
	}
	return a, fmt.Errorf("%w: applied, but INFO does not tell the server's run_id and master_replid", store.ErrUnavailable)
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
		if !a.written && moved(err) {
			if c, ok := s.client.(*redis.ClusterClient); ok {
				if err := follow(ctx, c, moveWait<<move); err != nil {
					return answer{}, err
				}
				continue
			}
		}
		return a, err
	}
	return answer{}, fmt.Errorf("%w: the cluster is moving the key: try again", store.ErrUnavailable)
}

// moved reports whether a script was not run since its key is on another server.
func moved(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && (strings.HasPrefix(reply.Error(), "MOVED ") || strings.HasPrefix(reply.Error(), "ASK "))
}

// follow waits and then learns anew who has what in a cluster: ForEachMaster does that
// before it calls anybody.
func follow(ctx context.Context, c *redis.ClusterClient, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return store.ContextError(ctx)
	case <-time.After(wait):
	}
	return c.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
}

// writeTo is write on one server. All its commands go through one connection, and so to
// one process: WAIT waits for what its own connection has written.
//
// A replica that has come meanwhile is counted, and waited for, in another round. Should
// the server have another replication id by then, it may have been a replica in
// between, and have lost the write; so the next round begins with the write again, which
// changes nothing if it is still there.
func (s *Store) writeTo(ctx context.Context, node *redis.Client, script *redis.Script, args ...any) (answer, error) {
	conn := node.Conn()
	defer func() { _ = conn.Close() }() // back to the pool, or broken
	deadline := time.Now().Add(s.cfg.ConfirmTimeout)
	last, err := s.round(ctx, conn, deadline, s.wanted(s.known()), script, args...)
	if err != nil && last.written {
		return last.answer, unconfirmed(err)
	} else if err != nil || !last.written {
		return last.answer, err
	}
	for id, n := last.replication, 1; ; n++ {
		need := s.wanted(last.record)
		same := last.after.id == id
		switch {
		case last.after.role != "master":
			return last.answer, unconfirmed(errors.New("the server has become a replica"))
		case same && last.acknowledged >= need && (s.cfg.Replicas != 0 || last.after.online <= need):
			return last.answer, nil
		case last.asked >= need && last.acknowledged < need, n == maxRounds, time.Now().After(deadline):
			return last.answer, unconfirmed(fmt.Errorf("%d of %d replicas have it after %v: start the missing ones, lower the number with firn store replicas, or wait for fewer with ?replicas=N",
				last.acknowledged, need, s.cfg.ConfirmTimeout))
		}
		asked := need
		if s.cfg.Replicas == 0 {
			asked = max(need, last.after.online)
		}
		if same {
			last, err = s.round(ctx, conn, deadline, asked, count)
		} else {
			last, err = s.round(ctx, conn, deadline, asked, script, args...)
			id = last.replication
		}
		switch {
		case err != nil:
			return last.answer, unconfirmed(err)
		case !last.written:
			return answer{}, unconfirmed(errors.New("it was overwritten meanwhile"))
		}
	}
}

// unconfirmed is the error of a write that was applied. It has its reason in words
// only: that a later command was refused does not undo the write.
func unconfirmed(err error) error {
	return fmt.Errorf("%w: applied, but not confirmed: %s", store.ErrUnavailable, err.Error())
}

// wanted is how many replicas must have a write.
func (s *Store) wanted(r record) int {
	if s.cfg.Replicas != 0 {
		return max(s.cfg.Replicas, 0)
	}
	return r.n
}

// A round is one pipeline: what was asked for and what came back.
type round struct {
	answer
	asked, acknowledged int
	after               replication
}

func (s *Store) round(ctx context.Context, conn *redis.Conn, deadline time.Time, asked int, script *redis.Script, args ...any) (round, error) {
	known := s.known()
	args = append([]any{known.n, known.since}, args...)
	keys := []string{s.cfg.Key}
	r := round{asked: asked}
	run := script.EvalSha
	for n := 0; ; n++ {
		wait := max(time.Until(deadline).Milliseconds(), 1) // 0 would be for ever
		pipe := conn.Pipeline()
		wrote := run(ctx, pipe, keys, args...)
		acknowledged := pipe.Do(ctx, "wait", asked, wait)
		info := pipe.Info(ctx, "replication")
		_, _ = pipe.Exec(ctx) // each command has its own error
		if n == 0 && redis.HasErrorPrefix(wrote.Err(), "NOSCRIPT") {
			run = script.Eval
			continue
		}
		var err error
		if r.answer, err = parseAnswer(wrote); err != nil || !r.written {
			return r, err
		}
		s.learn(r.record)
		n, err := acknowledged.Int()
		if err != nil {
			return r, fmt.Errorf("wait: %w", err)
		}
		if info.Err() != nil {
			return r, fmt.Errorf("info: %w", info.Err())
		}
		r.acknowledged, r.after = n, replicationOf(parseInfo(info.Val()))
		return r, nil
	}
}
