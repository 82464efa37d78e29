// Package outage tells which of many failures in a row belong in a log: the first, and later ones for another reason.
package outage

import (
	"strings"
	"time"
)

// pause is the least time between two lines about one outage: reasons may take turns.
const pause = 10 * time.Second

// An Outage is what was logged since the last success. The zero value is ready. It is not safe for concurrent use.
type Outage struct {
	lasts bool
	said  string // the latest reason
	at    time.Duration
}

// Fails reports whether to log a failure, at a time of the monotonic clock.
func (o *Outage) Fails(err error, now time.Duration) bool {
	reason := reasonOf(err)
	if o.lasts && (o.said == reason || now-o.at < pause) {
		return false
	}
	*o = Outage{true, reason, now}
	return true
}

// Ends ends an outage, and reports whether there was one.
func (o *Outage) Ends() bool {
	was := o.lasts
	*o = Outage{}
	return was
}

// reasonOf returns the text of an error without its numbers: addresses, times and counts differ from try to try.
func reasonOf(err error) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}
