package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A tally counts the mutants of a file.
type tally struct {
	mutants, left                      int // left: not tried in the time
	killed, timedOut, survived, listed int
}

func (t *tally) add(r result) {
	t.mutants++
	switch r.Fate {
	case killed:
		t.killed++
	case timedOut:
		t.timedOut++
	case survived:
		t.survived++
		if r.Listed != "" {
			t.listed++
		}
	case unbuilt:
	default:
		t.left++
	}
}

func (t *tally) sum(o tally) {
	t.mutants += o.mutants
	t.left += o.left
	t.killed += o.killed
	t.timedOut += o.timedOut
	t.survived += o.survived
	t.listed += o.listed
}

func (t tally) compiled() int { return t.killed + t.timedOut + t.survived }

func (t tally) percent() string {
	if t.compiled() == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*float64(t.killed+t.timedOut)/float64(t.compiled()))
}

// A report has the results of a run.
type report struct {
	names   []string // of the files, in order
	files   map[string]*tally
	new     []result // survivors that are not listed
	wrong   []string // listed keys of mutants that are killed or do not exist
	cost    time.Duration
	elapsed time.Duration
}

func (r *report) add(file string, found result) {
	if r.files == nil {
		r.files = map[string]*tally{}
	}
	if r.files[file] == nil {
		r.files[file] = &tally{}
		r.names = append(r.names, file)
		slices.Sort(r.names)
	}
	r.files[file].add(found)
	r.cost += time.Duration(found.Cost * float64(time.Second))
	switch {
	case found.Fate == survived && found.Listed == "":
		r.new = append(r.new, found)
	case found.Fate == killed && found.Listed != "", found.Fate == timedOut && found.Listed != "":
		r.wrong = append(r.wrong, found.Key+"  (is "+string(found.Fate)+")")
	}
}

func (r *report) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "file\tmutants\tcompiled\tkilled\ttimed out\tsurvived\tlisted\tnot tried\t% killed\t")
	var all tally
	row := func(name string, n tally) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", name, n.mutants, n.compiled(), n.killed, n.timedOut, n.survived, n.listed, n.left, n.percent())
	}
	for _, name := range r.names {
		row(name, *r.files[name])
		all.sum(*r.files[name])
	}
	row("all", all)
	t.Flush() //nolint:errcheck // as Fprint above
	fmt.Fprintf(w, "%v, %v of processors\n", r.elapsed.Round(time.Second), r.cost.Round(time.Second))
	if len(r.new) > 0 {
		fmt.Fprintln(w, "\nsurvivors that are not listed:")
	}
	slices.SortFunc(r.new, func(a, b result) int {
		return cmp.Or(strings.Compare(file(a.ID), file(b.ID)), cmp.Compare(a.at, b.at), strings.Compare(a.ID, b.ID))
	})
	for _, s := range r.new {
		fmt.Fprintf(w, "  %s\n    %s\n", s.ID, s.Key)
	}
	if len(r.wrong) > 0 {
		fmt.Fprintln(w, "\nlisted, but not survivors:")
	}
	for _, key := range r.wrong {
		fmt.Fprintf(w, "  %s\n", key)
	}
}

func file(id string) string {
	name, _, _ := strings.Cut(id, ":")
	return name
}

func (r *report) err() error {
	if len(r.new)+len(r.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%d survivors are not listed, %d listed mutants are not survivors", len(r.new), len(r.wrong))
}
