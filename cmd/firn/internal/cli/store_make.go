package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
)

func newStoreMake() *cobra.Command {
	return &cobra.Command{
		Use:        "make file:FOLDER|sqlite:PATH",
		SuggestFor: []string{"create", "init", "new"},
		Short:      "Create a store in a folder or a SQLite file of this machine",
		Long: `make creates a store in a folder or a SQLite file, and the folders above it. Other commands open
it with --store and never create one, so a mistyped path is an error and not a new, empty store
whose ids repeat. If the store exists, make changes nothing. The default store is created by the
first command that generates ids. Stores in servers need not be created.`,
		Example: `  firn store make file:/srv/firn
  firn store make sqlite:/srv/firn/firn.db
  firn next --store file:/srv/firn`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && storeurl.Creatable(args[0]) {
				return nil
			}
			return usage(errors.New("name one store, as in firn store make file:/srv/firn or sqlite:/srv/firn/firn.db; other stores need not be created"))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := storeurl.Create(cmd.Context(), args[0])
			if errors.Is(err, storeurl.ErrURL) {
				err = usage(err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), args[0])
			return errors.Join(err, s.Close())
		},
	}
}
