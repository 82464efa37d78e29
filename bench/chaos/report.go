package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/bench/internal/ledger"
)

// A row has the results during one kind of fault.
type row struct {
	fault           string
	done            int64
	ids             int64
	twice, disorder int64
	silence         quiet
}

// A result has the results of one store.
type result struct {
	rows     []row
	refusals int64 // calls that failed
	stuck    int64 // starts that did not finish
	examples []string
}

// number numbers the faults.
func (w *world) number() {
	for k := range w.store.faults {
		w.store.faults[k].mark = uint32(k + 1)
	}
	w.done = make([]atomic.Int64, len(w.store.faults)+1)
}

// check checks all received ids.
func (w *world) check() (r result, err error) {
	silences := w.silence.end(w.mark.Load(), time.Now())
	r.refusals, r.stuck = w.refusals.Load(), w.stuck.Load()
	r.rows = []row{{fault: "nothing, between faults", silence: silences[0]}}
	for k, f := range w.store.faults {
		r.rows = append(r.rows, row{fault: f.name, done: w.done[k+1].Load(), silence: silences[f.mark]})
	}
	for namespace, files := range w.files {
		found, err := ledger.Duplicates(files)
		if err != nil {
			return r, err
		}
		for mark, c := range found.ByMark {
			r.rows[mark].ids += c.IDs
			r.rows[mark].twice += c.Bad
		}
		r.explain(namespace, "twice", found)
		if namespace != "sequence" {
			continue
		}
		found, err = ledger.Order(files)
		if err != nil {
			return r, err
		}
		for mark, c := range found.ByMark {
			r.rows[mark].disorder += c.Bad
		}
		r.explain(namespace, "although a greater or equal id was received before", found)
	}
	return r, nil
}

func (r *result) explain(namespace, what string, found ledger.Findings) {
	if found.Bad > 0 {
		r.examples = append(r.examples, fmt.Sprintf("%s: %d of %d ids were issued %s:", namespace, found.Bad, found.IDs, what))
	}
	for _, e := range found.Examples {
		r.examples = append(r.examples, "  "+e.String())
	}
}

func (r result) print(out io.Writer, store string) {
	fmt.Fprintf(out, "| %s | faults | ids | issued twice | out of order | longest silence |\n| --- | ---: | ---: | ---: | ---: | ---: |\n", store)
	all := total{row: row{fault: "all"}}
	all.add(r)
	for _, row := range append(r.rows, all.row) {
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %v |\n", row.fault, row.done, row.ids, row.twice, row.disorder, row.silence)
	}
	fmt.Fprintf(out, "\n%d calls failed, which is allowed; %d starts did not finish within %v.\n", r.refusals, r.stuck, startTime)
	for _, line := range r.examples {
		fmt.Fprintln(out, line)
	}
	fmt.Fprintln(out)
}

// A total is the sum of results.
type total struct {
	row
	stuck  int64
	stores int
}

func (t *total) add(r result) {
	for _, row := range r.rows {
		t.done += row.done
		t.ids += row.ids
		t.twice += row.twice
		t.disorder += row.disorder
		if row.silence.Duration > t.silence.Duration {
			t.silence = row.silence
		}
	}
	t.stuck += r.stuck
	t.stores++
}

func (t *total) print(out io.Writer) {
	fmt.Fprintf(out, "%d stores, %d faults, %d ids: %d issued twice, %d out of order; longest silence %v\n",
		t.stores, t.done, t.ids, t.twice, t.disorder, t.silence)
}
