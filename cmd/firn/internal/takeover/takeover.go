// Package takeover moves the counters of other systems into segments of Firn's:
// a plan that is checked whole, then written, never lowering a counter, so that
// doing it again does no harm.
package takeover

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
	MaxID  firn.ID // as the table has it
	Next   int64   // the least id that is not granted yet; -1: there is no such id
	Step   int64   // how far the system moves it at once
	Stripe segment.Stripe
}

// A Token opens namespaces, by their names there.
type Token struct {
	SHA256 string // in hex
	Of     []string
}

// Options say how to take over.
type Options struct {
	// Margin is how far above its MaxID a counter goes on; negative for the step
	// of each.
	Margin int64
	// Rename has the name here of those that are to have another.
	Rename map[string]string
	// Progress is called with how many names have been read. May be nil.
	Progress func(done, all int)
}

// What happened to a name, or would.
const (
	Taken  = "taken over"    // there was no counter
	Raised = "raised again"  // there was one, below
	Above  = "already above" // there was one, and it stays
)

// A Row is what a plan does with one counter.
type Row struct {
	Foreign
	Here    string           // its name
	Least   firn.ID          // where it is to go on, at least
	Was     *segment.Counter // nil without one
	Now     uint64
	Outcome string
}

// A Plan is what to do with all counters.
type Plan struct {
	Rows   []Row
	Tokens []Token // by names there
}

const (
	// callTimeout bounds what is done with one name.
	callTimeout = 30 * time.Second
	// maxMistakes bounds an error that names every mistake.
	maxMistakes = 20
)

// Make makes a plan and writes nothing. The error names what must be put right
// before anything is taken over, mistakes of all rows at once; there is no plan then.
func Make(ctx context.Context, s store.Store, counters []Foreign, tokens []Token, o Options) (*Plan, error) {
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
		case errors.Is(err, store.ErrForeign), errors.Is(err, segment.ErrStripe):
			errs = append(errs, err)
		case err != nil: // the store is away
			return nil, errors.Join(unnamed, errors.Join(few(errs)...), err)
		}
	}
	if err := errors.Join(unnamed, errors.Join(few(errs)...)); err != nil {
		return nil, err
	}
	return p, nil
}

// few cuts a list of mistakes to a readable length.
func few(errs []error) []error {
	if len(errs) <= maxMistakes {
		return errs
	}
	return append(errs[:maxMistakes:maxMistakes], fmt.Errorf("and %d more", len(errs)-maxMistakes))
}

// name finds the names here.
func (p *Plan) name(counters []Foreign, rename map[string]string) error {
	var errs []error
	refused := 0
	from := map[string]string{} // the name there of a name here
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
			errs = append(errs, fmt.Errorf("%q and %q would both be %q here: give one another name by --rename", other, c.Name, here))
		}
		from[here] = c.Name
		p.Rows = append(p.Rows, Row{Foreign: c, Here: here})
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		errs = append(errs, fmt.Errorf("--rename %q: the table has no such row", name))
	}
	errs = few(errs)
	if refused > 0 {
		errs = append(errs, errors.New("name each of them anew by --rename OLD=NEW, or leave it out by --skip"))
	}
	return errors.Join(errs...)
}

// aim sets where a counter is to go on.
func (r *Row) aim(margin int64) error {
	if margin < 0 {
		margin = r.Step
	}
	if r.Next < 0 || r.Next > math.MaxInt64-margin {
		return fmt.Errorf("%q stands at %d, and %d above that there are no ids left: %d is the last; give a smaller --margin, or leave it out by --skip",
			r.Name, int64(r.MaxID), margin, int64(firn.MaxID))
	}
	r.Least = firn.ID(r.Next + margin)
	return nil
}

// look finds what the store has, and so what is to be done.
func (r *Row) look(ctx context.Context, s store.Store) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	was, err := segment.ReadCounter(limited, s, r.Here)
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.Outcome = Taken
	case err != nil:
		return err
	case was.Stripe != r.Stripe:
		return &segment.StripeError{Name: r.Here, Have: was.Stripe, Want: r.Stripe}
	case was.Next >= uint64(r.Least):
		r.Was, r.Now, r.Outcome = &was, was.Next, Above
		return nil
	default:
		r.Was, r.Outcome = &was, Raised
	}
	r.Now = first(r.Stripe, r.Least)
	return nil
}

// first returns the least id of a stripe that is not below least.
func first(s segment.Stripe, least firn.ID) uint64 {
	n, stride := uint64(least), uint64(s.Stride)
	return n + (uint64(s.Offset)+stride-n%stride)%stride
}

// Apply writes the plan, and calls progress, if not nil, after each name.
// It can be called again, as can Make, whatever became of it.
func (p *Plan) Apply(ctx context.Context, s store.Store, progress func(done, all int)) error {
	for i := range p.Rows {
		if err := p.Rows[i].apply(ctx, s); err != nil {
			return fmt.Errorf("%w; %d of %d names were taken over, doing it again is safe", err, i, len(p.Rows))
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
	now, err := segment.RaiseCounter(limited, s, r.Here, r.Least, r.Stripe)
	if err == nil {
		r.Now = now.Next // others may have moved it meanwhile
	}
	return err
}

// Moved returns an error that names the counters that their system has moved since
// they were read, as which it says what they are now. It has to be stopped then.
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
	return errors.Join(few(errs)...)
}

// Skipped counts what tokens open that is no counter here.
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

// names has the name here of each name there.
func (p *Plan) names() map[string]string {
	known := map[string]string{}
	for _, r := range p.Rows {
		known[r.Name] = r.Here
	}
	return known
}

// YAML returns the part of a server's configuration that serves what was taken
// over. It depends on the tables' settings and not on where counters stand.
// System is what they were taken from, in one word.
func (p *Plan) YAML(system, storeURL string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Taken over from %s by firn import.\n", system)
	if storeURL != "" {
		fmt.Fprintf(&b, "store: %s\n", quoted(storeURL))
	} else {
		b.WriteString("# store: as given to firn import; its URL has a password, so that it is not repeated here\n")
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
			b.WriteString("# The secrets are those that clients have already: here are only their SHA-256.\ntokens:\n")
			wrote = true
		}
		fmt.Fprintf(&b, "  - {name: %s-%d, sha256: \"%s\", namespaces: [%s]}\n", system, i+1, t.SHA256, strings.Join(of, ", "))
	}
	return []byte(b.String())
}

// quoted writes text as YAML reads it back: in quotes but for plain words.
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
