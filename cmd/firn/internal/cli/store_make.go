package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
)

func newStoreMake() *cobra.Command {
	return &cobra.Command{
		Use:   "make file:FOLDER",
		Short: "Make a store in a folder of this machine",
		Long: `make makes a store in a folder, and the folder. Other commands take it with --store and never make
one themselves, so that a path with a mistake is an error and not another, empty store, whose ids
repeat. The default store is made by the first command that makes ids.`,
		Example: `  firn store make file:/srv/firn
  firn next --store file:/srv/firn`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !strings.HasPrefix(args[0], "file:") {
				return usage(errors.New("name one folder, as in firn store make file:/srv/firn; other stores need no making"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := storeurl.Make(cmd.Context(), args[0])
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
