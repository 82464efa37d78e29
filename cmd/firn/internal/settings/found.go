package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxShown bounds the mistakes that are shown of a file. The others are most likely the same ones again.
const maxShown = 50

// found collects the mistakes of a file.
type found struct {
	cfg     *Config
	shown   []*PlaceError
	more    int             // that are not shown
	misread map[string]bool // the places of values that cannot be read, and those around them
}

// report adds a mistake, unless what is there could not be read: then the mistake follows from that.
func (f *found) report(err error, keys ...string) {
	switch {
	case err == nil || f.misread[strings.Join(keys, ".")]:
	case len(f.shown) < maxShown:
		f.shown = append(f.shown, f.cfg.at(err, keys))
	default:
		f.more++
	}
}

// unread reports a value that cannot be read.
func (f *found) unread(err error, keys ...string) {
	f.report(err, keys...)
	place := strings.Join(keys, ".")
	for i, c := range place {
		if c == '.' || c == '[' {
			f.misread[place[:i]] = true
		}
	}
	f.misread[place] = true
}

// join returns the mistakes in the order of their lines.
func (f *found) join() error {
	slices.SortStableFunc(f.shown, func(a, b *PlaceError) int { return a.Line - b.Line })
	var errs []error
	for _, m := range f.shown {
		errs = append(errs, m)
	}
	if f.more > 0 {
		errs = append(errs, fmt.Errorf("configuration %s: there are %d more mistakes: correct these first", f.cfg.path, f.more))
	}
	return errors.Join(errs...)
}
