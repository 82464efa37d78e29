package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
)

// An idReader reads the ids of a file in order. Each calls ids for ids that follow each other, and other for a line that
// has none: with the reason if the line is no id, and without if it is empty. An error is of reading.
type idReader struct {
	binary bool // positions count ids of eight bytes, else lines
	each   func(in io.Reader, ids func([]firn.ID) error, other func(reason string)) error
}

// lineReader returns the reader of a format.
func lineReader(format string) (idReader, error) {
	if format == "binary" {
		return idReader{true, eachBinary}, nil
	}
	e, err := decode.ParseEncoding(format, "binary")
	if err != nil {
		return idReader{}, err
	}
	parse := func(line []byte) (firn.ID, error) { return e.Parse(string(line)) }
	if e == firn.Decimal {
		parse = func(line []byte) (id firn.ID, err error) { return id, id.UnmarshalText(line) }
	}
	return idReader{false, func(in io.Reader, ids func([]firn.ID) error, other func(string)) error {
		return eachLine(in, parse, ids, other)
	}}, nil
}

// longestLine bounds a line: a file without lines must not take the memory.
const longestLine = 64 << 10

func eachLine(in io.Reader, parse func([]byte) (firn.ID, error), ids func([]firn.ID) error, other func(string)) error {
	lines := bufio.NewReaderSize(in, longestLine)
	batch := make([]firn.ID, 0, 4096)
	flush := func() error {
		err := ids(batch)
		batch = batch[:0]
		return err
	}
	var offset int64
	for {
		line, err := lines.ReadSlice('\n')
		began := offset
		offset += int64(len(line))
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = lines.ReadSlice('\n')
			offset += int64(len(line))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(flush(), err)
		}
		text := bytes.TrimSpace(line)
		id, reason := firn.ID(0), ""
		if tooLong := offset-began > int64(len(line)); tooLong {
			reason = fmt.Sprintf("byte %d: the line has %d bytes: one id a line is wanted", began, offset-began)
		} else if len(text) > 0 {
			var parseErr error
			if id, parseErr = parse(text); parseErr != nil {
				reason = fmt.Sprintf("byte %d: %v", began, parseErr)
			}
		}
		switch {
		case err != nil && offset == began: // the end
			return flush()
		case reason != "" || len(text) == 0:
			if err := flush(); err != nil {
				return err
			}
			other(reason)
		default:
			if batch = append(batch, id); len(batch) == cap(batch) {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return flush()
		}
	}
}

func eachBinary(in io.Reader, ids func([]firn.ID) error, other func(string)) error {
	buf := make([]byte, 64<<10)
	batch := make([]firn.ID, 0, len(buf)/8)
	for {
		n, err := io.ReadFull(in, buf)
		whole := n / 8 * 8
		for at := 0; at < whole; at += 8 {
			var id firn.ID
			if idErr := id.UnmarshalBinary(buf[at : at+8]); idErr != nil {
				if err := ids(batch); err != nil {
					return err
				}
				batch = batch[:0]
				other(idErr.Error())
				continue
			}
			batch = append(batch, id)
		}
		if err := ids(batch); err != nil {
			return err
		}
		batch = batch[:0]
		if n > whole {
			other(fmt.Sprintf("the file ends with %d bytes; an id has 8", n-whole))
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// A meteredReader adds what is read to a progress.
type meteredReader struct {
	io.Reader
	p *progress
}

func (r meteredReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.p.add(int64(n))
	return n, err
}
