package ledger

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// chunkRuns is how many runs are sorted in memory at once: 40 bytes each.
const chunkRuns = 1 << 20

// maxFindings bounds how many examples are kept.
const maxFindings = 4

// Findings are the results of a check.
type Findings struct {
	IDs, Bad int64            // all ids, and those that must not have been issued
	ByMark   map[uint32]Count // the same for each mark
	Examples []Example
}

// A Count is a part of Findings.
type Count struct{ IDs, Bad int64 }

// An Example has wrong ids and the two calls that conflict.
type Example struct {
	IDs       Run
	It, Other Place
}

// A Place is a call whose ids are in a file.
type Place struct {
	File            string
	Asked, Answered time.Duration
	Mark            uint32
}

func (e Example) String() string {
	return fmt.Sprintf("%d (%d ids): %s, and %s", e.IDs.First, e.IDs.Count, e.It, e.Other)
}

func (p Place) String() string {
	return fmt.Sprintf("%s asked at %v and answered at %v", filepath.Base(p.File), p.Asked.Round(time.Microsecond), p.Answered.Round(time.Microsecond))
}

func (f *Findings) count(mark uint32, ids, bad int64) {
	c := f.ByMark[mark]
	c.IDs += ids
	c.Bad += bad
	f.ByMark[mark] = c
	f.IDs += ids
	f.Bad += bad
}

func (f *Findings) example(e Example) {
	if len(f.Examples) < maxFindings {
		f.Examples = append(f.Examples, e)
	}
}

// A piece is a run and its origin.
type piece struct {
	Run
	asked, answered time.Duration
	mark, file      uint32
}

const pieceSize = 40

// Duplicates finds the ids that occur more than once in the files. All occurrences but one are bad; each
// counts for the mark of the later answer. Temporary files are in dir.
func Duplicates(files []string, dir string) (Findings, error) {
	return duplicates(files, dir, chunkRuns)
}

func duplicates(files []string, dir string, chunk int) (f Findings, err error) {
	f.ByMark = map[uint32]Count{}
	sorted, err := spill(files, dir, chunk, &f)
	defer func() {
		for _, s := range sorted {
			err = errors.Join(err, s.file.Close(), os.Remove(s.file.Name()))
		}
	}()
	if err != nil {
		return f, err
	}
	var furthest *piece // among the runs that begin below, the one with the greatest id
	err = merge(sorted, func(p piece) {
		if furthest != nil && p.First <= furthest.Last() {
			both := Run{p.First, min(p.Last(), furthest.Last()) - p.First + 1}
			later, earlier := p, *furthest
			if later.answered < earlier.answered {
				later, earlier = earlier, later
			}
			f.count(later.mark, 0, both.Count)
			f.example(Example{both, later.place(files), earlier.place(files)})
		}
		if furthest == nil || p.Last() > furthest.Last() {
			furthest = &p
		}
	})
	return f, err
}

func (p piece) place(files []string) Place { return Place{files[p.file], p.asked, p.answered, p.mark} }

// spill writes the runs of all files into sorted files, and counts them.
func spill(files []string, dir string, chunk int, f *Findings) (sorted []*stream, err error) {
	var pieces []piece
	flush := func() error {
		if len(pieces) == 0 {
			return nil
		}
		slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.First, b.First) })
		s, err := writeSorted(pieces, dir)
		if s != nil {
			sorted = append(sorted, s)
		}
		pieces = pieces[:0]
		return err
	}
	for i, path := range files {
		err := each(path, func(b *Batch) error {
			f.count(b.Mark, b.Runs.Count(), 0)
			for _, r := range b.Runs {
				pieces = append(pieces, piece{r, b.Asked, b.Answered, b.Mark, uint32(i)})
				if len(pieces) >= chunk {
					if err := flush(); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return sorted, err
		}
	}
	return sorted, flush()
}

// each reads all batches of a file.
func each(path string, do func(*Batch) error) (err error) {
	r, err := open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for {
		more, err := r.next()
		if err != nil || !more {
			return err
		}
		if err := do(&r.batch); err != nil {
			return err
		}
	}
}

// A stream is a sorted file that is read again.
type stream struct {
	file *os.File
	in   *bufio.Reader
	head piece
}

func writeSorted(pieces []piece, dir string) (*stream, error) {
	file, err := os.CreateTemp(dir, "sorted-")
	if err != nil {
		return nil, err
	}
	s := &stream{file: file}
	out := bufio.NewWriterSize(file, 1<<16)
	var b []byte
	for _, p := range pieces {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(p.First))
		b = binary.LittleEndian.AppendUint64(b, uint64(p.Count))
		b = binary.LittleEndian.AppendUint64(b, uint64(p.asked))
		b = binary.LittleEndian.AppendUint64(b, uint64(p.answered))
		b = binary.LittleEndian.AppendUint32(b, p.mark)
		b = binary.LittleEndian.AppendUint32(b, p.file)
		if _, err := out.Write(b); err != nil {
			return s, err
		}
	}
	if err := out.Flush(); err != nil {
		return s, err
	}
	_, err = file.Seek(0, io.SeekStart)
	s.in = bufio.NewReaderSize(file, 1<<16)
	return s, err
}

// advance reads the next piece; after the last it returns false.
func (s *stream) advance() (bool, error) {
	var b [pieceSize]byte
	if _, err := io.ReadFull(s.in, b[:]); err == io.EOF {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("%s: %w", s.file.Name(), err)
	}
	u := binary.LittleEndian
	s.head = piece{
		Run{int64(u.Uint64(b[:])), int64(u.Uint64(b[8:]))},
		time.Duration(u.Uint64(b[16:])), time.Duration(u.Uint64(b[24:])), u.Uint32(b[32:]), u.Uint32(b[36:]),
	}
	return true, nil
}

// merge calls do with the pieces of all streams in order of their first id.
func merge(streams []*stream, do func(piece)) error {
	var open []*stream
	for _, s := range streams {
		more, err := s.advance()
		if err != nil {
			return err
		}
		if more {
			open = append(open, s)
		}
	}
	for len(open) > 0 {
		least := 0
		for i, s := range open {
			if s.head.First < open[least].head.First {
				least = i
			}
		}
		do(open[least].head)
		more, err := open[least].advance()
		if err != nil {
			return err
		}
		if !more {
			open = slices.Delete(open, least, least+1)
		}
	}
	return nil
}
