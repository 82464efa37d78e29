package settings

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/store"
)

// Examine returns what is doubtful about a checked configuration, or worth knowing, for a server that listens on these
// addresses.
func (c Config) Examine(listeners ...string) []store.Finding {
	found := c.examineNames()
	if len(c.Tokens)+len(c.Anonymous) == 0 {
		found = append(found, store.Finding{
			Subject: "access", Verdict: store.Good,
			Says:   "callers on this machine may do everything, also unveil ids and read pools and metrics: the configuration has neither tokens nor anonymous",
			Advice: "behind a proxy on this machine make tokens with firn token: if it adds no X-Forwarded-For or similar header, everyone behind it looks like a caller on this machine",
		})
	}
	secrets := slices.ContainsFunc(c.Tokens, func(t Token) bool { return t.SHA256 != "" })
	for _, at := range listeners {
		switch {
		case at == "" || at == Off || loopback(at):
		case len(c.Tokens)+len(c.Anonymous) == 0:
			found = append(found, store.Finding{
				Subject: "access", Verdict: store.Doubtful,
				Says:   fmt.Sprintf("requests from other machines to %s are refused: the configuration has neither tokens nor anonymous", at),
				Advice: "make a token with firn token, or write anonymous: [\"*\"] to serve everyone who can reach it",
			})
		case secrets && c.TLS == nil:
			found = append(found, store.Finding{
				Subject: "tls", Verdict: store.Doubtful,
				Says:   fmt.Sprintf("clients send their tokens to %s unencrypted: whoever can read the network can use them", at),
				Advice: "set tls: {cert: FILE, key: FILE}, or listen on 127.0.0.1 behind a proxy that encrypts",
			})
		}
	}
	return found
}

// loopback reports whether an address to listen on can be reached only from this machine.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// examineNames finds names and patterns that allow nothing, since no namespace matches them.
func (c Config) examineNames() (found []store.Finding) {
	if len(c.Namespaces) == 0 || c.CosID { // namespaces are made on first use; CosId has names outside of the configuration
		return nil
	}
	names := slices.Sorted(maps.Keys(c.Namespaces))
	unmatched := func(patterns []string) []string {
		return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return access.Match(p, name) })
		})
	}
	add := func(who string, without []string, of int) {
		if len(without) == 0 {
			return
		}
		f := store.Finding{
			Subject: "access", Verdict: store.Doubtful,
			Says:   fmt.Sprintf("%s names %s, but the configuration has no such namespace", who, strings.Join(without, ", ")),
			Advice: "correct the name, or add the namespace",
		}
		if len(without) == of {
			f.Says += fmt.Sprintf(": %s allows no ids", who)
		}
		found = append(found, f)
	}
	for _, t := range c.Tokens {
		add("token "+t.Name, unmatched(t.Namespaces), len(t.Namespaces)+len(c.Anonymous))
	}
	add("anonymous", unmatched(c.Anonymous), len(c.Anonymous))
	return found
}
