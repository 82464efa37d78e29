package access

import (
	"strings"

	"github.com/firn-id/firn"
)

// maxPattern bounds a pattern: a name has at most 64 characters.
const maxPattern = 64

// CheckPattern returns an error unless a text is a pattern of namespace names: the characters
// of names, and * for any number of them, also zero.
func CheckPattern(pattern string) error {
	const named = "letters, digits, dots, dashes and underscores, and * for any number of them, as in orders, order-* or *"
	for _, c := range []byte(pattern) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("._-*", c) >= 0:
		default:
			return firn.NewSyntaxError("pattern of namespaces", pattern, named)
		}
	}
	if pattern == "" || len(pattern) > maxPattern {
		return firn.NewSyntaxError("pattern of namespaces", pattern, "1 to 64 "+named)
	}
	return nil
}

// Match reports whether a pattern matches a name.
func Match(pattern, name string) bool {
	// The position of the latest star, and how much of the name it matches. Only the latest
	// star has to be tried again, so the time is bounded by the product of the lengths.
	star, taken := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, taken = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			taken++
			p, n = star+1, taken
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// patterns match the namespaces that a caller may use.
type patterns struct {
	all   bool
	exact map[string]bool
	globs []string
}

func newPatterns(of []string) patterns {
	p := patterns{exact: map[string]bool{}}
	for _, pattern := range of {
		switch {
		case strings.Trim(pattern, "*") == "":
			p.all = true
		case strings.Contains(pattern, "*"):
			p.globs = append(p.globs, pattern)
		default:
			p.exact[pattern] = true
		}
	}
	return p
}

func (p *patterns) match(name string) bool { return p.all || p.exact[name] || p.glob(name) }

func (p *patterns) glob(name string) bool {
	if len(name) > maxPattern {
		return false // no namespace has such a name
	}
	for _, glob := range p.globs {
		if Match(glob, name) {
			return true
		}
	}
	return false
}
