package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

const (
	// mostAtOnce bounds how many ids of a segment a command fetches at once, and so how many are lost if it is killed.
	mostAtOnce = 100_000
	maxStep    = 1 << 40 // that of package segment
)

// A counted describes the ids to make with a counter. It is checked before the store is opened.
type counted struct {
	set   settings.Namespace
	name  string
	n     int64
	write appender // of numbers
	log   *slog.Logger
}

// counted returns the ids that the flags describe.
func (f *kindFlags) counted(flags *pflag.FlagSet, set settings.Namespace, n int64, format string, log *slog.Logger) (counted, error) {
	k := set.Of()
	var nameErr, stepErr, formatErr error
	if !flags.Changed("name") {
		nameErr = fmt.Errorf("--kind %s needs a --name, as in --name orders: what is counted", k.Name)
	} else if err := store.CheckName(k.Name, f.name); err != nil {
		nameErr = fmt.Errorf("%s: %w", origin(flags, "name"), err)
	}
	switch k.Source {
	case settings.Ranges:
		step := f.step
		if !flags.Changed("step") {
			// One more id than needed, so that the next range is not fetched ahead. The id is given back.
			step = min(n, mostAtOnce-1) + 1
		}
		stepErr = checkMost("step", step, maxStep)
		set.MinStep, set.MaxStep = step, step
	case settings.Template:
		if !flags.Changed("template") {
			return counted{}, errors.Join(nameErr, fmt.Errorf("--kind %s needs a --template, as in --template 'ORD{yyyyMMdd}-{n:6}'", k.Name))
		}
		if _, made, err := set.NumberFormat(); err == nil && n > made.PerPeriod() { // otherwise some numbers are used up before the error
			nameErr = errors.Join(nameErr, firn.NewRangeError("-n", n, 1, made.PerPeriod(), "template "+set.Template))
		}
	}
	c := counted{set: set, name: f.name, n: n, log: log}
	if k.Numeric {
		c.write, formatErr = newAppender(set, format, firn.DefaultLayout())
	}
	return c, errors.Join(nameErr, stepErr, mistaken(flags, set), formatErr)
}

// make makes the ids, over a store, and writes them.
func (c counted) make(ctx context.Context, s store.Store, p *printer) error {
	if c.set.Of().Source == settings.Ranges {
		return c.makeSegment(ctx, s, p)
	}
	cfg := c.set.SequenceConfig()
	cfg.Store, cfg.Log = s, c.log
	return withSequence(ctx, cfg, c.name, c.set, func(one *sequence.Namespace, format *numbering.Format) error {
		if format != nil {
			return writeTexts(ctx, c.n, p, format.Reserve)
		}
		return writeIDs(ctx, one, c.n, p, c.write)
	})
}

// withSequence runs do with a sequence, and with the form of its numbers if it has one.
func withSequence(ctx context.Context, cfg sequence.Config, name string, set settings.Namespace,
	do func(one *sequence.Namespace, format *numbering.Format) error,
) error {
	all, err := sequence.New(cfg)
	if err != nil {
		return err
	}
	_, err = thenClose(ctx, all.Close, func() error {
		one, err := all.Namespace(name)
		if err != nil {
			return err
		}
		if set.Of().Source == settings.Counter {
			return do(one, nil)
		}
		cfg, _, err := set.NumberFormat()
		if err != nil {
			return err
		}
		cfg.Counter = one
		format, err := numbering.New(cfg)
		if err != nil {
			return err
		}
		return do(one, format)
	})
	return err
}

func (c counted) makeSegment(ctx context.Context, s store.Store, p *printer) error {
	cfg := c.set.SegmentConfig()
	cfg.Store, cfg.Log = s, c.log
	cfg.Ahead, cfg.Chain = 1e-9, 1 // a command ends soon: the next range is fetched when this one is used up
	all, err := segment.New(cfg)
	if err != nil {
		return err
	}
	unused, err := thenClose(ctx, all.Close, func() error {
		one, err := all.Namespace(c.name)
		if err != nil {
			return err
		}
		return stripeHint(writeIDs(ctx, one, c.n, p, c.write))
	})
	if unused != nil {
		c.log.Warn("ids that were not used could not be given back, and are never issued", "reason", unused)
	}
	return err
}

// thenClose runs do, and then closes what it used, even if ctx has ended. If do succeeded, what could not be given back is no
// failure of the command: kept says why.
func thenClose(ctx context.Context, end func(context.Context) error, do func() error) (kept, err error) {
	err = do()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if kept = end(ctx); err != nil {
		return nil, errors.Join(err, kept)
	}
	return kept, nil
}

// stripeHint adds the flags that help.
func stripeHint(err error) error {
	if errors.Is(err, segment.ErrStripe) {
		return fmt.Errorf("%w (flags --offset and --stride)", err)
	}
	return err
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
	return append(dst, quoted[1:len(quoted)-1]...), nil // without the quotes
}

// checkMost refuses a value that is not from 1 to most.
func checkMost(what string, value, most int64) error {
	if 1 <= value && value <= most {
		return nil
	}
	return firn.NewRangeError(what, value, 1, most, "")
}
