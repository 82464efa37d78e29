package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// completeTimeout bounds what a completion of names in a store takes: someone waits with a finger on the key.
const completeTimeout = 2 * time.Second

// completeValues lets a shell complete the values of all flags of a command and its subcommands.
func completeValues(cmd *cobra.Command) {
	register := func(f *pflag.Flag) {
		_, has := cmd.GetFlagCompletionFunc(f.Name) // commands share some flags
		if complete := completionOf(cmd, f); complete != nil && !has {
			if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
				panic(err) // the flag exists and is registered once
			}
		}
	}
	cmd.Flags().VisitAll(register)
	cmd.PersistentFlags().VisitAll(register)
	for _, sub := range cmd.Commands() {
		completeValues(sub)
	}
}

// completionOf returns what completes the values of a flag; nil for names of files.
func completionOf(cmd *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	none := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
	switch f.Name {
	case "config", "key-file", "keys", "token-file", "temp":
		return nil
	case "kind":
		return words(kindNames()...)
	case "layout":
		return words(decode.Presets()...)
	case "format":
		also := []string{"readable"}
		switch cmd.Name() {
		case "verify":
			also = []string{"binary"}
		case "decode":
			also = append(also, decode.Foreign()...)
		}
		return words(append(decode.Encodings(), also...)...)
	case "color":
		return words(colourModes...)
	case "log":
		return words("text", "json")
	case "formula":
		return words(languageNames()...)
	case "rollback":
		return words("refuse", "wait", "history", "ahead", "switch")
	case "store":
		return cobra.FixedCompletions(storeurl.Beginnings(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	case "pool":
		return completePools
	}
	if f.Value.Type() == "bool" {
		return nil
	}
	if found := flagged(f.Name); len(found) > 0 {
		if all := found[0].Words(); all != nil {
			return words(all...)
		}
	}
	return none
}

func words(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// completePools completes the names of pools in the store of the command line.
func completePools(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeFrom(cmd, func(ctx context.Context, s store.Store, _ string) ([]string, error) { return lease.Pools(ctx, s) })
}

// completeWorkers completes the workers of the pool of the command line that have been held.
func completeWorkers(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeFrom(cmd, func(ctx context.Context, s store.Store, pool string) (all []string, err error) {
		p, err := issuing.ReadPool(ctx, s, pool)
		for _, slot := range p.Slots {
			name := fmt.Sprint(slot.Worker)
			if slot.Datacenter != 0 {
				name = fmt.Sprintf("%d/%d", slot.Datacenter, slot.Worker)
			}
			all = append(all, name+"\t"+slot.State)
		}
		return all, err
	})
}

// completeFrom completes what ask finds in the store. An error is shown as a hint, where the shell can.
func completeFrom(cmd *cobra.Command, ask func(ctx context.Context, s store.Store, pool string) ([]string, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, err := askStore(cmd, ask)
	if err != nil {
		names = cobra.AppendActiveHelp(nil, err.Error())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func askStore(cmd *cobra.Command, ask func(ctx context.Context, s store.Store, pool string) ([]string, error)) ([]string, error) {
	err := fromEnvironment(cmd.Flags())
	url := cmd.Flag("store").Value.String() // a command that completes pools has both flags
	if err == nil && url == "" {
		url, err = defaultStore()
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	s, err := storeurl.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	names, err := ask(ctx, s, cmd.Flag("pool").Value.String())
	return names, errors.Join(err, s.Close())
}
