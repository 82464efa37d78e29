package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/prefixed"
)

// kindHelp lists the kinds that firn next makes.
func kindHelp() string {
	var here, counted []string
	for _, k := range settings.Kinds {
		name := k.Name
		if k.Help != "" {
			name += " (" + k.Help + ")"
		}
		if k.Counted() {
			counted = append(counted, name)
			continue
		}
		here = append(append(here, name), slices.Sorted(maps.Keys(k.Variants))...)
	}
	return strings.Join(here, ", ") + "; or, counted in the store under a --name, " + failure.List(counted, "or")
}

// kindFlags are the flags of all kinds of ids.
type kindFlags struct {
	kind, name string
	step       int64
	set        *settings.Namespace
}

// add adds the flags of all kinds. The values of settings go to set.
func (f *kindFlags) add(cmd *cobra.Command, set *settings.Namespace) {
	f.set = set
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", settings.Kinds[0].Name, kindHelp())
	flags.StringVar(&f.name, "name", "", "name of the counter, such as orders")
	flags.Int64Var(&f.step, "step", 0, fmt.Sprintf("ids to fetch at once (default: -n, up to %d)", mostAtOnce))
	addSettings(flags, set, settings.All())
	forKinds(flags, aboutNext)
}

// parse returns the kind and its settings. A flag of another kind is a mistake.
func (f *kindFlags) parse(flags *pflag.FlagSet) (*settings.Kind, settings.Namespace, error) {
	k, err := kindOf(f.kind)
	if err != nil {
		return nil, settings.Namespace{}, err
	}
	set := k.Only(*f.set)
	if variant := k.Variants[f.kind]; variant != nil {
		variant(&set)
	}
	err = flagsOfOtherKinds(flags, aboutNext, k.Name)
	if k.Source == settings.Template && given(flags, "prefix") {
		err = errors.Join(err, errors.New("--prefix: write it into the --template"))
	}
	if set.Prefix != "" && given(flags, "format") && err == nil {
		err = errors.New("--prefix has an encoding of its own: leave out --format")
	}
	return k, set, err
}

// kindNames returns the names of kinds and of their variants, such as uuid4.
func kindNames() (names []string) {
	for _, k := range settings.Kinds {
		names = append(append(names, k.Name), slices.Sorted(maps.Keys(k.Variants))...)
	}
	return names
}

// kindOf returns the kind of a name, which may be a variant such as uuid4.
func kindOf(name string) (*settings.Kind, error) {
	for _, k := range settings.Kinds {
		if k.Name == name || k.Variants[name] != nil {
			return k, nil
		}
	}
	return nil, firn.NewSyntaxError("kind", name, failure.List(kindNames(), "and")+" are allowed"+failure.DidYouMean(name, kindNames()))
}

// writeWide makes n ids that need no lease.
func writeWide(ctx context.Context, set settings.Namespace, n int64, p *printer) error {
	var prefix *prefixed.Prefix
	if set.Prefix != "" {
		parsed, err := prefixed.New(set.Prefix)
		if err != nil {
			return usage(err)
		}
		prefix = &parsed
	}
	next, err := set.Of().Wide(set)
	if err != nil {
		return err
	}
	return writeTexts(ctx, n, p, func(ctx context.Context, n int) ([]string, error) {
		texts := make([]string, 0, n)
		for range n {
			id, text, err := next(ctx)
			if err != nil {
				return texts, err
			}
			if prefix != nil {
				text = prefix.Bytes(id)
			}
			texts = append(texts, text)
		}
		return texts, nil
	})
}

// An appender appends an id in its text form.
type appender func(dst []byte, id firn.ID) ([]byte, error)

// newAppender returns the text form of ids that are made of numbers.
func newAppender(set settings.Namespace, format string, layout firn.Layout) (appender, error) {
	k := set.Of()
	switch {
	case k.Format != nil:
		write, err := k.Format(set)
		return func(dst []byte, id firn.ID) ([]byte, error) {
			text, err := write(id)
			return append(dst, text...), err
		}, err
	case set.Prefix != "":
		prefix, err := prefixed.New(set.Prefix)
		return func(dst []byte, id firn.ID) ([]byte, error) { return append(dst, prefix.ID(id)...), nil }, err
	default:
		f, err := decode.ParseFormat(format)
		if f.Readable && k.Counted() {
			err = fmt.Errorf("--format readable writes the time of an id; those of --kind %s have none", k.Name)
		}
		return func(dst []byte, id firn.ID) ([]byte, error) { return f.Append(dst, layout, id) }, err
	}
}

// A filler makes ids. It fills as many as it can, and returns an error if those are not all.
type filler interface {
	Fill(ctx context.Context, ids []firn.ID) (int, error)
}

// writeIDs makes n ids and writes them.
func writeIDs(ctx context.Context, from filler, n int64, p *printer, write appender) error {
	ids := make([]firn.ID, min(n, chunk))
	return writeSome(ctx, n, p, func(n int) (int, error) {
		filled, err := from.Fill(ctx, ids[:n])
		for _, id := range ids[:filled] {
			if err := p.add(func(dst []byte) ([]byte, error) { return write(dst, id) }); err != nil {
				return filled, err
			}
		}
		return filled, err
	})
}

// writeTexts writes n ids that are texts. Some makes up to so many of them, which it returns with an error too.
func writeTexts(ctx context.Context, n int64, p *printer, some func(ctx context.Context, n int) ([]string, error)) error {
	return writeSome(ctx, n, p, func(n int) (int, error) {
		texts, err := some(ctx, n)
		for _, text := range texts {
			if err := p.add(func(dst []byte) ([]byte, error) { return p.appendText(dst, text) }); err != nil {
				return len(texts), err
			}
		}
		return len(texts), err
	})
}
