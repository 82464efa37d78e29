package sqlstore

import (
	"fmt"

	"github.com/firn-id/firn/store"
)

// What an examination finds, in the same words for both databases.

func durability(good bool, says, advice string) store.Finding {
	if good {
		return store.Finding{Subject: "durability", Says: says}
	}
	return store.Finding{Subject: "durability", Verdict: store.Bad, Says: says + ": a crash forgets the workers taken last", Advice: advice}
}

func isolated(level string) store.Finding {
	return store.Finding{Subject: "isolation", Says: level + ": each statement is a transaction of its own, so this level does"}
}

func privileges(read, insert, update bool) store.Finding {
	f := store.Finding{Subject: "privileges", Says: "the account may read and write " + Table}
	if !read || !insert || !update {
		f.Verdict, f.Says = store.Bad, fmt.Sprintf("on %s the account may SELECT: %t, INSERT: %t, UPDATE: %t", Table, read, insert, update)
		f.Advice = "grant it all three"
	}
	return f
}

func primary(readOnly bool) store.Finding {
	if readOnly {
		return store.Finding{Subject: "role", Verdict: store.Bad, Says: "it is a replica, or read-only", Advice: "name the primary"}
	}
	return store.Finding{Subject: "role", Says: "a primary that takes writes"}
}

// Replicas are those that may be promoted one day, as the primary sees them.
type replicas struct {
	all     int
	waits   int    // for how many of them a write waits; 0: for none
	behind  int    // those that no write ever waits for
	unknown int    // those of which the account may not see it
	setting string // what has a write wait
	advice  string // how to have it wait for all
}

func (r replicas) finding() store.Finding {
	f := store.Finding{Subject: "replicas", Verdict: store.Bad, Says: fmt.Sprintf("%d", r.all), Advice: r.advice}
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
