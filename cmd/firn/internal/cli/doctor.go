package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/store"
)

// A doctorReport is what firn doctor --json prints.
type doctorReport struct {
	Store    string            `json:"store"`
	Findings []issuing.Finding `json:"findings"`
}

func newDoctor() *cobra.Command {
	var (
		flags      storeFlags
		configFile string
		schema     bool
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the clock, the store and the configuration",
		Long: `doctor opens the store and reports the time of a read, the difference between its
clock and this machine's, whether its settings keep acknowledged writes, whether a write
succeeds, and how full the pools are. With --config it also reads the keys and
certificates that it names, does what a server does up to its first write: it joins the
pools, reads each counter (it says where it goes on, and takes no id of it) and listens on
the addresses, and reports whatever a server warns of at its start. Each problem comes with advice.
It writes the key firn/doctor, which nothing reads, and creates a missing table in a
database. It changes nothing else.

It exits with status 1 when something is bad.

With --schema it only prints the JSON schema of the configuration file, by which editors
complete and check it.`,
		Example: `  firn doctor --store redis://127.0.0.1:6379/0
  firn doctor --config firn.yaml
  firn doctor --schema > firn.schema.json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if schema {
				_, err := cmd.OutOrStdout().Write(settings.Schema())
				return err
			}
			if err := flags.checkPool(); err != nil {
				return usage(err)
			}
			var cfg settings.Config
			var files []store.Finding
			if configFile != "" {
				if cfg, err = readConfig(cmd.Flags(), configFile); err != nil {
					return err
				}
				if files, err = server.CheckFiles(cfg); err != nil {
					return err
				}
			}
			ctx, end := context.WithTimeout(cmd.Context(), storeTimeout)
			defer end()
			s, err := flags.open(ctx, cfg.Store)
			if err != nil {
				found := storeurl.Diagnose(ctx, flags.store)
				if len(found) == 0 || errors.Is(err, errUsage) {
					return err
				}
				return showFindings(cmd, flags.store, append([]store.Finding{issuing.Fails("store", err)}, found...))
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			findings := append(issuing.ExamineStore(ctx, s), issuing.ExamineWrites(ctx, s))
			pools := cfg.Layouts()
			if len(pools) == 0 || cmd.Flags().Changed("pool") {
				pools = map[string]map[string]firn.Layout{flags.pool: pools[flags.pool]}
			}
			for _, name := range slices.Sorted(maps.Keys(pools)) {
				found := issuing.ExaminePool(ctx, s, name)
				switch declared := pools[name] != nil; {
				case len(found) > 0:
				case declared && !s.Traits().Embedded:
					found = []store.Finding{{Subject: "pool", Says: name + " is new: its first process waits 12s, in a strict pool minutes, before it has a worker"}}
				case !declared && cmd.Flags().Changed("pool"):
					found = []store.Finding{unknownPool(name)}
				}
				findings = append(findings, found...)
			}
			if configFile != "" {
				joined := cfg
				if cmd.Flags().Changed("pool") { // only this one
					joined.Namespaces = maps.Clone(cfg.Namespaces)
					maps.DeleteFunc(joined.Namespaces, func(_ string, n settings.Namespace) bool { return n.Generated() && n.PoolName() != flags.pool })
				}
				findings = slices.Concat(findings, issuing.Examine(ctx, s, joined), timesAhead(joined, time.Now()), files,
					examineVariables(), examineListeners(ctx, cfg.Listen), server.Examine(cfg, cfg.Listen.HTTP, cfg.Listen.RESP, cfg.Listen.GRPC))
			}
			return showFindings(cmd, flags.store, findings)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&configFile, "config", "", "check this configuration too, and examine its store")
	cmd.Flags().Bool("json", false, "print JSON")
	cmd.Flags().BoolVar(&schema, "schema", false, "only print the JSON schema of the configuration file")
	return cmd
}

// showFindings prints findings. Its error says how many are bad.
func showFindings(cmd *cobra.Command, storeURL string, findings []store.Finding) error {
	r := doctorReport{storeurl.Redact(storeURL), issuing.ShowFindings(findings)}
	bad := 0
	for _, f := range findings {
		if f.Verdict == store.Bad {
			bad++
		}
	}
	err := answer(cmd, r, func(out io.Writer) error { return showReport(out, paletteOf(cmd), r) })
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d findings are bad", bad, len(findings))
	}
	return err
}

// verdictColours are the colours of verdicts.
var verdictColours = map[string]colour{store.Good.String(): green, store.Doubtful.String(): yellow, store.Bad.String(): red}

func showReport(out io.Writer, p palette, r doctorReport) error {
	fmt.Fprintf(out, "store %s\n\n", r.Store)
	for _, f := range r.Findings {
		fmt.Fprintf(out, "%s  %-11s %s\n", p.paint(verdictColours[f.Verdict], fmt.Sprintf("%-8s", f.Verdict)), f.Subject, plain(f.Says))
		if f.Advice != "" {
			fmt.Fprintf(out, "%-8s  %-11s → %s\n", "", "", plain(f.Advice))
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}

// examineVariables finds those in the environment with which a server refuses a configuration.
func examineVariables() (found []store.Finding) {
	for _, flag := range ofNamespaces() {
		if name := variable(flag); os.Getenv(name) != "" {
			found = append(found, store.Finding{
				Subject: "environment", Verdict: store.Bad, Says: name + " is set here: with a configuration no server starts that has it too",
				Advice: "write the setting into the namespaces, and unset the variable",
			})
		}
	}
	return found
}

// examineListeners listens on the addresses of a configuration for a moment.
func examineListeners(ctx context.Context, on settings.Listen) (found []store.Finding) {
	var own []string
	for _, at := range []string{cmp.Or(on.HTTP, defaultHTTP), cmp.Or(on.RESP, defaultRESP), cmp.Or(on.GRPC, defaultGRPC)} {
		if at == settings.Off {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
		other := anotherOf(own, at)
		own = append(own, at)
		switch {
		case errors.Is(err, syscall.EADDRINUSE) && other != "":
			f := store.Finding{
				Subject: "listen", Verdict: store.Bad, Says: fmt.Sprintf("the server cannot listen on %s: it listens on %s already", at, other),
				Advice: separatePorts,
			}
			if at == defaultGRPC && on.GRPC == "" {
				f.Verdict, f.Advice = store.Doubtful, f.Advice+": gRPC is only served on the address of HTTP, where it is slower"
			}
			found = append(found, f)
		case errors.Is(err, syscall.EADDRINUSE):
			found = append(found, store.Finding{
				Subject: "listen", Verdict: store.Doubtful, Says: "a program listens on " + at + " already",
				Advice: "this is right if it is the server itself; otherwise end that program, or give another address",
			})
		case err != nil:
			found = append(found, store.Finding{
				Subject: "listen", Verdict: store.Bad, Says: "no server can listen there: " + err.Error(),
				Advice: "give an address of this machine, a port that you may use, or :PORT for all interfaces",
			})
		default:
			defer func() { _ = l.Close() }() // it was only tried
		}
	}
	return found
}

// timesAhead reports the pools whose ids begin ahead of the clock. A server warns of it when it has joined the pool.
func timesAhead(cfg settings.Config, now time.Time) (found []store.Finding) {
	from := map[string]time.Time{}
	for _, n := range cfg.Namespaces {
		if !n.Generated() {
			continue
		}
		if c, err := n.Lease(); err == nil && c.Generator.From.Sub(now) > time.Second {
			from[c.Pool] = c.Generator.From
		}
	}
	for _, pool := range slices.Sorted(maps.Keys(from)) {
		found = append(found, store.Finding{
			Subject: "pool", Verdict: store.Doubtful, Says: fmt.Sprintf("%s: ids carry times ahead of the clock until it has caught up, from %s", pool, from[pool].UTC().Format(time.RFC3339)),
			Advice: "this is right if they continue ids that have such times; otherwise correct clock_from",
		})
	}
	return found
}

// unknownPool is the finding of a pool that --pool names, and neither the store nor the configuration has.
func unknownPool(name string) store.Finding {
	return store.Finding{
		Subject: "pool", Verdict: store.Bad, Says: name + " does not exist: no process has joined it yet",
		Advice: "check the name and the store; firn next and firn serve create a pool when they join it",
	}
}
