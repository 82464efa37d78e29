package cli

import (
	"bufio"
	"errors"
	"io"
)

// A printer writes ids: one per line, or all as {"ids":["…"]}.
type printer struct {
	out    *bufio.Writer
	asJSON bool
	any    bool
	item   []byte // the item being made

	progress *progress
	counted  int // of the ids, for progress
}

func newPrinter(out io.Writer, asJSON bool) *printer {
	return &printer{out: bufio.NewWriterSize(out, 64<<10), asJSON: asJSON}
}

// add writes one id, which item appends. Ids need no escaping in JSON.
func (p *printer) add(item func(dst []byte) ([]byte, error)) (err error) {
	p.item = p.item[:0]
	if p.asJSON {
		begin := `{"ids":["`
		if p.any {
			begin = `,"`
		}
		p.item = append(p.item, begin...)
	}
	if p.item, err = item(p.item); err != nil {
		return err
	}
	p.any = true
	if p.asJSON {
		p.item = append(p.item, '"')
	} else {
		p.item = append(p.item, '\n')
	}
	if p.counted++; p.counted == chunk {
		p.progress.add(chunk)
		p.counted = 0
	}
	_, err = p.out.Write(p.item)
	return err
}

// flush writes what is buffered.
func (p *printer) flush() error { return p.out.Flush() }

// ending ends the output and returns err, the error of what made the ids. Printed ids are issued, so the JSON must be
// complete even if no more ids could be made. Without any id, a failure prints nothing.
func (p *printer) ending(err error) error {
	if err == nil {
		return p.end()
	}
	if !p.any {
		return err
	}
	if endErr := p.end(); endErr != nil && !errors.Is(err, endErr) { // a failed write fails again with the same error
		return errors.Join(err, endErr)
	}
	return err
}

// end writes the end of the JSON, and flushes.
func (p *printer) end() error {
	end := ""
	switch {
	case p.asJSON && p.any:
		end = "]}\n"
	case p.asJSON:
		end = `{"ids":[]}` + "\n"
	}
	if _, err := p.out.WriteString(end); err != nil {
		return err
	}
	return p.out.Flush()
}
