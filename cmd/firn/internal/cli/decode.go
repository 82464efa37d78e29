package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/serial"
)

// decodable returns the kinds whose ids can be decoded without the store.
func decodable() []*settings.Kind {
	return slices.DeleteFunc(slices.Clone(settings.Kinds), func(k *settings.Kind) bool {
		return k.Counted() || k.Read == nil && !k.Numeric
	})
}

func newDecode() *cobra.Command {
	var (
		flags  layoutFlags
		kind   string
		format string
	)
	cmd := &cobra.Command{
		Use:   "decode ID…",
		Short: "Decode ids and draw their bits",
		Long: `decode shows the parts of ids. It detects the encoding; if several fit, it uses the
first one that gives a time not far in the future, and lists the others. It recognizes
UUIDs, ObjectIDs and ids with a prefix, and serials of 32 digits without one. - reads ids
from standard input, one per line.

If no layout is given and the default one gives an implausible time, decode says so and
lists the presets that give a plausible one.`,
		Example: `  firn decode 1541815603606036480 --layout twitter
  firn decode 1414362783486840832 --layout classic --json
  firn next -n 3 | firn decode -
  firn decode 507f1f77bcf86cd799439011
  firn decode --kind serial --prefix PAY --check luhn PAY20261121092742220000032733111`,
		Args: someIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := kindToDecode(cmd.Flags(), kind)
			if err != nil {
				return usage(err)
			}
			var layout firn.Layout
			if k == nil || k.Source == settings.Generator {
				if layout, err = flags.parse(); err != nil {
					return usage(err)
				}
			}
			if k == nil || k.Numeric {
				if err := decode.CheckFormat(format); err != nil {
					return usage(err)
				}
			}
			var read func(string) (decode.Contents, error)
			switch {
			case k == nil:
				serials, err := knownSerials(cmd.Flags(), flags.set)
				if err != nil {
					return usage(err)
				}
				read = func(text string) (decode.Contents, error) {
					return decode.Any(text, format, layout, serials, time.Now())
				}
			case k.Read != nil:
				set := k.Only(flags.set)
				read, err = set.ReadByForm()
				if err := errors.Join(refuseEmpty(cmd.Flags(), set, k.Settings()), err); err != nil {
					return usage(err)
				}
			default:
				read = func(text string) (decode.Contents, error) {
					r, err := decode.Text(text, format, layout, time.Now())
					return r.Contents(""), err
				}
			}
			p, asJSON := paletteOf(cmd), asJSON(cmd)
			out := bufio.NewWriter(cmd.OutOrStdout())
			count := 0
			show := func(text string) error {
				t, err := read(text)
				if err != nil {
					return err
				}
				var about doubt
				if t.Parts != nil {
					about = doubtful(t.Parts.ID, layout, time.Now())
				}
				switch {
				case asJSON && t.Parts == nil:
					return json.NewEncoder(out).Encode(t)
				case asJSON:
					return json.NewEncoder(out).Encode(struct {
						decode.Result
						doubt
					}{*t.Parts, about})
				}
				if count++; count > 1 {
					fmt.Fprintln(out)
				}
				if t.Parts == nil {
					explainContents(out, p, text, t)
					return nil
				}
				explain(out, p, text, layout, *t.Parts)
				about.print(out, p)
				return nil
			}
			return eachID(args, cmd.InOrStdin(), out, show)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&kind, "kind", "", "kind of the ids: "+failure.List(decodableNames(), "or")+" (default: detected)")
	cmd.Flags().StringVar(&flags.set.Prefix, "prefix", "", "prefix of the serials")
	addSettings(cmd.Flags(), &flags.set, settings.Group(settings.Serial{}, settings.Dated{}))
	forKinds(cmd.Flags(), aboutDecode)
	cmd.Flags().StringVar(&format, "format", "", "encoding of the ids: "+encodingHelp+", readable, "+strings.Join(decode.Foreign(), ", ")+" (default: detected)")
	cmd.Flags().Bool("json", false, "print one JSON object per line")
	return cmd
}

func decodableNames() (names []string) {
	for _, k := range decodable() {
		names = append(names, k.Name)
	}
	return names
}

// kindToDecode returns the kind of a name, nil for none, and checks that the flags are about it.
func kindToDecode(flags *pflag.FlagSet, name string) (*settings.Kind, error) {
	for _, k := range decodable() {
		if k.Name == name {
			return k, flagsOfOtherKinds(flags, aboutDecode, name)
		}
	}
	_, err := kindOf(name)
	switch {
	case name != "" && (err != nil || !byEnvironment(flags.Lookup("kind"))): // a FIRN_KIND of another kind is meant for firn next
		return nil, firn.NewSyntaxError("kind", name, failure.List(decodableNames(), "and")+" are allowed"+failure.DidYouMean(name, decodableNames()))
	case given(flags, "prefix"):
		return nil, fmt.Errorf("--prefix is for --kind %s; other prefixes are found by themselves", failure.List(aboutDecode("prefix"), "or"))
	}
	return nil, nil
}

// knownSerials returns the format of serials, nil if the flags describe none.
func knownSerials(flags *pflag.FlagSet, set settings.Namespace) (*serial.Format, error) {
	set.Prefix = "" // may be set in the environment; serials with a prefix cannot be recognized by their form
	of := settings.Group(settings.Serial{}, settings.Dated{})
	f, err := set.SerialFormat()
	if err = errors.Join(refuseEmpty(flags, set, of), err); err == nil {
		return f, nil
	}
	if slices.ContainsFunc(of, func(s settings.Setting) bool { return given(flags, s.Flag) }) {
		return nil, err
	}
	return nil, nil // some layouts do not fit into serials of the default width
}

// eachID calls do for each id on the command line or standard input, and flushes what do has written. An error of do does not
// stop it: it returns the first ten, and how many more there are. An error of writing stops it.
func eachID(args []string, stdin io.Reader, out *bufio.Writer, do func(string) error) error {
	var errs []error
	wrong := 0
	try := func(text, place string) (goOn bool) {
		err := do(text)
		if _, failed := out.Write(nil); failed != nil { // that of any earlier write
			return false
		}
		if err != nil {
			if wrong++; wrong <= maxShown {
				errs = append(errs, fmt.Errorf("%s%w", place, err))
			}
		}
		return true
	}
all:
	for _, arg := range args {
		if arg != "-" {
			if !try(strings.TrimPrefix(arg, notAFlag), "") {
				break
			}
			continue
		}
		lines := bufio.NewScanner(stdin)
		for n := 1; lines.Scan(); n++ {
			if text := strings.TrimSpace(lines.Text()); text != "" && !try(text, fmt.Sprintf("line %d: ", n)) {
				break all
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			errs = append(errs, fmt.Errorf("standard input: a line has more than %d bytes: one id a line is wanted", bufio.MaxScanTokenSize))
		case err != nil:
			errs = append(errs, fmt.Errorf("standard input: %w", err))
		}
	}
	if wrong > maxShown {
		errs = append(errs, fmt.Errorf("%d more ids are wrong", wrong-maxShown))
	}
	return errors.Join(append(errs, out.Flush())...)
}

// explainContents writes the parts of an id that is not a 64-bit one, for people.
func explainContents(out io.Writer, p palette, text string, t decode.Contents) {
	fmt.Fprintf(out, "%s\n\n%-11s %s\n", plain(text), "kind", t.Kind)
	for _, f := range t.Fields {
		value := fmt.Sprint(f.Value)
		if at, ok := f.Value.(time.Time); ok {
			value = at.Format(time.RFC3339Nano)
		}
		fmt.Fprintf(out, "%s %s\n", p.paint(fieldColours[f.Name], fmt.Sprintf("%-11s", f.Name)), value)
	}
}

// explain writes the parts of a 64-bit id, for people.
func explain(out io.Writer, p palette, text string, l firn.Layout, r decode.Result) {
	fmt.Fprintf(out, "%s\n\n%s\n", plain(text), draw(l, r, p))
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%s %s\n", p.paint(fieldColours[name], fmt.Sprintf("%-11s", name)), fmt.Sprintf(format, args...))
	}
	if r.Encoding != firn.Decimal.String() {
		line("id", "%d", r.ID)
	}
	if r.Note != "" {
		line("note", "%s", r.Note)
	} else {
		line("time", "%s", r.Time.Format(time.RFC3339Nano))
	}
	line("tick", "%d (ticks of %v since %s)", r.Tick, l.Unit(), l.Epoch().Format(time.RFC3339Nano))
	for _, f := range fields(l, r) {
		if f.value != "" {
			line(f.name, "%s (0 to %d)", f.value, f.greatest)
		}
	}
	if s, err := l.Readable(r.ID); err == nil {
		line("readable", "%s", s)
	}
	line("layout", "%s", describe(l))
	if r.Encoding == firn.Decimal.String() && len(r.Others) == 0 {
		return
	}
	line("read as", "%s", r.Encoding)
	for _, other := range r.Others {
		line("", "(as %s it would be %d: --format %s)", other.Encoding, other.ID, other.Encoding)
	}
}

// describe names a layout with its bits.
func describe(l firn.Layout) string {
	if name := l.Name(); name != "" {
		return name + ", " + l.Bits()
	}
	return l.String()
}
