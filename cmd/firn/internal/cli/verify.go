package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/idset"
)

// maxShown is how many mistakes of a kind are shown.
const maxShown = 10

// futureTolerance is how far the clocks of a fleet may be ahead of this one before verify calls an id's time wrong.
const futureTolerance = time.Minute

func newVerify() *cobra.Command {
	var (
		flags     layoutFlags
		format    string
		temp      string
		ascending bool
	)
	cmd := &cobra.Command{
		Use:   "verify [FILE…]",
		Short: "Find duplicates and wrong order in files of ids",
		Long: `verify reads ids, one per line, and reports those that occur more than once, with the
file and line of each, and how often an id is smaller than the one before it in its
file. It reads any number of ids in less than 256 MB of memory, and needs 2 to 16
bytes per id in a temporary folder. Without a file, or for -, it reads standard input.

With --layout it also reports ids that the layout cannot have issued by now, and counts
the workers.

The exit status is 1 if an id occurs twice, if a line is not an id, if the layout
cannot have issued an id, or, with --ascending, if an id is not greater than the one
before.`,
		Example: `  firn next -n 100000 | firn verify --ascending
  firn verify --layout firn monday.txt tuesday.txt
  firn verify --format binary ids.bin`,
		RunE: func(cmd *cobra.Command, args []string) error {
			read, err := lineReader(format)
			if err != nil {
				return usage(err)
			}
			v := verification{ascending: ascending}
			if slices.ContainsFunc([]string{"layout", "unit", "epoch"}, cmd.Flags().Changed) {
				if v.check, err = newLayoutCheck(&flags); err != nil {
					return usage(err)
				}
			}
			if len(args) == 0 {
				args = []string{"-"}
			}
			if err := v.run(cmd.Context(), args, cmd.InOrStdin(), read, temp, newProgress(cmd.ErrOrStderr(), "read", "bytes", sizeOf(args), 0)); err != nil {
				return err
			}
			return errors.Join(answer(cmd, v.verifyReport, v.print), v.mistakes())
		},
	}
	flags.add(cmd)
	cmd.Flags().Lookup("layout").Usage = "check that this layout can have issued the ids: a preset (see firn layout) or bits"
	cmd.Flags().StringVar(&format, "format", "decimal", encodingHelp+"; binary is eight bytes an id, the highest first")
	cmd.Flags().StringVar(&temp, "temp", "", "folder for temporary files (default: the system's)")
	cmd.Flags().BoolVar(&ascending, "ascending", false, "an id that is not greater than the one before in its file is a mistake")
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}

// sizeOf returns the bytes of files together, 0 if that is unknown.
func sizeOf(names []string) (size int64) {
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err != nil || !info.Mode().IsRegular() {
			return 0
		}
		size += info.Size()
	}
	return size
}

// A verification is what verify knows of the ids.
type verification struct {
	verifyReport
	ascending bool
	files     []verifiedFile
	took      time.Duration
	check     *layoutCheck // nil without a layout
}

// verifyReport is what --json prints.
type verifyReport struct {
	IDs        int64        `json:"ids"`
	Seconds    float64      `json:"seconds"`
	Least      *firn.ID     `json:"least,omitempty"`
	Greatest   *firn.ID     `json:"greatest,omitempty"`
	Duplicates int64        `json:"duplicates"`
	Repeated   []repeatedID `json:"repeated,omitempty"`
	Descents   int64        `json:"descents"`
	Descended  []descent    `json:"descended,omitempty"`
	Unreadable int64        `json:"unreadable"`
	Unread     []wrongLine  `json:"unread,omitempty"`
	Layout     *layoutFound `json:"layout,omitempty"`
}

type verifiedFile struct {
	name   string
	first  int64 // the position of its first line
	binary bool
}

// A place is where an id stands.
type place struct {
	File string `json:"file"`
	Line int64  `json:"line,omitempty"`
	Byte *int64 `json:"byte,omitempty"` // of a binary file, from 0
}

func (p place) String() string {
	if p.Byte != nil {
		return fmt.Sprintf("%s byte %d", p.File, *p.Byte)
	}
	return fmt.Sprintf("%s line %d", p.File, p.Line)
}

type repeatedID struct {
	ID firn.ID `json:"id"`
	At []place `json:"at"`
}

type descent struct {
	At     place   `json:"at"`
	ID     firn.ID `json:"id"`
	Before firn.ID `json:"before"`
}

type wrongLine struct {
	At     place  `json:"at"`
	Reason string `json:"reason"`
}

// place returns where a position is.
func (v *verification) place(at int64) place {
	i := len(v.files) - 1
	for v.files[i].first > at {
		i--
	}
	f := v.files[i]
	p := place{File: f.name}
	if f.binary {
		p.Byte = new((at - f.first) * 8)
	} else {
		p.Line = at - f.first + 1
	}
	return p
}

// run reads the files and looks for ids that repeat.
func (v *verification) run(ctx context.Context, names []string, stdin io.Reader, read idReader, temp string, p *progress) (err error) {
	defer p.end()
	began := time.Now()
	sorter := idset.NewSorter(temp)
	defer func() { err = errors.Join(err, sorter.Close()) }()
	least, greatest := firn.MaxID, firn.ID(0)
	next := int64(0)
	for _, name := range names {
		in := io.NopCloser(stdin)
		if name == "-" {
			name = "standard input"
		} else if in, err = os.Open(name); err != nil {
			return err
		}
		v.files = append(v.files, verifiedFile{name, next, read.binary})
		last, begun := firn.ID(0), false
		err := read.each(meteredReader{in, p}, func(ids []firn.ID) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for i, id := range ids {
				if begun && id <= last {
					v.descend(next+int64(i), id, last)
				}
				begun, last = true, id
				least, greatest = min(least, id), max(greatest, id)
			}
			if v.check != nil {
				v.check.add(ids, func(i int) place { return v.place(next + int64(i)) })
			}
			next += int64(len(ids))
			v.IDs += int64(len(ids))
			return sorter.Add(ids)
		}, func(reason string) {
			if reason != "" {
				v.Unreadable++
				if len(v.Unread) < maxShown {
					v.Unread = append(v.Unread, wrongLine{v.place(next), reason})
				}
			}
			next++
			sorter.Skip(1)
		})
		if err := errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	var low, high repetitions
	err = sorter.Repeats(ctx, low.add, high.add)
	v.Duplicates = low.ids + high.ids
	for _, r := range slices.Concat(low.first, high.first)[:min(len(low.first)+len(high.first), maxShown)] {
		id := repeatedID{ID: r.id}
		for _, at := range r.at {
			id.At = append(id.At, v.place(at))
		}
		v.Repeated = append(v.Repeated, id)
	}
	if v.IDs > 0 {
		v.Least, v.Greatest = &least, &greatest
	}
	if v.check != nil {
		v.Layout = v.check.end()
	}
	v.took = time.Since(began)
	v.Seconds = v.took.Seconds()
	return err
}

// repetitions are ids that occur again.
type repetitions struct {
	ids   int64
	first []repetition // the first of them
}

type repetition struct {
	id firn.ID
	at []int64
}

func (r *repetitions) add(id firn.ID, before, again int64) {
	r.ids++
	if n := len(r.first); n > 0 && r.first[n-1].id == id {
		if last := &r.first[n-1]; len(last.at) < maxShown {
			last.at = append(last.at, again)
		}
	} else if n < maxShown {
		r.first = append(r.first, repetition{id, []int64{before, again}})
	}
}

func (v *verification) descend(at int64, id, before firn.ID) {
	v.Descents++
	if len(v.Descended) < maxShown {
		v.Descended = append(v.Descended, descent{v.place(at), id, before})
	}
}

// mistakes returns what makes the exit status 1.
func (v *verification) mistakes() error {
	var found []string
	mistake := func(what string, n int64) {
		if n > 0 {
			found = append(found, what+": "+thousands(n))
		}
	}
	mistake("duplicates", v.Duplicates)
	mistake("lines that are not ids", v.Unreadable)
	if v.Layout != nil {
		mistake("ids that the layout cannot have issued by now", v.Layout.Impossible)
	}
	if v.ascending {
		mistake("ids that are not greater than the one before", v.Descents)
	}
	if found == nil {
		return nil
	}
	return errors.New(strings.Join(found, ", "))
}

func (v *verification) print(to io.Writer) error {
	rows := [][]string{{"ids", thousands(v.IDs)}}
	row := func(name, value string) { rows = append(rows, []string{name, value}) }
	if v.IDs > 0 {
		row("", fmt.Sprintf("%d to %d", *v.Least, *v.Greatest))
	}
	row("duplicates", orNone(v.Duplicates))
	for _, r := range v.Repeated {
		text := fmt.Sprint(r.ID)
		for i, p := range r.At {
			text += []string{": ", ", "}[min(i, 1)] + p.String()
		}
		row("", text)
	}
	if v.Descents == 0 {
		row("order", "ascending")
	} else {
		row("order", "ids not greater than the one before: "+thousands(v.Descents))
	}
	for _, d := range v.Descended {
		row("", fmt.Sprintf("%s: %d after %d", d.At, d.ID, d.Before))
	}
	row("unreadable", orNone(v.Unreadable))
	for _, u := range v.Unread {
		row("", u.At.String()+": "+u.Reason)
	}
	if v.Layout != nil {
		rows = append(rows, v.Layout.rows()...)
	}
	row("time", fmt.Sprintf("%v, %s ids/s", v.took.Round(time.Millisecond), thousands(int64(float64(v.IDs)/max(v.Seconds, 1e-6)))))
	return writeTable(to, rows)
}

func orNone(n int64) string {
	if n == 0 {
		return "none"
	}
	return thousands(n)
}

// A layoutCheck looks at the parts of ids.
type layoutCheck struct {
	layoutFound
	layout    firn.Layout
	latest    firn.Tick // the last one that can have been issued by now
	least     firn.Tick
	greatest  firn.Tick // below least without any id
	workers   []uint64  // bits, by datacenter and worker
	perCenter uint64
}

// layoutFound is what --json prints about the layout.
type layoutFound struct {
	Layout     string      `json:"layout"`
	First      *time.Time  `json:"first,omitempty"`
	Last       *time.Time  `json:"last,omitempty"`
	Workers    int         `json:"workers"`
	Impossible int64       `json:"impossible"`
	Examples   []wrongLine `json:"examples,omitempty"`
}

// newLayoutCheck begins the check of the layout that the flags describe.
func newLayoutCheck(flags *layoutFlags) (c *layoutCheck, err error) {
	c = new(layoutCheck)
	if c.layout, err = flags.parse(); err != nil {
		return nil, err
	}
	if c.latest, err = c.layout.Tick(time.Now().Add(futureTolerance)); err != nil {
		c.latest = c.layout.MaxTick() // the layout begins later or has ended; its times cannot be judged
	}
	c.least, c.greatest = c.layout.MaxTick(), -1
	c.Layout, c.perCenter = describe(c.layout), uint64(c.layout.MaxWorker())+1
	c.workers = make([]uint64, ((uint64(c.layout.MaxDatacenter())+1)*c.perCenter+63)/64)
	return c, nil
}

func (c *layoutCheck) add(ids []firn.ID, at func(int) place) {
	for i, id := range ids {
		parts, err := c.layout.Decompose(id)
		if err == nil && parts.Tick > c.latest {
			err = fmt.Errorf("%d has a time in the future: %v", id, c.layout.Time(parts.Tick).Format(time.RFC3339Nano))
		}
		if err != nil {
			c.Impossible++
			if len(c.Examples) < maxShown {
				c.Examples = append(c.Examples, wrongLine{at(i), err.Error()})
			}
			continue
		}
		c.least, c.greatest = min(c.least, parts.Tick), max(c.greatest, parts.Tick)
		worker := uint64(parts.Datacenter)*c.perCenter + uint64(parts.Worker)
		c.workers[worker/64] |= 1 << (worker % 64)
	}
}

// end returns what was found.
func (c *layoutCheck) end() *layoutFound {
	for _, w := range c.workers {
		c.Workers += bits.OnesCount64(w)
	}
	if c.least <= c.greatest {
		c.First, c.Last = new(c.layout.Time(c.least)), new(c.layout.Time(c.greatest))
	}
	return &c.layoutFound
}

func (f *layoutFound) rows() [][]string {
	rows := [][]string{{"layout", f.Layout}}
	if f.First != nil {
		rows = append(rows, []string{"workers", thousands(int64(f.Workers))},
			[]string{"issued", f.First.Format(time.RFC3339Nano) + " to " + f.Last.Format(time.RFC3339Nano)})
	}
	rows = append(rows, []string{"impossible", orNone(f.Impossible)})
	for _, e := range f.Examples {
		rows = append(rows, []string{"", e.At.String() + ": " + e.Reason})
	}
	return rows
}
