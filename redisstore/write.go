package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
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
	return store.Entry{Key: key, Value: value, Revision: revision, Life: a.life}, nil
}

// An answer is that of a script.
type answer struct {
	written bool
	record
	replication string // the id of the server's history
	life        string // once it is confirmed
}

func parseAnswer(cmd *redis.Cmd) (a answer, err error) {
	list, err := cmd.Slice()
	if err != nil || len(list) == 1 { // {0}
		return a, err
	}
	if len(list) == 4 {
		n, ok1 := list[1].(int64)
		since, ok2 := list[2].(int64)
		replication, ok3 := list[3].(string)
		if ok1 && ok2 && ok3 {
			return answer{written: true, record: record{int(n), since}, replication: replication}, nil
		}
	}
	return a, fmt.Errorf("%w: the script answers %v", store.ErrUnavailable, list)
}

// A server is a process and its history. A process begins another history when it is
// promoted, and no two processes have the same while they are primaries.
type server struct{ run, replication string }

// life names the life of the store: its server, and since when the number of replicas
// counts. The process is asked for once for each history.
func (s *Store) life(ctx context.Context, conn *redis.Conn, a answer) (string, error) {
	s.mu.Lock()
	there := s.server
	s.mu.Unlock()
	if there.replication != a.replication {
		text, err := conn.Info(ctx, "server").Result()
		if err != nil {
			return "", err
		}
		there = server{parseInfo(text)["run_id"], a.replication}
		s.mu.Lock()
		s.server = there
		s.mu.Unlock()
	}
	life := there.run + "/" + there.replication
	if a.since > 0 {
		life += "/" + strconv.FormatInt(a.since, 10)
	}
	return life, nil
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
	id := last.replication
	for n := 1; ; n++ {
		want, err := s.judge(last, id, n == maxRounds || time.Now().After(deadline))
		if err != nil {
			return last.answer, unconfirmed(err)
		}
		if want == confirmed {
			last.life, err = s.life(ctx, conn, last.answer)
			if err != nil {
				return last.answer, unconfirmed(err)
			}
			return last.answer, nil
		}
		if last.after.id == id {
			last, err = s.round(ctx, conn, deadline, want, count)
		} else {
			last, err = s.round(ctx, conn, deadline, want, script, args...)
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

// confirmed is what judge says of a write that is confirmed.
const confirmed = -1

// judge says whether a write of the history id is confirmed, else how many replicas to wait
// for in another round; unless that was the last.
func (s *Store) judge(r round, id string, last bool) (want int, err error) {
	need := s.wanted(r.record)
	if want = need; s.cfg.Replicas == 0 {
		want = max(need, r.after.online)
	}
	switch {
	case r.after.role != "master":
		return 0, errors.New("the server has become a replica")
	case r.acknowledged >= want && want == need && r.after.id == id:
		return confirmed, nil
	case last, r.asked >= want && r.acknowledged < want:
		return 0, fmt.Errorf("%d of %d replicas have it after %v: start the missing ones, lower the number with firn store replicas, or wait for fewer with ?replicas=N",
			r.acknowledged, want, s.cfg.ConfirmTimeout)
	}
	return want, nil
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
