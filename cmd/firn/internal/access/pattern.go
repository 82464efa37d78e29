package access

import (
	"path"
	"slices"
	"strings"

	"github.com/firn-id/firn"
)

// maxPattern bounds a pattern: a name has at most 64 characters.
const maxPattern = 64

// CheckPattern returns an error unless a text is a pattern of namespace names: the characters
// of names, and * for any number of them, also zero.
func CheckPattern(pattern string) error {
	const named = "letters, digits, dots, dashes and underscores, and * for any number of them, as in orders, order-* or *"
	switch {
	case strings.Trim(pattern, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-*") != "":
		return firn.NewSyntaxError("pattern of namespaces", pattern, named)
	case pattern == "" || len(pattern) > maxPattern:
		return firn.NewSyntaxError("pattern of namespaces", pattern, "1 to 64 "+named)
	}
	return nil
}

// Match reports whether a pattern that was checked matches a name, which has no slashes. The time is bounded by the product
// of the lengths.
func Match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
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

func (p *patterns) match(name string) bool {
	return p.all || p.exact[name] ||
		len(name) <= maxPattern && slices.ContainsFunc(p.globs, func(glob string) bool { return Match(glob, name) }) // no namespace has a longer name
}
