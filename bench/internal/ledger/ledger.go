// Package ledger stores on disk the ids that many callers received from many processes, and finds the ids that were
// issued twice, and ids of a sequence that were issued out of order.
//
// Each caller writes its own file, in the order of its calls. Consecutive ids are stored as one run, so
// that hundreds of millions fit in megabytes, on disk and in the memory of a check.
package ledger

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A Run is a range of consecutive ids.
type Run struct{ First, Count int64 }

// Last returns the greatest id of a run.
func (r Run) Last() int64 { return r.First + r.Count - 1 }

// Runs are ids in the order in which they came.
type Runs []Run

// Add appends an id.
func (r Runs) Add(id int64) Runs {
	if n := len(r); n > 0 && r[n-1].First+r[n-1].Count == id {
		r[n-1].Count++
		return r
	}
	return append(r, Run{id, 1})
}

// Count returns the number of ids.
func (r Runs) Count() (n int64) {
	for _, run := range r {
		n += run.Count
	}
	return n
}

// A Batch is what one call received. Asked and Answered are by one monotonic clock for all
// files: before the request was sent, and after the answer was read.
type Batch struct {
	Asked, Answered time.Duration
	Mark            uint32 // chosen by the caller, such as the present fault
	Runs            Runs
}

// A Writer writes the batches of one caller.
type Writer struct {
	file *os.File
	out  *bufio.Writer
	gob  *gob.Encoder
}

// Create makes a file.
func Create(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(f, 1<<16)
	return &Writer{f, out, gob.NewEncoder(out)}, nil
}

// Add writes a batch.
func (w *Writer) Add(b Batch) error { return w.gob.Encode(b) }

// Close ends the file.
func (w *Writer) Close() error { return errors.Join(w.out.Flush(), w.file.Close()) }

// each reads all batches of files.
func each(files []string, do func(path string, b Batch)) error {
	for _, path := range files {
		if err := eachOf(path, do); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func eachOf(path string, do func(path string, b Batch)) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := gob.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	for {
		var b Batch
		if err := in.Decode(&b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		do(path, b)
	}
}
