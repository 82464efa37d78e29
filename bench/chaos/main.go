// Command chaos injects real faults into processes of the real firn over every real store, and
// counts the ids that were issued twice or out of order. Run it in the root of the repository;
// docs/chaos.md describes it.
//
//	go run ./bench/chaos -for 1m -stores redis,postgres -seed 7
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firn-id/firn/bench/internal/host"
	"github.com/firn-id/firn/bench/internal/network"
	"github.com/firn-id/firn/bench/internal/program"
)

// settings are those of a run.
type settings struct {
	stores string
	length time.Duration // for each store
	seed   uint64
	short  bool
	beyond bool
	firn   string // an existing binary
	keep   string
}

const shortLength = 12 * time.Second

func main() {
	var s settings
	flag.StringVar(&s.stores, "stores", "", "the stores, such as \"redis,etcd\" (default: "+strings.Join(names(), ",")+")")
	flag.DurationVar(&s.length, "for", 4*time.Minute, "how long each store is tested")
	flag.Uint64Var(&s.seed, "seed", rand.Uint64N(1_000_000), "the seed of the plan of faults")
	flag.BoolVar(&s.short, "short", false, "the short form: "+shortLength.String()+" for each store")
	flag.BoolVar(&s.beyond, "beyond", false, "include faults that Firn documents it does not survive (stores that are set back)")
	flag.StringVar(&s.firn, "firn", "", "the binary (default: it is built)")
	flag.StringVar(&s.keep, "keep", "", "a folder for all received ids and logs; without it they are kept only if a check fails")
	flag.Parse()
	if s.short {
		s.length = shortLength
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, s); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func names() (all []string) {
	for _, m := range makers {
		all = append(all, m.name)
	}
	return all
}

// choice returns the stores of a run.
func choice(s settings) (chosen []maker, err error) {
	if s.stores == "" {
		for _, m := range makers {
			if !s.short || !m.long {
				chosen = append(chosen, m)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(s.stores, ",") {
		k := slices.Index(names(), name)
		if k < 0 {
			return nil, fmt.Errorf("there is no store %q: %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, makers[k])
	}
	return chosen, nil
}

// errFound means that ids were issued twice or out of order.
var errFound = errors.New("ids were issued twice or out of order")

// errStuck means that a server did not start.
var errStuck = errors.New("a server did not start")

func run(ctx context.Context, out io.Writer, s settings) (err error) {
	chosen, err := choice(s)
	if err != nil {
		return err
	}
	dir, done, err := folder(s.keep)
	if err != nil {
		return err
	}
	defer func() { err = done(err) }()
	if s.firn == "" {
		if s.firn, err = program.BuildFirn(dir); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "seed %d, %v for each store\n\n", s.seed, s.length)
	var all total
	var printing, turn sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(1)
	if s.short { // the next store starts while one is tested: new processes wait for holders most of that time
		group.SetLimit(2)
	}
	for _, m := range chosen {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			r, err := m.play(ctx, s, &turn, filepath.Join(dir, m.name))
			printing.Lock()
			defer printing.Unlock()
			r.print(out, m.name) // what was received counts, however it ended
			all.add(r)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	all.print(out)
	if all.twice+all.disorder > 0 {
		return errFound
	}
	if all.stuck > 0 {
		return errStuck
	}
	return nil
}

// folder makes the folder of a run. It is removed at the end if no check failed and -keep is not set.
func folder(keep string) (dir string, done func(error) error, err error) {
	if keep != "" {
		return keep, func(err error) error { return err }, os.MkdirAll(keep, 0o755)
	}
	dir, err = os.MkdirTemp("", "firn-chaos-")
	if err != nil {
		return "", nil, err
	}
	return dir, func(err error) error {
		if err == nil {
			return os.RemoveAll(dir)
		}
		return fmt.Errorf("%w; all received ids and logs are in %s", err, dir)
	}, nil
}

// play starts a store, injects faults in its turn, and checks the received ids.
func (m maker) play(ctx context.Context, s settings, turn *sync.Mutex, dir string) (r result, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r, err
	}
	log, err := os.Create(filepath.Join(dir, "plan.log"))
	if err != nil {
		return r, err
	}
	w := &world{
		firn: s.firn, dir: dir, turn: turn, net: network.New(), silence: newSilence(), files: map[string][]string{},
		began: time.Now(), log: logger{began: time.Now(), out: log},
	}
	h := &host.Host{}
	defer func() { err = errors.Join(err, h.End(), w.net.Close(), log.Close()) }()
	var failed error
	if err := host.Attempt(func() { w.store, failed = m.make(h, w.net, dir) }); err != nil || failed != nil {
		return r, errors.Join(err, failed)
	}
	if scheme, _, _ := strings.Cut(w.store.url, ":"); scheme == "file" || scheme == "sqlite" {
		if err := command(s.firn, "store", "make", w.store.url); err != nil {
			return r, err
		}
	}
	if s.beyond {
		w.store.faults = append(w.store.faults, w.store.beyond...)
	}
	w.number()
	failed = w.play(ctx, s.length, plan{s.seed, m.name, w.store.faults})
	r, err = w.check()
	return r, errors.Join(failed, err)
}
