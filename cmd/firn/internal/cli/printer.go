package cli

import (
	"bufio"
	"errors"
	"io"
)

// A printer writes ids: one a line, or all of them as {"ids":["…"]}.
type printer struct {
	out    *bufio.Writer
	asJSON bool
	any    bool
	item   []byte // the item being made
}

func newPrinter(out io.Writer, asJSON bool) *printer {
	return &printer{out: bufio.NewWriterSize(out, 64<<10), asJSON: asJSON}
}

// add writes what append makes; an id needs no escaping in any form.
func (p *printer) add(item func(dst []byte) ([]byte, error)) (err error) {
	p.item = p.item[:0]
	if p.asJSON {
		p.item = append(p.item, p.comma()...)
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
	_, err = p.out.Write(p.item)
	return err
}

func (p *printer) comma() string {
	if p.any {
		return `,"`
	}
	return `{"ids":["`
}

// flush hands on what was written so far.
func (p *printer) flush() error { return p.out.Flush() }

// ending ends what was printed by what returned err, and returns err. Ids printed
// are issued: who reads them as JSON shall have them even if no more could be made.
// Without any, a failure prints nothing.
func (p *printer) ending(err error) error {
	if err == nil {
		return p.end()
	}
	if !p.any {
		return err
	}
	if endErr := p.end(); endErr != nil && !errors.Is(err, endErr) { // a write that failed fails again
		return errors.Join(err, endErr)
	}
	return err
}

// end closes what add has opened.
func (p *printer) end() error {
	if p.asJSON {
		if !p.any {
			if _, err := p.out.WriteString(`{"ids":[`); err != nil {
				return err
			}
		}
		if _, err := p.out.WriteString("]}\n"); err != nil {
			return err
		}
	}
	return p.out.Flush()
}
