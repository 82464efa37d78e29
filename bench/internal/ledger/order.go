package ledger

import (
	"errors"
	"time"
)

// Order finds the ids that are not greater than all ids of calls that were answered before theirs was
// sent. The calls of each file were made one after the other.
func Order(files []string) (f Findings, err error) {
	f.ByMark = map[uint32]Count{}
	asked, err := openAll(files)
	defer func() { err = errors.Join(err, asked.close()) }()
	if err != nil {
		return f, err
	}
	answered, err := openAll(files)
	defer func() { err = errors.Join(err, answered.close()) }()
	if err != nil {
		return f, err
	}
	greatest := Run{First: -1} // Count is not used
	var from Place
	for {
		r := asked.first(func(b *Batch) time.Duration { return b.Asked })
		if r == nil {
			return f, nil
		}
		for {
			a := answered.first(func(b *Batch) time.Duration { return b.Answered })
			if a == nil || a.batch.Answered >= r.batch.Asked {
				break
			}
			for _, run := range a.batch.Runs {
				if run.Last() > greatest.First {
					greatest.First, from = run.Last(), a.place()
				}
			}
			if err := answered.advance(a); err != nil {
				return f, err
			}
		}
		late := notAbove(r.batch.Runs, greatest.First)
		f.count(r.batch.Mark, r.batch.Runs.Count(), late)
		if late > 0 {
			f.example(Example{Run{r.batch.Runs[0].First, late}, r.place(), from})
		}
		if err := asked.advance(r); err != nil {
			return f, err
		}
	}
}

// notAbove counts the ids that are not greater than a bound.
func notAbove(runs Runs, bound int64) (n int64) {
	for _, r := range runs {
		if r.First <= bound {
			n += min(r.Last(), bound) - r.First + 1
		}
	}
	return n
}

// cursors are files that are read in parallel; files that have ended are closed and nil.
type cursors []*reader

func openAll(files []string) (all cursors, err error) {
	for _, path := range files {
		r, err := open(path)
		if err != nil {
			return all, err
		}
		all = append(all, r)
		if err := all.advance(r); err != nil {
			return all, err
		}
	}
	return all, nil
}

// first returns the file whose batch has the least time.
func (c cursors) first(of func(*Batch) time.Duration) (least *reader) {
	for _, r := range c {
		if r != nil && (least == nil || of(&r.batch) < of(&least.batch)) {
			least = r
		}
	}
	return least
}

func (c cursors) advance(r *reader) error {
	more, err := r.next()
	if err != nil || more {
		return err
	}
	for i := range c {
		if c[i] == r {
			c[i] = nil
		}
	}
	return r.close()
}

func (c cursors) close() (err error) {
	for _, r := range c {
		if r != nil {
			err = errors.Join(err, r.close())
		}
	}
	return err
}

func (r *reader) place() Place {
	return Place{r.path, r.batch.Asked, r.batch.Answered, r.batch.Mark}
}
