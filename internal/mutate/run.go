package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A run tries the chosen mutants.
type run struct {
	options
	known  map[string]string // reasons of survivors
	chosen []mutant
	bench  bench
	ledger *ledger
	begun  time.Time

	mu     sync.Mutex
	report report
	done   int
}

// A task is a mutant to try: the nth of a group, from 1.
type task struct {
	group group
	nth   int
}

// choose selects the mutants of files to try. It records listed survivors that do not exist.
func (r *run) choose(files []*source) {
	there, mine := map[string]bool{}, map[string]bool{}
	for _, s := range files {
		mine[s.name] = true
		for _, m := range s.mutants() {
			there[m.key()] = true
			if r.only == "" || r.only == m.id() || r.only == m.place() {
				r.chosen = append(r.chosen, m)
			}
		}
	}
	for key := range r.known {
		if file, _, _ := strings.Cut(key, " "); mine[file] && !there[key] {
			r.report.wrong = append(r.report.wrong, key+"  (there is no such mutant)")
		}
	}
	slices.Sort(r.report.wrong)
}

// all tries them, several at a time, and prints the report.
func (r *run) all(ctx context.Context, out io.Writer) error {
	r.begun = time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tasks, err := r.tasks()
	if err != nil {
		return err
	}
	next := make(chan task)
	var workers sync.WaitGroup
	for range r.parallel {
		workers.Go(func() {
			for t := range next {
				if err := r.try(ctx, t, out); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, t := range tasks {
		next <- t
	}
	close(next)
	workers.Wait()
	r.report.elapsed = time.Since(r.begun)
	progress("")
	r.report.print(out)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.report.err()
}

// tasks reports the mutants with a known result and those that do not compile. It returns the others in
// random order, so that the mutants tried when the time is over are a random sample.
func (r *run) tasks() (tasks []task, err error) {
	files := map[*source][]mutant{}
	for _, m := range r.chosen {
		found, known := r.ledger.find(m)
		found.Listed = r.known[m.key()]
		switch {
		case known:
			r.report.add(m.src.name, found)
		case found.Listed != "" && !r.listed && r.only == "":
			found.Fate = survived
			r.report.add(m.src.name, found)
		default:
			files[m.src] = append(files[m.src], m)
		}
	}
	for src, all := range files {
		c, err := newChecker(src)
		if err != nil {
			return nil, err
		}
		files[src] = c.compile(slices.Clone(all))
		for range len(all) - len(files[src]) {
			r.report.add(src.name, result{Fate: unbuilt})
		}
	}
	for _, all := range files {
		for _, g := range groups(all) {
			for i := range g {
				tasks = append(tasks, task{g, i + 1})
			}
		}
	}
	slices.SortFunc(tasks, func(a, b task) int { return strings.Compare(a.mutant().id(), b.mutant().id()) })
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	return tasks, nil
}

func (t task) mutant() mutant { return t.group[t.nth-1] }

// try tries a mutant, unless the time is over.
func (r *run) try(ctx context.Context, t task, out io.Writer) error {
	m := t.mutant()
	found := result{ID: m.id(), Key: m.key(), Hash: m.hash(), Listed: r.known[m.key()], at: m.line}
	if ctx.Err() == nil && (r.lasts == 0 || time.Since(r.begun) < r.lasts) {
		v, err := r.bench.try(ctx, t.group, t.nth)
		if err != nil {
			return err
		}
		found.Fate, found.By, found.Cost = v.fate, v.by, v.cost.Seconds()
		if err := r.ledger.add(found); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.report.add(m.src.name, found)
	if r.only != "" {
		r.tell(out, m)
		fmt.Fprintln(out, found.Fate, found.By)
	}
	progress(fmt.Sprintf("%d mutants tried, %d new survivors, %v", r.done, len(r.report.new), time.Since(r.begun).Round(time.Second)))
	return nil
}

// progress replaces the last line on a terminal.
func progress(line string) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", line)
	}
}
