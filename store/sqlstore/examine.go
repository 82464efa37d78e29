package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/firn-id/firn/store"
)

// An examination is what was found of a database on another host.
type examination struct {
	durable              bool
	settings, advice     string // that durability rests on, and how they should be
	isolation            string
	read, insert, update bool // what the account may do
	readOnly             bool
	follows              bool // it takes the writes of another server as well
	splits               bool // both parts of its cluster go on when that is split
	servers              int  // that sessions lead to
	replicas             store.Finding
}

func (e examination) findings() []store.Finding {
	role := finding("role", !e.readOnly, "a primary that takes writes", "it is a replica, or read-only", "name the primary")
	if !e.readOnly && e.follows {
		role.Verdict, role.Says = store.Doubtful, "it takes writes, and those of another server too: two primaries that both answer are two stores"
		role.Advice = "have all of Firn go through one of them, and make the other read-only"
	}
	if e.splits {
		role = finding("role", false, "", "its cluster goes on as two stores when it is split", "turn pc.ignore_sb and pc.ignore_quorum off")
	}
	if e.servers > 1 {
		role = finding("role", false, "", fmt.Sprintf("its connections lead to %d servers: ids repeat if more than one takes writes, and what a replica says is old", e.servers),
			"name one primary: no balancer over several, and no name with several addresses")
	}
	return []store.Finding{
		finding("durability", e.durable, e.settings, e.settings+": a crash forgets the workers taken last", e.advice),
		{Subject: "isolation", Says: e.isolation + ": each statement is a transaction of its own, so this level does"},
		finding("privileges", e.read && e.insert && e.update, "the account may read and write "+Table,
			fmt.Sprintf("on %s the account may SELECT: %t, INSERT: %t, UPDATE: %t", Table, e.read, e.insert, e.update), "grant it all three"),
		role,
		e.replicas,
	}
}

// maxProbes bounds how many sessions are compared. A balancer may lead each elsewhere.
const maxProbes = 4

// behind counts the servers that sessions lead to, conn and others beside it.
func (s *Store) behind(ctx context.Context, conn *sql.Conn) (int, error) {
	probes := maxProbes
	if most := s.db.Stats().MaxOpenConnections; most > 0 { // others need some too
		probes = min(probes, most/2)
	}
	servers := map[string]bool{}
	for n := 1; ; n++ {
		name, err := s.dialect.server(ctx, s, conn)
		if err != nil {
			return 0, err
		}
		servers[name] = true
		if n >= probes {
			return len(servers), nil
		}
		another, err := s.db.Conn(ctx)
		if err != nil {
			return 0, err
		}
		defer func() { _ = another.Close() }() // all at once, so that each is another
		conn = another
	}
}

// finding is good, or bad with a way out.
func finding(subject string, good bool, says, otherwise, advice string) store.Finding {
	if good {
		return store.Finding{Subject: subject, Says: says}
	}
	return store.Finding{Subject: subject, Verdict: store.Bad, Says: otherwise, Advice: advice}
}

// Replicas are those that may be promoted one day, as the primary sees them.
type replicas struct {
	all     int
	waits   int    // for how many of them a write waits
	behind  int    // for how many no write ever waits
	unknown int    // of how many the account may not see that
	setting string // that makes a write wait
	advice  string // how to make it wait for all
}

func (r replicas) finding() store.Finding {
	f := store.Finding{Subject: "replicas", Verdict: store.Bad, Says: fmt.Sprint(r.all), Advice: r.advice}
	switch {
	case r.all == 0 && r.waits > 0:
		f.Says = fmt.Sprintf("none connected, and writes wait for %d (%s): none is confirmed", r.waits, r.setting)
		f.Advice = "start them, or turn the setting off"
	case r.all == 0:
		return store.Finding{Subject: f.Subject, Says: "none connected"}
	case r.behind > 0:
		f.Says += fmt.Sprintf(", of which %d are brought up to date afterwards: such a one, if promoted, has forgotten confirmed writes; "+
			"two primaries that both answer are two stores", r.behind)
	case r.unknown > 0:
		f.Verdict = store.Doubtful
		f.Says += ", and the account may not see whether writes wait for them"
		f.Advice = "grant it pg_monitor, or ask another account"
	case r.waits < r.all:
		f.Verdict = store.Doubtful
		f.Says += fmt.Sprintf(", and a write waits for %d of them (%s)", r.waits, r.setting)
		f.Advice = "promote none but the one that has most, as automatic failover does if told so"
	default:
		return store.Finding{Subject: f.Subject, Says: fmt.Sprintf("%d, which have a write before it is confirmed (%s)", r.all, r.setting)}
	}
	return f
}
