package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// Limits bounds requests.
type Limits struct {
	Batch       *int              `yaml:"batch" default:"100000" allowed:"1 to 10000000" help:"ids in one answer"`
	Body        *int              `yaml:"body" default:"65536" allowed:"1024 to 16777216" help:"bytes of a request"`
	Connections *int              `yaml:"connections" default:"10000" allowed:"1 to 1000000" help:"connections of each listener"`
	Share       *int              `yaml:"share" default:"20" allowed:"1 to 100" help:"percent of connections, requests in flight, streams and memory that one address may have; 100 behind a proxy"`
	Rate        map[string]string `yaml:"rate" unset:"no limit" example:"{orders: 50000/s, \"user-*\": 600/m}" help:"ids of each namespace, by name or pattern, a second (/s), minute (/m) or hour (/h)"`
}

const (
	defaultBatch       = 100_000
	defaultBody        = 64 << 10
	defaultConnections = 10_000
	defaultShare       = 20
)

// MaxBatch returns the limit of ids in one answer.
func (l Limits) MaxBatch() int { return given(l.Batch, defaultBatch) }

// MaxBody returns the limit of bytes in one request.
func (l Limits) MaxBody() int { return given(l.Body, defaultBody) }

// MaxConnections returns the limit of connections of each listener.
func (l Limits) MaxConnections() int { return given(l.Connections, defaultConnections) }

// MaxShare returns how many percent of what all share one address may have.
func (l Limits) MaxShare() int { return given(l.Share, defaultShare) }

func given(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}

// RateOf returns the rate of a namespace, zero without a limit. An entry with its exact name wins, then the longest
// pattern that matches, then the first in alphabetical order.
func (l Limits) RateOf(namespace string) access.Rate {
	text, best := l.Rate[namespace], ""
	if text == "" {
		for _, pattern := range slices.Sorted(maps.Keys(l.Rate)) {
			if len(pattern) > len(best) && strings.Contains(pattern, "*") && access.Match(pattern, namespace) {
				best = pattern
			}
		}
		text = l.Rate[best]
	}
	r, _ := parseRate(text) // checked
	return r
}

func (l Limits) check(namespaces map[string]Namespace, report reporter) {
	reportOutside(l, func(err error, key string) { report(err, "limits", key) })
	for _, pattern := range slices.Sorted(maps.Keys(l.Rate)) {
		report(access.CheckPattern(pattern), "limits", "rate", pattern)
		_, err := access.ParseRate(l.Rate[pattern])
		report(err, "limits", "rate", pattern)
		if _, known := namespaces[pattern]; !known && len(namespaces) > 0 && !strings.Contains(pattern, "*") {
			report(firn.NewSyntaxError("namespace", pattern, "the configuration has no namespace of this name: write the name of one, or a pattern such as order-*"), "limits", "rate", pattern)
		}
	}
}
