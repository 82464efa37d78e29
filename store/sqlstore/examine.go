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

func standbysOf(n int, synchronous bool, setting string) store.Finding {
	f := store.Finding{Subject: "replicas"}
	switch {
	case n == 0:
		f.Says = "none connected"
	case synchronous:
		f.Says = fmt.Sprintf("%d, kept up to date before a write is acknowledged (%s)", n, setting)
	default:
		f.Verdict = store.Doubtful
		f.Says = fmt.Sprintf("%d, brought up to date afterwards: a failover may forget who took a worker last", n)
		f.Advice = "turn on " + setting + ", or use a strict pool"
	}
	return f
}
