// Package ledger stores on disk the ids that many callers received from many processes. In bounded memory
// it finds the ids that were issued twice, and ids of a sequence that were issued out of order.
//
// Each caller writes its own file, in the order of its calls. Consecutive ids are stored as one run, so
// that hundreds of millions fit in megabytes.
package ledger

import (
	"bufio"
	"encoding/binary"
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

const (
	headSize = 8 + 8 + 4 + 4
	runSize  = 16
	maxRuns  = 1 << 26 // with more, the file is not from this package
)

// A Writer writes the batches of one caller.
type Writer struct {
	file *os.File
	out  *bufio.Writer
	buf  []byte
}

// Create makes a file.
func Create(path string) (*Writer, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &Writer{file: f, out: bufio.NewWriterSize(f, 1<<16)}, nil
}

// Add writes a batch. It skips batches without ids.
func (w *Writer) Add(b Batch) error {
	if len(b.Runs) == 0 {
		return nil
	}
	p := binary.LittleEndian.AppendUint64(w.buf[:0], uint64(b.Asked))
	p = binary.LittleEndian.AppendUint64(p, uint64(b.Answered))
	p = binary.LittleEndian.AppendUint32(p, b.Mark)
	p = binary.LittleEndian.AppendUint32(p, uint32(len(b.Runs)))
	for _, r := range b.Runs {
		p = binary.LittleEndian.AppendUint64(p, uint64(r.First))
		p = binary.LittleEndian.AppendUint64(p, uint64(r.Count))
	}
	w.buf = p
	_, err := w.out.Write(p)
	return err
}

// Close ends the file.
func (w *Writer) Close() error { return errors.Join(w.out.Flush(), w.file.Close()) }

// A reader reads what a Writer wrote.
type reader struct {
	path  string
	file  *os.File
	in    *bufio.Reader
	batch Batch // the last one read; the next read overwrites its runs
	buf   []byte
}

func open(path string) (*reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &reader{path: path, file: f, in: bufio.NewReaderSize(f, 1<<16)}, nil
}

func (r *reader) close() error { return r.file.Close() }

// next reads the next batch; after the last it returns false.
func (r *reader) next() (bool, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r.in, head[:]); err == io.EOF {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("%s: %w", r.path, err)
	}
	n := int(binary.LittleEndian.Uint32(head[20:]))
	if n > maxRuns {
		return false, fmt.Errorf("%s: a batch has %d runs, at most %d are possible", r.path, n, maxRuns)
	}
	if cap(r.buf) < n*runSize {
		r.buf = make([]byte, n*runSize)
	}
	buf := r.buf[:n*runSize]
	if _, err := io.ReadFull(r.in, buf); err != nil {
		return false, fmt.Errorf("%s: %w", r.path, err)
	}
	b := &r.batch
	b.Asked, b.Answered = time.Duration(binary.LittleEndian.Uint64(head[:])), time.Duration(binary.LittleEndian.Uint64(head[8:]))
	b.Mark, b.Runs = binary.LittleEndian.Uint32(head[16:]), b.Runs[:0]
	for ; len(buf) > 0; buf = buf[runSize:] {
		b.Runs = append(b.Runs, Run{int64(binary.LittleEndian.Uint64(buf)), int64(binary.LittleEndian.Uint64(buf[8:]))})
	}
	return true, nil
}
