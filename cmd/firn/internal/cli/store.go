package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/filestore"
)

// storeFlags are the flags that name a store and a pool.
type storeFlags struct {
	store, pool string
	byDefault   bool // no store was named
	makes       bool // the command creates the default store if it does not exist
	leases      bool // the command leases a worker, and uses no counter
	flags       *pflag.FlagSet
	stderr      func() io.Writer
}

func (f *storeFlags) add(cmd *cobra.Command) {
	f.addStore(cmd, "store to lease workers from, such as file:FOLDER or redis://HOST (see docs/stores.md)")
	for _, pool := range flagged("pool") {
		f.flags.StringVar(&f.pool, pool.Flag, pool.Default, pool.Help)
	}
}

// addStore is add for commands without a pool.
func (f *storeFlags) addStore(cmd *cobra.Command, usage string) {
	f.flags, f.stderr = cmd.Flags(), cmd.ErrOrStderr
	f.flags.StringVar(&f.store, "store", "", usage)
	if url, err := defaultStore(); err == nil {
		f.flags.Lookup("store").DefValue = url // only for the help; open reports the error
	}
}

// checkPool refuses an invalid pool name. An empty name is invalid: with an unset variable, a process must not join
// another pool.
func (f *storeFlags) checkPool() error {
	if err := store.CheckName("pool", f.pool); err != nil {
		return fmt.Errorf("%s: %w", origin(f.flags, "pool"), err)
	}
	return nil
}

// onPool opens the store and calls do, within a bounded time.
func (f *storeFlags) onPool(ctx context.Context, do func(context.Context, store.Store) error) error {
	if err := f.checkPool(); err != nil {
		return usage(err)
	}
	ctx, end := context.WithTimeout(ctx, storeTimeout)
	defer end()
	return f.with(ctx, func(s store.Store) error { return do(ctx, s) })
}

// with opens the store, calls do, and closes the store.
func (f *storeFlags) with(ctx context.Context, do func(store.Store) error) (err error) {
	s, err := f.open(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}

// open opens the store of the command line, else of the configuration file, else of the environment, else the default
// one. It sets f.store to its URL.
func (f *storeFlags) open(ctx context.Context, file string) (store.Store, error) {
	if err := f.resolve(file); err != nil {
		return nil, err
	}
	s, err := storeurl.Open(ctx, f.store)
	if f.byDefault && f.makes && errors.Is(err, store.ErrNotFound) {
		if s, err = storeurl.Create(ctx, f.store); err != nil {
			return nil, cannotCreate(f.store, err)
		}
		begins := ""
		if !f.leases { // the folder may be there and not be mounted yet: then ids of counters repeat
			begins = ": it is empty, so its counters begin at their first number"
		}
		fmt.Fprintf(f.stderr(), "firn: created the store %s%s\n", f.store, begins)
	}
	switch {
	case err == nil:
		if f.byDefault && f.makes && filestore.InContainer() {
			fmt.Fprintf(f.stderr(), "firn: other containers have other default stores, and can issue the same ids: name one store for all with --store or FIRN_STORE (naming this one, %s, ends this warning)\n", f.store)
		}
		return s, nil
	case f.byDefault && errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("%w: there is no store in %s yet: firn next or firn serve creates it, or name another with --store", store.ErrNotFound, f.store)
	case file != "" && !given(f.flags, "store") && errors.Is(err, storeurl.ErrURL):
		return nil, fmt.Errorf("configuration: %w", err)
	case file != "" && !given(f.flags, "store"):
		return nil, fmt.Errorf("the store of the configuration cannot be opened: %w", err)
	case byEnvironment(f.flags.Lookup("store")):
		err = fmt.Errorf("%s: %w", origin(f.flags, "store"), err)
	}
	if errors.Is(err, storeurl.ErrURL) {
		err = usage(err)
	}
	return nil, err
}

// cannotCreate is the error about the default store that cannot be created.
func cannotCreate(url string, err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok { // the rest is about folders that were there
		err = at.Err
	}
	return fmt.Errorf("cannot create the default store %s: %w; name another store with --store", url, err)
}

func (f *storeFlags) resolve(file string) (err error) {
	switch {
	case given(f.flags, "store"):
	case file != "":
		f.store = file
	case !f.flags.Changed("store"):
		f.byDefault = true
		f.store, err = defaultStore()
	}
	return usage(err)
}

// defaultStore returns the store of this user, which Go programs use too (lease.OnThisMachine).
func defaultStore() (string, error) {
	dir, err := filestore.Home()
	if err != nil {
		return "", fmt.Errorf("the default store: %w; give --store, as in --store redis://10.0.0.5:6379/0", err)
	}
	return "file:" + dir, nil
}
