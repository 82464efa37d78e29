package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/segment"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

// A raised is what firn raise --json prints.
type raised struct {
	Namespace string `json:"namespace"`
	Last      string `json:"last"` // the last id used from now on
}

func newRaise() *cobra.Command {
	var (
		flags      storeFlags
		configFile string
	)
	cmd := &cobra.Command{
		Use:   "raise NAMESPACE LAST",
		Short: "Make a counter go on above an id",
		Long: `raise makes a counter of a configuration (kind segment, sequence or number) go on
above LAST, and makes the counter if the store has none. It never lowers one, and uses
up no id. LAST is the greatest id that anybody has received, plus a margin: a number,
without veil and prefix, or for business numbers the text of one. With 0 a new counter
begins at its first id. A counter that was raised too far cannot be lowered.

End the processes that make ids of the namespace first: they go on with the ids that
they hold in memory, which may lie above LAST.`,
		Example: `  firn raise items 70000 --config firn.yaml
  firn raise bills INV2026-00042 --config firn.yaml --store redis://10.0.0.5:6379/0`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(errors.New("name a namespace and the last id in use, as in firn raise items 70000 --config firn.yaml"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if configFile == "" {
				return usage(errors.New("--config is required: it says of which kind the namespace is; without a configuration firn next --first raises a counter"))
			}
			cfg, err := readConfig(cmd.Flags(), configFile)
			if err != nil {
				return err
			}
			name := args[0]
			set, ok := cfg.Namespaces[name]
			switch {
			case !ok:
				return usage(fmt.Errorf("%s has no namespace %q", configFile, name))
			case !set.Of().Counted():
				return usage(fmt.Errorf("namespace %s is of kind %s, which has no counter: nothing needs to be raised", name, set.Of().Name))
			}
			last, err := lastOf(set, args[1])
			if err != nil {
				return usage(err)
			}
			ctx, end := context.WithTimeout(cmd.Context(), storeTimeout)
			defer end()
			s, err := flags.open(ctx, cfg.Store)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			if flags.store == "memory:" {
				return usage(errors.New("memory: keeps nothing: name the store of the servers with --store, or in the configuration"))
			}
			result := raised{Namespace: name}
			if result.Last, err = raise(ctx, s, name, set, last); err != nil {
				return err
			}
			return answer(cmd, result, func(out io.Writer) error {
				_, err := fmt.Fprintf(out, "%s goes on above %s\n", name, result.Last)
				return err
			})
		},
	}
	flags.addStore(cmd, "store of the counter, instead of the configuration's")
	cmd.Flags().StringVar(&configFile, "config", "", "configuration with the namespace")
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// lastOf reads the last id in use of a namespace with a counter.
func lastOf(set settings.Namespace, text string) (firn.ID, error) {
	if set.Of().Source == settings.Template && text != "0" {
		_, format, err := set.NumberFormat()
		if err != nil {
			return 0, err
		}
		return lastNumber(format, text)
	}
	last, err := firn.ParseID(text)
	if err != nil {
		return 0, fmt.Errorf("the last id in use: %w", err)
	}
	if most := set.SegmentConfig().Max; most != 0 && last > most {
		return 0, firn.NewRangeError("last id in use", int64(last), 0, int64(most), "below the end of the veil")
	}
	return last, nil
}

// lastNumber reads the last business number in use: its text, or its id, as errors and logs have it.
func lastNumber(format *numbering.Format, text string) (firn.ID, error) {
	number, err := format.Parse(text)
	if err != nil {
		if id, wrong := firn.ParseID(text); wrong == nil {
			if shown, wrong := format.Text(id); wrong == nil {
				number, err = format.Parse(shown)
			}
		}
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("the last id in use: %w", err)
	case number.Begins.After(firn.SystemTime().Wall().Add(24 * time.Hour)): // a clock that is ahead by less may have made it
		return 0, fmt.Errorf("the last id in use: the period of %s begins only at %s: the counter would stay in that period until it ends (if a clock that was ahead made that number, raise the counter in a program: Raise of package sequence)",
			text, number.Begins.Format(time.RFC3339))
	}
	return number.ID, nil
}

// raise raises a counter as the server would, which knows its form, and returns the last id used from now on, as lastOf
// reads it.
func raise(ctx context.Context, s store.Store, name string, set settings.Namespace, last firn.ID) (string, error) {
	var form store.Form
	if set.Veil != nil {
		cipher, err := set.Veil.Cipher(name)
		if err != nil {
			return "", err
		}
		form = cipher.Form()
	}
	switch set.Of().Source {
	case settings.Ranges:
		return raiseSegment(ctx, s, name, set, form, last)
	case settings.Template:
		set.From = 0 // which is of each period
	}
	cfg := set.SequenceConfig()
	cfg.Store, cfg.Form, cfg.MustExist = s, form, false
	text := ""
	err := withSequence(ctx, cfg, name, set, func(one *sequence.Namespace, format *numbering.Format) error {
		if err := one.Raise(ctx, last); err != nil {
			return err
		}
		last = one.State().Last
		if text = last.String(); format == nil || last == 0 {
			return nil
		}
		var err error
		text, err = format.Text(last)
		return err
	})
	return text, err
}

func raiseSegment(ctx context.Context, s store.Store, name string, set settings.Namespace, form store.Form, last firn.ID) (string, error) {
	cfg := set.SegmentConfig()
	cfg.Store, cfg.Form, cfg.MustExist = s, form, false
	cfg.MinStep, cfg.MaxStep, cfg.Ahead, cfg.Chain = 1, 1, 1e-9, 1 // it takes an id to see that it can, and gives it back
	all, err := segment.New(cfg)
	if err != nil {
		return "", err
	}
	if _, err = thenClose(ctx, all.Close, func() error {
		one, err := all.Namespace(name)
		if err != nil {
			return err
		}
		return one.Raise(ctx, last)
	}); err != nil {
		return "", err
	}
	counter, err := segment.ReadCounter(ctx, s, name)
	return firn.ID(min(counter.Next, uint64(firn.MaxID)+1) - 1).String(), err
}
