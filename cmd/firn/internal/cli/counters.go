package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

const (
	// mostAtOnce bounds how many ids of a segment a command fetches at once, and so
	// what is lost if it is killed.
	mostAtOnce = 100_000
	// maxStep and maxStride are those of package segment.
	maxStep   = 1 << 40
	maxStride = 1 << 20
)

// counterFlags say which counter in the store is counted, and how.
type counterFlags struct {
	name, template              string
	first, step, offset, stride int64
}

func (f *counterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "with segment, sequence and number: what is counted, as orders; each name has a counter of its own in the store")
	flags.Int64Var(&f.first, "first", 1, "with segment and sequence: the least id, where a name begins that the store does not know")
	flags.Int64Var(&f.step, "step", 0, fmt.Sprintf("with segment: how many ids are fetched at once (default: as many as are asked for, up to %d)", mostAtOnce))
	flags.Int64Var(&f.stride, "stride", 1, "with segment: the distance of ids, where several stores that know nothing of each other serve one name")
	flags.Int64Var(&f.offset, "offset", 0, "with segment: the remainder of ids divided by --stride, another on each of the stores")
	flags.StringVar(&f.template, "template", "", "with number: what numbers look like, as ORD{yyyyMMdd}-{n:6}; they begin at 1 again in each year, month or day that it has")
}

// A counted is what is to be made of a counter, checked before the store is opened.
type counted struct {
	name     string
	n        int64
	kind     string
	segment  segment.Config
	sequence sequence.Config
	number   numbering.Config
	write    appender // of segments and sequences
}

// counted returns what the flags ask for.
func (f *kindFlags) counted(cmd *cobra.Command, k kind, n int64, format string, log *slog.Logger) (counted, error) {
	flags := cmd.Flags()
	c := counted{name: f.counter.name, n: n, kind: k.name}
	var nameErr, formatErr, err error
	if !flags.Changed("name") {
		nameErr = fmt.Errorf("--kind %s needs a --name, as in --name orders: what is counted", k.name)
	} else if err := store.CheckName(k.name, c.name); err != nil {
		nameErr = fmt.Errorf("%s: %w", origin(flags, "name"), err)
	}
	switch k.name {
	case "segment":
		c.segment, err = f.counter.segment(flags, n)
		c.segment.Log = log
	case "sequence":
		c.sequence, err = sequence.Config{Start: firn.ID(f.counter.first), Log: log}, checkRange("first id", f.counter.first, 1, int64(firn.MaxID))
	default:
		c.sequence.Log = log
		c.number, err = f.counter.number(flags, f.zone, n)
		return c, errors.Join(nameErr, err)
	}
	c.write, formatErr = f.appender(flags, k, format, firn.DefaultLayout())
	return c, errors.Join(nameErr, err, formatErr)
}

func (f *counterFlags) segment(flags *pflag.FlagSet, n int64) (segment.Config, error) {
	step := f.step
	if !flags.Changed("step") {
		// One more than are asked for, so that none is fetched ahead; it is given back.
		step = min(n, mostAtOnce-1) + 1
	}
	// The limits of the offset follow from those of the stride.
	err := errors.Join(checkRange("first id", f.first, 1, int64(firn.MaxID)), checkRange("step", step, 1, maxStep), checkRange("stride", f.stride, 1, maxStride))
	if err == nil {
		err = checkRange("offset", f.offset, 0, f.stride-1)
	}
	return segment.Config{
		MinStep: step, MaxStep: step, Start: firn.ID(f.first), Offset: f.offset, Stride: f.stride,
		// A command ends soon: the next range is fetched when this one is used up.
		Ahead: 1e-9, Chain: 1,
	}, err
}

func (f *counterFlags) number(flags *pflag.FlagSet, calendar string, n int64) (numbering.Config, error) {
	if !flags.Changed("template") {
		return numbering.Config{}, errors.New("--kind number needs a --template, as in --template 'ORD{yyyyMMdd}-{n:6}'")
	}
	at, err := settings.ParseZone(calendar)
	if err != nil {
		return numbering.Config{}, err
	}
	cfg := numbering.Config{Template: f.template, Zone: at}
	check := cfg
	check.Counter = (*sequence.Namespace)(nil) // it is not asked
	format, err := numbering.New(check)
	if err != nil {
		return numbering.Config{}, err
	}
	if most := format.PerPeriod(); n > most { // else some are used up before it turns out
		return numbering.Config{}, firn.NewRangeError("number of ids, -n", n, 1, most, "template "+f.template)
	}
	return cfg, nil
}

// make makes the ids, over a store, and writes them.
func (c counted) make(ctx context.Context, s store.Store, p *printer) error {
	if c.kind == "segment" {
		return c.makeSegment(ctx, s, p)
	}
	c.sequence.Store = s
	all, err := sequence.New(c.sequence)
	if err != nil {
		return err
	}
	return closing(ctx, all.Close, func() error {
		one, err := all.Namespace(c.name)
		if err != nil {
			return err
		}
		if c.kind == "sequence" {
			return writeIDs(ctx, one, c.n, p, c.write)
		}
		c.number.Counter = one
		c.number.Clock, _ = s.(store.Clock)
		format, err := numbering.New(c.number)
		if err != nil {
			return err
		}
		return writeNumbers(ctx, format, c.n, p)
	})
}

func (c counted) makeSegment(ctx context.Context, s store.Store, p *printer) error {
	c.segment.Store = s
	all, err := segment.New(c.segment)
	if err != nil {
		return err
	}
	return closing(ctx, all.Close, func() error { // which gives back what is left
		one, err := all.Namespace(c.name)
		if err != nil {
			return err
		}
		return stripeHint(writeIDs(ctx, one, c.n, p, c.write))
	})
}

// closing runs do, and then closes what it used, even if ctx has ended.
func closing(ctx context.Context, end func(context.Context) error, do func() error) error {
	err := do()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, end(ctx))
}

// stripeHint adds the flags that help.
func stripeHint(err error) error {
	if errors.Is(err, segment.ErrStripe) {
		return fmt.Errorf("%w (flags --offset and --stride)", err)
	}
	return err
}

// writeNumbers makes n business numbers.
func writeNumbers(ctx context.Context, format *numbering.Format, n int64, p *printer) error {
	for left := n; left > 0; {
		texts, err := format.Reserve(ctx, int(min(left, chunk)))
		if err != nil {
			return err
		}
		for _, text := range texts {
			if err := p.add(func(dst []byte) ([]byte, error) { return p.appendText(dst, text) }); err != nil {
				return err
			}
		}
		if err := p.flush(); err != nil {
			return err
		}
		left -= int64(len(texts))
		if left > 0 && ctx.Err() != nil {
			return fmt.Errorf("stopped with %d ids to go: %w", left, context.Cause(ctx))
		}
	}
	return nil
}

// appendText appends a text that may have any character.
func (p *printer) appendText(dst []byte, text string) ([]byte, error) {
	if !p.asJSON {
		return append(dst, text...), nil
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return dst, err
	}
	return append(dst, quoted[1:len(quoted)-1]...), nil // the quotes are there
}

func checkRange(what string, value, least, most int64) error {
	if least <= value && value <= most {
		return nil
	}
	return firn.NewRangeError(what, value, least, most, "")
}
