// Package migrate has what a move from the id services Leaf (of Meituan) and TinyId (of Didi) to Firn needs: it imports
// their counters as segments ([MakePlan]), and answers their clients as their servers do ([Leaf], [TinyID]).
//
// An import checks a whole plan before it writes anything. It never lowers a counter, so it can be repeated.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/store"
)

// A Foreign is a counter of another system.
type Foreign struct {
	Name   string
	MaxID  firn.ID // the value in the table
	Next   int64   // the least id that is not granted yet; -1: all are granted
	Step   int64   // how many ids the system takes at once
	Stripe segment.Stripe
}

// A Token grants access to counters.
type Token struct {
	SHA256 string   // in hex
	Of     []string // the counters' names in the other system
}

// Options configure a plan.
type Options struct {
	// Margin is how many ids are left unused above those granted; negative: one step of the
	// counter.
	Margin int64
	// Rename maps a name in the other system to the name in Firn, if that differs.
	Rename map[string]string
	// Progress is called with how many names have been read. May be nil.
	Progress func(done, all int)
}

// The outcomes for a name.
const (
	Created   = "created"   // Firn had no counter
	Raised    = "raised"    // Firn's counter was lower
	Unchanged = "unchanged" // Firn's counter is high enough
)

// A Row is the plan for one counter.
type Row struct {
	Foreign
	Here    string           // its name in Firn
	Least   firn.ID          // the lowest id that it may issue next
	Was     *segment.Counter // Firn's counter before; nil if there was no counter
	Now     uint64           // the next id of Firn's counter after
	Outcome string
}

// A Plan is what to do with all counters.
type Plan struct {
	Rows   []Row
	Tokens []Token
}

const (
	// callTimeout bounds the store calls for one name.
	callTimeout = 30 * time.Second
	// maxMistakes bounds the mistakes that an error lists.
	maxMistakes = 20
)

// MakePlan makes a plan and writes nothing. An error lists the mistakes of all rows, which must be
// corrected first; then there is no plan.
func MakePlan(ctx context.Context, s store.Store, counters []Foreign, tokens []Token, o Options) (*Plan, error) {
	p := &Plan{Tokens: tokens}
	unnamed := p.name(counters, o.Rename)
	var errs []error
	for i := range p.Rows {
		if o.Progress != nil {
			o.Progress(i, len(p.Rows))
		}
		r := &p.Rows[i]
		if err := r.aim(o.Margin); err != nil {
			errs = append(errs, err)
			continue
		}
		err := r.look(ctx, s)
		switch {
		case errors.Is(err, store.ErrForeign), errors.Is(err, store.ErrTaken), errors.Is(err, segment.ErrStripe):
			errs = append(errs, err)
		case err != nil: // the store is unavailable
			return nil, errors.Join(unnamed, errors.Join(firstMistakes(errs)...), err)
		}
	}
	if err := errors.Join(unnamed, errors.Join(firstMistakes(errs)...)); err != nil {
		return nil, err
	}
	return p, nil
}

// firstMistakes shortens a list of mistakes to maxMistakes.
func firstMistakes(errs []error) []error {
	if len(errs) <= maxMistakes {
		return errs
	}
	return append(errs[:maxMistakes:maxMistakes], fmt.Errorf("and %d more", len(errs)-maxMistakes))
}

// name sets the names in Firn.
func (p *Plan) name(counters []Foreign, rename map[string]string) error {
	var errs []error
	refused := 0
	from := map[string]string{} // maps a name in Firn to the name in the other system
	unused := maps.Clone(rename)
	for _, c := range counters {
		here, renamed := rename[c.Name]
		if !renamed {
			here = c.Name
		}
		delete(unused, c.Name)
		if err := store.CheckName("segment", here); err != nil {
			if !renamed {
				refused++
			}
			errs = append(errs, err)
			continue
		}
		if other, taken := from[here]; taken {
			errs = append(errs, fmt.Errorf("%q and %q would both be named %q: rename one with --rename", other, c.Name, here))
		}
		from[here] = c.Name
		p.Rows = append(p.Rows, Row{Foreign: c, Here: here})
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		errs = append(errs, fmt.Errorf("--rename %q: the table has no such row", name))
	}
	errs = firstMistakes(errs)
	if refused > 0 {
		errs = append(errs, errors.New("rename each with --rename OLD=NEW, or leave it out with --skip"))
	}
	return errors.Join(errs...)
}

// aim sets the lowest id that a counter may issue next.
func (r *Row) aim(margin int64) error {
	if margin < 0 {
		margin = r.Step
	}
	if r.Next < 0 || r.Next > math.MaxInt64-margin {
		return fmt.Errorf("%q is at %d, and a margin of %d leaves no ids below the last, %d: use a smaller --margin, or leave it out with --skip",
			r.Name, int64(r.MaxID), margin, int64(firn.MaxID))
	}
	r.Least = firn.ID(r.Next + margin)
	return nil
}

// look reads the store's counter and sets the outcome.
func (r *Row) look(ctx context.Context, s store.Store) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	was, err := segment.ReadCounter(limited, s, r.Here)
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.Outcome = Created
	case err != nil:
		return err
	case was.Stripe != r.Stripe:
		return &segment.StripeError{Name: r.Here, Have: was.Stripe, Want: r.Stripe}
	case was.Next >= uint64(r.Least):
		r.Was, r.Now, r.Outcome = &was, was.Next, Unchanged
		return nil
	default:
		r.Was, r.Outcome = &was, Raised
	}
	r.Now = leastOf(r.Stripe, r.Least)
	return nil
}

// leastOf returns the least id of a stripe that is not below least.
func leastOf(s segment.Stripe, least firn.ID) uint64 {
	n, stride := uint64(least), uint64(s.Stride)
	return n + (uint64(s.Offset)+stride-n%stride)%stride
}

// Apply writes the plan, and calls progress, if not nil, after each name. After an error, MakePlan
// and Apply may be called again.
func (p *Plan) Apply(ctx context.Context, s store.Store, progress func(done, all int)) error {
	for i := range p.Rows {
		if err := p.Rows[i].apply(ctx, s); err != nil {
			return fmt.Errorf("%w; %d of %d names were imported; it is safe to run the import again", err, i, len(p.Rows))
		}
		if progress != nil {
			progress(i+1, len(p.Rows))
		}
	}
	return nil
}

func (r *Row) apply(ctx context.Context, s store.Store) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	now, err := segment.RaiseCounter(limited, s, r.Here, r.Least-1, r.Stripe)
	if err == nil {
		r.Now = now.Next // another process may have raised it further
	}
	return err
}

// Moved compares the plan with the other system's counters as they are now. An error lists those
// that have moved: the other system still issues ids, and must be stopped.
func (p *Plan) Moved(now []Foreign) error {
	at := map[string]firn.ID{}
	for _, c := range now {
		at[c.Name] = c.MaxID
	}
	var errs []error
	for _, r := range p.Rows {
		if id, ok := at[r.Name]; ok && id != r.MaxID {
			errs = append(errs, fmt.Errorf("%q has moved from %d to %d since it was read", r.Name, int64(r.MaxID), int64(id)))
		}
	}
	return errors.Join(firstMistakes(errs)...)
}

// Skipped counts the names in tokens that are not in the plan.
func (p *Plan) Skipped() (n int) {
	known := p.names()
	for _, t := range p.Tokens {
		for _, of := range t.Of {
			if known[of] == "" {
				n++
			}
		}
	}
	return n
}

// names maps the names in the other system to those in Firn.
func (p *Plan) names() map[string]string {
	known := map[string]string{}
	for _, r := range p.Rows {
		known[r.Name] = r.Here
	}
	return known
}

// YAML returns the part of a server's configuration that serves the imported counters. It does
// not depend on the counters' values. System names the other system in one word.
func (p *Plan) YAML(system, storeURL string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Imported from %s by firn import.\n", system)
	if storeURL != "" {
		fmt.Fprintf(&b, "store: %s\n", quoted(storeURL))
	} else {
		b.WriteString("# store: the URL given to firn import; it contains a password, so it is not written here\n")
	}
	b.WriteString("namespaces:\n")
	for _, r := range p.Rows {
		fmt.Fprintf(&b, "  %s: {kind: segment, min_step: %d", quoted(r.Here), max(r.Step/r.Stripe.Stride, 1))
		if r.Stripe.Stride != 1 {
			fmt.Fprintf(&b, ", offset: %d, stride: %d", r.Stripe.Offset, r.Stripe.Stride)
		}
		b.WriteString("}\n")
	}
	known, wrote := p.names(), false
	for i, t := range p.Tokens {
		var of []string
		for _, name := range t.Of {
			if here := known[name]; here != "" {
				of = append(of, quoted(here))
			}
		}
		if len(of) == 0 {
			continue
		}
		if !wrote {
			b.WriteString("# Clients keep their tokens. This file has only the SHA-256 of each.\ntokens:\n")
			wrote = true
		}
		fmt.Fprintf(&b, "  - {name: %s-%d, sha256: \"%s\", namespaces: [%s]}\n", system, i+1, t.SHA256, strings.Join(of, ", "))
	}
	return []byte(b.String())
}

// quoted returns text as a YAML string: in quotes, unless it is a plain word.
func quoted(text string) string {
	letters := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
	switch word := strings.ToLower(text); {
	case text == "" || !letters || text[0] <= '9' || text[0] == '_':
	case slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}, word):
	default:
		return text
	}
	return strconv.Quote(text)
}
