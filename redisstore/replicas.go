package redisstore

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/backend"
	"github.com/firn-id/firn/store"
)

// A record says how many replicas must have a write, and since when: see the scripts.
type record struct {
	n     int
	since int64
}

const (
	recordBegins = "\treplicas "
	recordEnds   = "\treplicas!" // a blank sorts before it
)

func (r record) String() string { return fmt.Sprintf("%s%d %d", recordBegins, r.n, r.since) }

func parseRecord(member string) (r record, err error) {
	_, err = fmt.Sscanf(member, recordBegins+"%d %d", &r.n, &r.since)
	if err != nil || r.n < 0 || r.since < 0 || r.String() != member {
		return record{}, fmt.Errorf("%w: member %.40q is no record of replicas: remove it, then set the number with firn store replicas N", store.ErrRefused, member)
	}
	return r, nil
}

// learn returns the latest record that this handle has seen, with r. Each write sends it, so
// that the record outlives a FLUSHALL.
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

// silent finds a replica that has not acknowledged for three seconds, or since the server's clock
// was set back, by which it would seem to answer for as long as that.
var silent = regexp.MustCompile(`,lag=(-|[3-9]|\d\d)`)

// present are the replicas in INFO.
type present struct {
	attached  int // some may only load, and may for long
	online    int // those that have acknowledged something since they were attached
	addresses int // of these
	excess    int // connections beside another from the same address
}

// replicasIn counts the replicas in INFO, as the scripts do. Programs that read the stream and
// never acknowledge (redis-cli --replica) serve at no port, and are none.
//
// A replica that is back after its host died is there twice for a minute, until the server
// notices that the earlier connection is dead. If it counted twice, writes would wait for one
// replica too many from then on. So all silent connections from one address are one replica,
// the same as one that answers there. Living replicas acknowledge each second, and so count
// even where address translation gives several the same address. A replica that is back within
// three seconds looks like two for as long. So each write waits for all that are online, but the
// record rises at once by addresses only, and by a second replica of one address when both have
// acknowledged a write.
//
// WAIT counts connections. One that comes beside another from the same address while a write
// waits may be of the same replica, both may have acknowledged the write, and another replica be
// away. So such a write is not confirmed. What is written later, a dead connection never acknowledges.
func replicasIn(info map[string]string) (p present) {
	answering := map[string]int{}
	for name, value := range info {
		if !strings.HasPrefix(name, "slave") || !strings.Contains(value, "state=") {
			continue
		}
		if !strings.Contains(value, "state=online") || strings.Contains(value, "offset=0,") {
			if !strings.Contains(value, ",port=0,") {
				p.attached++
			}
			continue
		}
		p.attached++
		address, _, _ := strings.Cut(value, ",state=")
		if _, another := answering[address]; another {
			p.excess++
		}
		answering[address] += 0
		if !silent.MatchString(value) {
			answering[address]++
		}
	}
	for _, n := range answering {
		p.online += max(n, 1)
	}
	p.addresses = len(answering)
	return p
}

// Replicas are those of the server that has the set.
type Replicas struct {
	Recorded int       `json:"recorded"` // the most that were ever attached, or the number an operator set
	Lowered  time.Time `json:"lowered,omitzero"`
	Attached int       `json:"attached"` // now; they may still load
	Online   int       `json:"online"`   // those that acknowledge writes; no other must be promoted
}

// Replicas returns how many replicas are recorded, and how many there are now.
func (s *Store) Replicas(ctx context.Context) (Replicas, error) {
	return backend.Do(ctx, s.calls, "count the replicas of", s.cfg.Key, func(ctx context.Context) (Replicas, error) {
		_, there, err := s.count(ctx)
		return there, err
	})
}

// count asks the server for INFO, and counts its replicas.
func (s *Store) count(ctx context.Context) (info map[string]string, there Replicas, err error) {
	if info, err = s.info(ctx); err != nil {
		return nil, there, err
	}
	p := replicasIn(info)
	there.Attached, there.Online = p.attached, p.online
	members, err := s.members(ctx, recordBegins, recordEnds)
	if err != nil || len(members) == 0 {
		return info, there, err
	}
	if len(members) > 1 {
		return info, there, fmt.Errorf("%w: %q: %s", store.ErrRefused, members, merged)
	}
	r, err := parseRecord(members[0])
	if there.Recorded = r.n; r.since > 0 {
		there.Lowered = time.UnixMicro(r.since)
	}
	return info, there, err
}

// answerHolds is how long, by the server's clock, a number may be set after Sentinels or
// cluster agreed. A server that is stopped with the request on its way, and replaced meanwhile,
// must not carry it out when it goes on.
const answerHolds = 3 * time.Second

// MaxReplicas bounds how many replicas a write can wait for.
const MaxReplicas = 100

// SetReplicas sets how many replicas must have a write, for all handles and for good. Use it to
// lower the number after replicas were taken away; it rises by itself. A lower number begins a
// new life of the store, so that newcomers wait for holders.
//
// Lowering is safe only where no other server has this data and is a primary, or may become one
// with what it has now. So the error is [store.ErrRefused] if the server is not the primary that
// the Sentinels of the URL or the cluster name, if they know more replicas than n, gone ones
// too, if more are online, and if Sentinels watch that the URL does not name. Without Sentinels or
// cluster you answer for that yourself.
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
			err = fmt.Errorf("%w: %d replicas: %s are online; stop those that are to go first", store.ErrRefused, n, online)
		}
		return life, err
	})
	return err
}
