package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/cmd/firn/internal/telemetry"
	"github.com/firn-id/firn/store"
)

const (
	defaultHTTP = "127.0.0.1:7070"
	defaultRESP = "127.0.0.1:7071"
	defaultGRPC = "127.0.0.1:7072"
)

// longestLinger bounds --linger.
const longestLinger = 10 * time.Minute

func newServe() *cobra.Command {
	var (
		flags      generatorFlags
		configFile string
		logFormat  string
		linger     time.Duration
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve ids over HTTP, gRPC and the Redis protocol",
		Long: `serve issues ids until it is interrupted. Then it keeps serving for a moment (--linger),
finishes open requests and releases its workers. A second interrupt, at least a second
later, ends it at once. Without a configuration file, namespaces are created on first
use and share one generator, which the flags configure.`,
		Example: `  firn serve
  firn serve --config firn.yaml --http 0.0.0.0:7070
  curl -X POST 'http://127.0.0.1:7070/v1/ids/orders?count=3'
  redis-cli -p 7071 INCR orders`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			talks := isTerminal(cmd.ErrOrStderr())
			log, lines, err := newLog(cmd, logFormat, flags.verbose)
			if err != nil {
				return usage(err)
			}
			if logFormat == "json" { // programs read all of its lines
				defer func() { err = logged(log, err) }()
			}
			if linger < 0 || linger > longestLinger {
				return usage(&firn.RangeError{What: origin(cmd.Flags(), "linger"), Value: linger.String(), Min: "0s", Max: longestLinger.String()})
			}
			if err := onlyOutsideConfig(cmd.Flags()); configFile != "" && err != nil { // before their values are checked
				return usage(err)
			}
			base, err := flags.config(cmd.ErrOrStderr())
			if err != nil {
				return usage(err)
			}
			var cfg settings.Config
			hangup := make(chan os.Signal, 1)
			if configFile != "" {
				// From here until the process ends, SIGHUP must not end it, not even while the file is read for the first time, pools are
				// joined or workers are released. The file is followed once clients are served; a signal before that has its effect
				// then. Without a configuration, SIGHUP ends the process, as usual.
				signal.Notify(hangup, syscall.SIGHUP)
				defer signal.Stop(hangup)
				if cfg, err = readConfig(cmd.Flags(), configFile); err != nil {
					return err
				}
				if _, err := server.CheckFiles(cfg); err != nil { // before a store is created
					return err
				}
			}
			onHTTP, httpErr := pickAddress(cmd.Flags(), "http", cfg.Listen.HTTP)
			onRESP, respErr := pickAddress(cmd.Flags(), "resp", cfg.Listen.RESP)
			onGRPC, grpcErr := pickAddress(cmd.Flags(), "grpc", cfg.Listen.GRPC)
			if err := cmp.Or(httpErr, respErr, grpcErr); err != nil {
				return usage(err)
			}
			defer runtime.KeepAlive(ballast())
			ctx := cmd.Context()
			s, err := flags.open(ctx, cfg.Store)
			switch {
			case err != nil && ctx.Err() != nil:
				log.Info("shut down during startup", "error", err)
				return nil
			case err != nil:
				return err
			}
			if err := refuseForgetful(flags.store, !base.Generator.From.IsZero()); err != nil {
				return errors.Join(err, s.Close())
			}
			// Ports before workers: a server that cannot listen need not take a worker.
			listeners, err := listen(ctx, log, onHTTP, onRESP, onGRPC)
			if err != nil {
				return errors.Join(err, s.Close())
			}
			traces, err := telemetry.Start(ctx, currentVersion().Version, log)
			if err != nil {
				return errors.Join(usage(err), listeners.Close(), s.Close())
			}
			defer stopTraces(ctx, traces, log)
			err = server.Start(ctx, server.Config{
				Settings: cfg, Base: base, Store: s, Forgetful: flags.store == "memory:", Log: log, LogLost: lines.Lost, Traces: traces, Version: currentVersion().Version, Linger: linger,
				Follow: func(srv *server.Server) func() {
					return follow(ctx, srv, server.Watch{Config: configFile, Hangup: hangup}, log)
				},
			}, listeners, func(srv *server.Server) {
				warn(ctx, s, srv.ExamineCounters, log)
				attrs := []any{"http", srv.Scheme("http") + "://" + listeners.HTTP.Addr().String()}
				if listeners.RESP != nil {
					attrs = append(attrs, "resp", srv.Scheme("redis")+"://"+listeners.RESP.Addr().String())
				}
				if listeners.GRPC != nil {
					attrs = append(attrs, "grpc", srv.Scheme("grpc")+"://"+listeners.GRPC.Addr().String())
				}
				log.Info("serving", append(attrs, "store", storeurl.Redact(flags.store), "version", currentVersion().Version)...)
				if configFile == "" && logFormat == "text" && talks {
					suggest(cmd.ErrOrStderr(), listeners)
				}
			})
			return errors.Join(misuse(hint(err)), s.Close())
		},
	}
	flags.add(cmd, 5*time.Minute)
	cmd.Flags().Lookup("verbose").Usage = "also log failed HTTP and gRPC requests, and why Redis connections ended"
	cmd.Flags().StringVar(&configFile, "config", "", "YAML file with namespaces (see docs/server.md)")
	cmd.Flags().String("http", defaultHTTP, "address of HTTP, gRPC-Web and Connect; it speaks gRPC too")
	cmd.Flags().String("resp", defaultRESP, "address of the Redis protocol; off disables it")
	cmd.Flags().String("grpc", defaultGRPC, "address of gRPC, which is faster there than on that of HTTP; off disables it")
	cmd.Flags().DurationVar(&linger, "linger", time.Second, "how long to keep serving after a shutdown request, while /readyz already fails, so that load balancers notice")
	cmd.Flags().StringVar(&logFormat, "log", "text", "format of the log on standard error: text or json")
	return cmd
}

// logged logs the error that ends a server.
func logged(log *slog.Logger, err error) error {
	if err == nil {
		return nil
	}
	log.Error("the server ends", "error", plainLines(err.Error()))
	return loggedError{err}
}

// suggest prints commands to try in another terminal. It is for a server without a configuration: any namespace works
// there, without a token or TLS.
func suggest(w io.Writer, on server.Listeners) {
	fmt.Fprintf(w, "\nTry, in another terminal (Ctrl-C here ends the server):\n  curl http://%s/v1/ids/orders\n", fromHere(on.HTTP.Addr().String(), "127.0.0.1"))
	if on.RESP != nil {
		host, port, err := net.SplitHostPort(fromHere(on.RESP.Addr().String(), "127.0.0.1"))
		if err == nil {
			fmt.Fprintf(w, "  redis-cli -h %s -p %s INCR orders\n", host, port)
		}
	}
	fmt.Fprintln(w)
}

// stopTraces sends the remaining spans, within a bounded time.
func stopTraces(ctx context.Context, traces *telemetry.Traces, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := traces.Stop(ctx); err != nil {
		log.Warn("the last traces were not sent", "error", err)
	}
}

// lookEvery is how often the server checks its files for changes. A change counts once it was seen twice.
const lookEvery = 2 * time.Second

// follow lets the server follow its configuration until the returned function is called.
func follow(ctx context.Context, srv *server.Server, w server.Watch, log *slog.Logger) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ticker := time.NewTicker(lookEvery)
	w.Ticks = ticker.C
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Follow(ctx, w)
	}()
	return func() {
		cancel()
		ticker.Stop()
		awaitFollower(done, followerEnds, log)
	}
}

// followerEnds is how long the end of the server waits for its follower, which may be reading a file of a disk that no
// longer answers. The workers must be given back nevertheless.
const followerEnds = time.Second

func awaitFollower(done <-chan struct{}, longest time.Duration, log *slog.Logger) {
	select {
	case <-done:
	case <-time.After(longest):
		log.Warn("a look at the configuration and the files it names has not ended: shutting down without it", "waited", longest)
	}
}

// countersWithin bounds how long the server reads its counters at the start, of which there may be thousands.
const countersWithin = 10 * time.Second

// warn logs those findings of firn doctor about the store and the counters in it that are not good.
func warn(ctx context.Context, s store.Store, counters func(context.Context) []store.Finding, log *slog.Logger) {
	found := issuing.ExamineStore(ctx, s)
	limited, cancel := context.WithTimeout(ctx, countersWithin)
	defer cancel()
	if f := counters(limited); limited.Err() == nil {
		found = append(found, f...)
	}
	for _, f := range found {
		if f.Verdict != store.Good {
			log.Warn(f.String(), "verdict", f.Verdict)
		}
	}
}

// readableDuration writes durations as 12s, as the text format does, not in nanoseconds.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// newLog returns the log on standard error. From then on nothing waits for whoever reads that: all lines go through a
// queue, which Main closes.
func newLog(cmd *cobra.Command, format string, verbose bool) (*slog.Logger, *telemetry.Queue, error) {
	options := &slog.HandlerOptions{}
	if verbose {
		options.Level = slog.LevelDebug
	}
	var handler func(io.Writer) slog.Handler
	switch format {
	case "text":
		handler = func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, options) }
	case "json":
		options.ReplaceAttr = readableDuration
		handler = func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, options) }
	default:
		return nil, nil, fmt.Errorf("--log %q: text and json are allowed", format)
	}
	lines := telemetry.NewQueue(cmd.ErrOrStderr(), telemetry.LostLine(handler, "lines of this log were lost: they were not read in time"), nil)
	cmd.Root().SetErr(lines)
	return slog.New(handler(lines)), lines, nil
}

// An address is an address to listen on, and which setting it comes from.
type address struct {
	text, from string
	optional   bool // the server also starts without it
}

// pickAddress returns the address to listen on: that of the command line, else of the
// configuration file, which has been checked, else of the environment, else the default.
func pickAddress(flags *pflag.FlagSet, name, file string) (address, error) {
	if file != "" && !given(flags, name) {
		return address{text: file, from: "listen." + name + " in the configuration"}, nil
	}
	from, flag := origin(flags, name), flags.Lookup(name).Value.String()
	optional := name != "http"
	if optional && flag == settings.Off {
		return address{text: flag, from: from}, nil
	}
	if err := settings.CheckAddress(flag); err != nil {
		off := ""
		if optional {
			off = "; off disables it"
		}
		return address{}, fmt.Errorf("%s: %w%s", from, err, off)
	}
	// Of several servers on one machine that name their other addresses, one has the default of gRPC. The others serve gRPC
	// on the address of HTTP, as all did before there was another.
	return address{flag, from, name == "grpc" && !flags.Changed(name)}, nil
}

// separatePorts is the advice for two addresses that are one.
const separatePorts = "give one of them another port"

// anotherOf returns which of a server's addresses prevents that it also listens on the one at; empty if none does.
func anotherOf(addresses []string, at string) string {
	wanted, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		return ""
	}
	all := func(a *net.TCPAddr) bool { return len(a.IP) == 0 || a.IP.IsUnspecified() }
	for _, text := range addresses {
		a, err := net.ResolveTCPAddr("tcp", text)
		if err == nil && a.Port == wanted.Port && (all(a) || all(wanted) || a.IP.Equal(wanted.IP)) {
			return text
		}
	}
	return ""
}

// listen opens the listeners.
func listen(ctx context.Context, log *slog.Logger, onHTTP, onRESP, onGRPC address) (on server.Listeners, err error) {
	var own []string
	take := func(a address) net.Listener {
		if err != nil || a.text == settings.Off {
			return nil
		}
		l, failed := (&net.ListenConfig{}).Listen(ctx, "tcp", a.text)
		other := anotherOf(own, a.text)
		own = append(own, a.text)
		switch {
		case errors.Is(failed, syscall.EADDRINUSE) && !a.optional && other != "":
			err = fmt.Errorf("listen on %s (%s): the server listens on %s already: %s", a.text, a.from, other, separatePorts)
		case errors.Is(failed, syscall.EADDRINUSE) && a.optional:
			log.Warn("the default address of gRPC is in use: gRPC is only served on the address of HTTP, where it is slower",
				"address", a.text, "advice", "give another address with "+a.from+", or off")
		case errors.Is(failed, syscall.EADDRINUSE):
			err = fmt.Errorf("listen on %s (%s): %w: end the program that listens there, or give another address", a.text, a.from, failed)
		case failed != nil:
			err = fmt.Errorf("listen on %s (%s): %w: give an address of this machine, a port that you may use, or :PORT for all interfaces", a.text, a.from, failed)
		}
		return l
	}
	on.HTTP = take(onHTTP)
	on.RESP = take(onRESP)
	on.GRPC = take(onGRPC)
	if err != nil {
		return on, errors.Join(err, on.Close())
	}
	return on, nil
}

// readConfig reads a configuration file, if there is one; its path may come from the environment too.
func readConfig(flags *pflag.FlagSet, path string) (settings.Config, error) {
	if path == "" {
		return settings.Config{}, nil
	}
	cfg, err := settings.Read(path)
	if err != nil && byEnvironment(flags.Lookup("config")) {
		err = fmt.Errorf("%s: %w", origin(flags, "config"), err)
	}
	return cfg, err
}

// ofNamespaces returns the flags that are settings of a namespace in a configuration file.
func ofNamespaces() (names []string) {
	for _, s := range settings.Group(settings.Pooled{}) {
		names = append(names, s.Flag)
	}
	return append(names, "worker-ahead")
}

// onlyOutsideConfig refuses the flags of ofNamespaces.
func onlyOutsideConfig(flags *pflag.FlagSet) error {
	var names []string
	for _, flag := range ofNamespaces() {
		if flags.Changed(flag) {
			names = append(names, origin(flags, flag))
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("%s: with a configuration (%s) these are settings of its namespaces; leave them out",
			strings.Join(names, ", "), origin(flags, "config"))
	}
	return nil
}
