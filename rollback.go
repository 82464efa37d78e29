package firn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Policy says what a generator does when the wall clock goes back. Make one with
// [Refuse], [Wait], [History], [RunAhead] or [SwitchWorker].
type Policy struct {
	kind  policyKind
	max   time.Duration // wait, history: the limit of waiting
	tries int           // wait
	ticks Tick          // history, ahead
}

type policyKind uint8

const (
	policyRefuse policyKind = iota + 1
	policyWait
	policyHistory
	policyAhead
	policySwitch
)

// A Rollback is an ordered chain of policies. The first policy that can serve a call
// serves it. If no policy can, or the chain is empty, the call fails with a
// *[ClockBackError], or with a *[FenceError] if only the fence prevents the policy ahead
// from serving.
type Rollback []Policy

// The policies' defaults.
const (
	defaultWait        = 500 * time.Millisecond
	defaultTries       = 2
	defaultHistory     = 2000
	defaultHistoryWait = 500 * time.Millisecond
	// maxHistory bounds the memory of [History], which takes 16 bytes per tick.
	maxHistory = 1 << 20
)

// Refuse ends the chain: the call fails with a *[ClockBackError], which says how far the
// clock went back. The generator stays usable. Ids stay in order.
func Refuse() Policy { return Policy{kind: policyRefuse} }

// Wait sleeps until the clock has caught up, if the clock is behind by at most limit. It
// sleeps at most tries times per call. Ids stay in order. [ParseRollback] has the defaults
// 500ms and 2 tries.
func Wait(limit time.Duration, tries int) Policy {
	return Policy{kind: policyWait, max: limit, tries: tries}
}

// History records how much of the sequence is used in the latest tick and in the given number
// of ticks before it, and continues in the unused part of the tick to which the clock went
// back. Ids stay unique, but their times go back with the clock: they are not in order across
// the step. If that tick is used up, a call waits for the next one that is not, as long as it
// waits at most limit in total; otherwise later policies serve it. The limit is 0 to 1h. It requires
// that [Config.Ahead] is 0. [ParseRollback] has the defaults 2,000 ticks and 500ms.
func History(ticks int, limit time.Duration) Policy {
	return Policy{kind: policyHistory, ticks: Tick(ticks), max: limit}
}

// RunAhead ignores the clock and counts on from the last tick, up to the given number of
// ticks ahead of the clock, 8760h at most. Ids stay in order. Without a lease a restart waits that
// long, since the earlier process may have used those ticks.
func RunAhead(ticks int64) Policy { return Policy{kind: policyAhead, ticks: Tick(ticks)} }

// SwitchWorker acquires another worker, through [Config.Switch], and continues at the
// clock's time, unless that is before the epoch. Ids are not in order across the step.
func SwitchWorker() Policy { return Policy{kind: policySwitch} }

// String returns the policy as [ParseRollback] reads it.
func (p Policy) String() string {
	switch p.kind {
	case policyRefuse:
		return "refuse"
	case policyWait:
		return fmt.Sprintf("wait %v %d", p.max, p.tries)
	case policyHistory:
		return fmt.Sprintf("history %d %v", p.ticks, p.max)
	case policyAhead:
		return fmt.Sprintf("ahead %d", p.ticks)
	case policySwitch:
		return "switch"
	default:
		return "none"
	}
}

// String returns the chain as [ParseRollback] reads it.
func (r Rollback) String() string {
	parts := make([]string, len(r))
	for i, p := range r {
		parts[i] = p.String()
	}
	return strings.Join(parts, ", ")
}

// ParseRollback reads a chain of policies separated by commas:
//
//	wait [LIMIT [TRIES]], history [TICKS [LIMIT]], ahead TICKS, switch, refuse
//
// as in "wait 500ms, history 2000, switch, refuse". The empty text is the
// empty chain, which refuses. Errors match [ErrSyntax] or [ErrRange] and name
// every mistake at once.
func ParseRollback(text string) (Rollback, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var (
		chain Rollback
		errs  []error
	)
	for part := range strings.SplitSeq(text, ",") {
		p, err := parsePolicy(strings.TrimSpace(part))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		chain = append(chain, p)
	}
	errs = append(errs, chain.check())
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return chain, nil
}

func parsePolicy(text string) (Policy, error) {
	const want = "wait [LIMIT [TRIES]], history [TICKS [LIMIT]], ahead TICKS, switch and refuse are allowed"
	words := strings.Fields(text)
	bad := func(reason string) (Policy, error) {
		return Policy{}, NewSyntaxError("rollback policy", text, reason)
	}
	if len(words) == 0 {
		return bad(want)
	}
	name, args := words[0], words[1:]
	most := map[string]int{"refuse": 0, "switch": 0, "wait": 2, "history": 2, "ahead": 1}
	settings, known := most[name]
	if !known {
		return bad(want)
	}
	if len(args) > settings {
		return bad(fmt.Sprintf("%s takes at most %d settings; %s", name, settings, want))
	}
	number := func(i int, otherwise int64) (int64, error) {
		if i >= len(args) {
			return otherwise, nil
		}
		return strconv.ParseInt(args[i], 10, 64)
	}
	limit := func(i int, otherwise time.Duration) (time.Duration, error) {
		if i >= len(args) {
			return otherwise, nil
		}
		return time.ParseDuration(args[i])
	}
	switch name {
	case "refuse":
		return Refuse(), nil
	case "switch":
		return SwitchWorker(), nil
	case "wait":
		d, err := limit(0, defaultWait)
		if err != nil {
			return bad("LIMIT is a duration, such as wait 500ms")
		}
		tries, err := number(1, defaultTries)
		if err != nil || tries > maxWaitTries {
			return bad(fmt.Sprintf("TRIES is a number from 1 to %d, such as wait 500ms 2", maxWaitTries))
		}
		return Wait(d, int(tries)), nil
	case "history":
		n, err := number(0, defaultHistory)
		if err != nil || n > maxHistory {
			return bad(fmt.Sprintf("TICKS is a number from 1 to %d, such as history 2000", maxHistory))
		}
		d, err := limit(1, defaultHistoryWait)
		if err != nil {
			return bad("LIMIT is a duration, such as history 2000 500ms")
		}
		return History(int(n), d), nil
	default:
		if len(args) == 0 {
			return bad("TICKS is missing: write a number, such as ahead 1000")
		}
		n, err := number(0, 0)
		if err != nil {
			return bad("TICKS is a number, such as ahead 1000")
		}
		return RunAhead(n), nil
	}
}

const (
	maxWaitTries = 1000
	// maxPolicyWait bounds the limits of [Wait] and [History].
	maxPolicyWait = time.Hour
)

// check returns all invalid settings of the chain.
func (r Rollback) check() error {
	var errs []error
	seen := map[policyKind]bool{}
	for i, p := range r {
		where := "rollback policy " + p.String()
		switch p.kind {
		case policyRefuse:
			if i < len(r)-1 {
				errs = append(errs, NewSyntaxError("rollback chain", r.String(), "refuse ends a chain: later policies are never tried"))
			}
		case policyWait:
			if p.max <= 0 || p.max > maxPolicyWait {
				errs = append(errs, &RangeError{What: "wait", Value: p.max.String(), Min: "1ns", Max: "1h", Where: where})
			}
			if p.tries < 1 || p.tries > maxWaitTries {
				errs = append(errs, NewRangeError("wait tries", int64(p.tries), 1, maxWaitTries, where))
			}
		case policyHistory:
			if p.ticks < 1 || p.ticks > maxHistory {
				errs = append(errs, NewRangeError("history ticks", int64(p.ticks), 1, maxHistory, where))
			}
			if p.max < 0 || p.max > maxPolicyWait {
				errs = append(errs, &RangeError{What: "history limit", Value: p.max.String(), Min: "0s", Max: "1h", Where: where})
			}
		case policyAhead:
			if p.ticks < 1 {
				errs = append(errs, NewRangeError("ahead ticks", int64(p.ticks), 1, int64(MaxID), where))
			}
		case policySwitch:
		default:
			errs = append(errs, NewSyntaxError("rollback policy", "", "make one with Refuse, Wait, History, RunAhead or SwitchWorker"))
		}
		if seen[p.kind] {
			errs = append(errs, NewSyntaxError("rollback chain", r.String(), "a chain may have each policy once"))
		}
		seen[p.kind] = true
	}
	return errors.Join(errs...)
}

// Waits returns for how long a call may wait for the clock, because of [Wait] and [History], before the chain fails or another
// policy serves it.
func (r Rollback) Waits() time.Duration {
	wait, history := r.find(policyWait), r.find(policyHistory)
	return time.Duration(saturatingAdd(int64(wait.max)*int64(wait.tries), int64(history.max)))
}

// find returns the chain's policy of a kind, or the zero Policy.
func (r Rollback) find(kind policyKind) Policy {
	for _, p := range r {
		if p.kind == kind {
			return p
		}
	}
	return Policy{}
}
