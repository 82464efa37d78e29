package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
)

// storeFlags name a pool in a store.
type storeFlags struct {
	store, pool string
	flags       *pflag.FlagSet
}

func (f *storeFlags) add(cmd *cobra.Command) {
	f.addStore(cmd, "store that workers are leased from, as sqlite:PATH or redis://HOST (see docs/stores.md)")
	f.flags.StringVar(&f.pool, "pool", "default", "pool whose ids must never collide; all who join have one layout")
}

// addStore is add for commands that know no pool.
func (f *storeFlags) addStore(cmd *cobra.Command, usage string) {
	f.flags = cmd.Flags()
	f.flags.StringVar(&f.store, "store", "", usage)
	if url, err := defaultStore(); err == nil {
		f.flags.Lookup("store").DefValue = url // for the help; whether there is one matters when it is needed
	}
}

// checkPool refuses a pool name that is none; the empty one is, too: an unset
// variable must not join the pool of others.
func (f *storeFlags) checkPool() error {
	if err := store.CheckName("pool", f.pool); err != nil {
		return fmt.Errorf("%s: %w", origin(f.flags, "pool"), err)
	}
	return nil
}

// onPool does something with the store of a pool, within a bounded time.
func (f *storeFlags) onPool(ctx context.Context, do func(context.Context, store.Store) error) (err error) {
	if err := f.checkPool(); err != nil {
		return usage(err)
	}
	ctx, end := patient(ctx)
	defer end()
	s, err := f.open(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(ctx, s)
}

// open opens the store that the command line names, else a configuration file, else
// the environment, else the default one. It leaves its URL in f.store.
func (f *storeFlags) open(ctx context.Context, file string) (store.Store, error) {
	if err := f.resolve(file); err != nil {
		return nil, err
	}
	s, err := storeurl.Open(ctx, f.store)
	switch {
	case err == nil:
		return s, nil
	case file != "" && !given(f.flags, "store"):
		return nil, fmt.Errorf("configuration: %w", err)
	case byEnvironment(f.flags.Lookup("store")):
		err = fmt.Errorf("%s: %w", origin(f.flags, "store"), err)
	}
	if errors.Is(err, storeurl.ErrURL) {
		err = usage(err)
	}
	return nil, err
}

func (f *storeFlags) resolve(file string) (err error) {
	switch {
	case given(f.flags, "store"):
	case file != "":
		f.store = file
	case !f.flags.Changed("store"):
		f.store, err = defaultStore()
	}
	return usage(err)
}

// defaultStore is a SQLite file in the user's state folder, as the XDG base
// directory specification has it: a relative XDG_STATE_HOME is ignored.
func defaultStore() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err == nil && !filepath.IsAbs(home) {
			err = fmt.Errorf("%q is no absolute path", home)
		}
		if err != nil {
			// A folder that all users share would have them share workers, or be in each other's way.
			return "", fmt.Errorf("no home directory for the default store: %w; give --store, as in --store sqlite:/var/lib/firn/firn.db", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return "sqlite:" + filepath.Join(state, "firn", "firn.db"), nil
}
