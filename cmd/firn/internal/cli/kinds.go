package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/prefixed"
	"github.com/firn-id/firn/serial"
)

// kindHelp lists the kinds that firn next makes.
const kindHelp = "snowflake, uuid (version 7), uuid4, objectid or serial (32 digits that begin with the time); " +
	"or, counted in the store under a --name, segment, sequence or number"

// A kind is what firn next makes, and how.
type kind struct {
	name string
	from material
}

// material is what ids of a kind are made of.
type material int

const (
	fromNothing material = iota // that others share
	fromLease                   // of a worker
	fromCounter                 // in the store
)

var kinds = []kind{
	{"snowflake", fromLease}, {"uuid", fromNothing}, {"uuid7", fromNothing}, {"uuid4", fromNothing}, {"objectid", fromNothing},
	{"serial", fromLease}, {"segment", fromCounter}, {"sequence", fromCounter}, {"number", fromCounter},
}

func parseKind(name string) (kind, error) {
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, firn.NewSyntaxError("kind", name, kindHelp+" are allowed")
}

// serialWidth is the default of package serial.
const serialWidth = 32

// kindFlags say what is made of ids, or beside them.
type kindFlags struct {
	kind, prefix string
	width        int
	check, zone  string
	counter      counterFlags
}

func (f *kindFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "snowflake", kindHelp)
	flags.StringVar(&f.prefix, "prefix", "", "what ids begin with: ord makes ord_…, in fixed-width base32 that sorts; with --kind serial it takes part of the width")
	f.addSerial(cmd)
	flags.Lookup("zone").Usage = "with serial and number: whose clocks and calendar the time is read off, as UTC or +08:00"
	f.counter.add(cmd)
}

func (f *kindFlags) addSerial(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.width, "width", serialWidth, "with serial: how many characters, prefix and check included")
	flags.StringVar(&f.check, "check", "none", "with serial: check digits at the end: none, luhn (one) or mod97 (two, ISO 7064)")
	flags.StringVar(&f.zone, "zone", "UTC", "with serial: whose clocks the time is read off, as UTC or +08:00")
}

// aboutSerials reports whether a flag was given that says how serials look.
func (f *kindFlags) aboutSerials(cmd *cobra.Command) bool {
	return slices.ContainsFunc([]string{"width", "check", "zone"}, func(name string) bool { return given(cmd.Flags(), name) })
}

// serial returns the format that the flags ask for.
func (f *kindFlags) serial(flags *pflag.FlagSet, layout firn.Layout) (*serial.Format, error) {
	check, err := serial.ParseCheck(f.check)
	at, zoneErr := settings.ParseZone(f.zone)
	var widthErr error
	if f.width == 0 { // which serial.New takes for the default
		widthErr = fmt.Errorf("%s 0 is no width of serials: leave it out for the default of %d", origin(flags, "width"), serialWidth)
	}
	if err := errors.Join(err, zoneErr, widthErr); err != nil {
		return nil, err
	}
	return serial.New(serial.Config{Layout: layout, Width: f.width, Prefix: f.prefix, Zone: at, Check: check})
}

// wide makes n ids that need no lease.
func (f *kindFlags) wide(ctx context.Context, k kind, n int64, p *printer) error {
	var prefix *prefixed.Prefix
	if f.prefix != "" {
		parsed, err := prefixed.New(f.prefix)
		if err != nil {
			return usage(err)
		}
		prefix = &parsed
	}
	next, err := wideSource(k)
	if err != nil {
		return err
	}
	for made := range n {
		if made%chunk == chunk-1 {
			if err := p.flush(); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return fmt.Errorf("stopped with %d ids to go: %w", n-made, context.Cause(ctx))
			}
		}
		id, text, err := next(ctx)
		if err != nil {
			return err
		}
		if err := p.add(func(dst []byte) ([]byte, error) {
			if prefix != nil {
				return prefix.AppendBytes(dst, id), nil
			}
			return append(dst, text...), nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// wideSource returns what makes the ids of a kind.
func wideSource(k kind) (settings.NextWide, error) {
	n := settings.Namespace{Kind: strings.TrimRight(k.name, "47")}
	if k.name == "uuid4" {
		n.Version = 4
	}
	return n.Of().Wide(n)
}

// An appender appends an id as it is to be written.
type appender func(dst []byte, id firn.ID) ([]byte, error)

// appender returns how the ids of a kind that are numbers are written.
func (f *kindFlags) appender(flags *pflag.FlagSet, k kind, format string, layout firn.Layout) (appender, error) {
	switch {
	case k.name == "serial":
		s, err := f.serial(flags, layout)
		if err != nil {
			return nil, err
		}
		return s.Append, nil
	case f.prefix != "":
		prefix, err := prefixed.New(f.prefix)
		if err != nil {
			return nil, err
		}
		return func(dst []byte, id firn.ID) ([]byte, error) { return prefix.AppendID(dst, id), nil }, nil
	default:
		w, err := newWriter(format, layout)
		if err != nil {
			return nil, err
		}
		if w.readable && k.from == fromCounter {
			return nil, fmt.Errorf("--format readable writes the time of an id; those of --kind %s have none", k.name)
		}
		return w.append, nil
	}
}

// writeIDs makes n ids and writes them.
func writeIDs(ctx context.Context, from filler, n int64, p *printer, write appender) error {
	return chunks(ctx, from, n, func(ids []firn.ID) error {
		for _, id := range ids {
			if err := p.add(func(dst []byte) ([]byte, error) { return write(dst, id) }); err != nil {
				return err
			}
		}
		return p.flush()
	})
}
