package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A tally counts the mutants of a file by their fates, of which "" is not tried in the time.
type tally struct {
	fates  map[fate]int
	listed int // of those that survived
}

func (t *tally) add(r result) {
	t.fates[r.Fate]++
	if r.Fate == survived && r.Listed != "" {
		t.listed++
	}
}

func (t *tally) sum(o *tally) {
	for f, n := range o.fates {
		t.fates[f] += n
	}
	t.listed += o.listed
}

func (t *tally) row(name string) string {
	f := t.fates
	compiled, percent := f[killed]+f[timedOut]+f[survived], "-"
	if compiled > 0 {
		percent = fmt.Sprintf("%.1f", 100*float64(f[killed]+f[timedOut])/float64(compiled))
	}
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", name, compiled+f[unbuilt]+f[""], compiled, f[killed], f[timedOut], f[survived], t.listed, f[""], percent)
}

// A report has the results of a run.
type report struct {
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
		r.files[file] = &tally{fates: map[fate]int{}}
	}
	r.files[file].add(found)
	r.cost += time.Duration(found.Cost * float64(time.Second))
	switch dead := found.Fate == killed || found.Fate == timedOut; {
	case found.Fate == survived && found.Listed == "":
		r.new = append(r.new, found)
	case dead && found.Listed != "":
		r.wrong = append(r.wrong, found.Key+"  (is "+string(found.Fate)+")")
	}
}

func (r *report) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "file\tmutants\tcompiled\tkilled\ttimed out\tsurvived\tlisted\tnot tried\t% killed\t")
	all := tally{fates: map[fate]int{}}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		fmt.Fprint(t, r.files[name].row(name))
		all.sum(r.files[name])
	}
	fmt.Fprint(t, all.row("all"))
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
