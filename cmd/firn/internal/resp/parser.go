// Package resp reads commands and writes replies of the Redis protocol, RESP2 and
// RESP3, in memory: it does no input or output and allocates nothing for a command.
package resp

import (
	"bytes"
	"fmt"
)

// Limits bounds what a client may send as one command. Zero values are not limits:
// all must be set.
type Limits struct {
	Args    int // arguments of a command, its name among them
	Bulk    int // bytes of an argument
	Command int // bytes of a command as sent, and so of what a reader must keep
}

// A ProtocolError is what a client sent that is no command. After it nothing more
// can be read from the connection.
type ProtocolError string

func (e ProtocolError) Error() string { return "Protocol error: " + string(e) }

// The errors, in the words of Redis.
const (
	errCount      ProtocolError = "invalid multibulk length"
	errBulk       ProtocolError = "invalid bulk length"
	errEnd        ProtocolError = "expected CRLF after bulk"
	errInline     ProtocolError = "too big inline request"
	errUnbalanced ProtocolError = "unbalanced quotes in request"
	errBig        ProtocolError = "too big request"
)

// maxNumber is how many bytes a length may have, with its end of line: more than any
// number needs that is in the limits.
const maxNumber = 24

// A Parser reads commands from the front of a buffer that grows. The zero Parser is
// ready; it may be used again for another connection after Reset.
type Parser struct {
	args  [][]byte
	spans []span
	pos   int // what has been read of an unfinished command
	left  int // arguments that are missing of it; 0 before the count
}

// A span is the place of an argument, counted from the front of its command: the
// buffer may move before the command is whole.
type span struct{ from, to int }

// Reset forgets an unfinished command.
func (p *Parser) Reset() { p.pos, p.left, p.spans = 0, 0, p.spans[:0] }

// Parse reads one command from the front of buf. It returns the arguments, and how
// many bytes they took; 0 if the command is not whole: then Parse is to be called
// again with the same bytes and more behind them, and goes on where it stopped.
// There are no arguments where a client sent none, which is no error.
//
// The arguments lie in buf, in which an inline command's quotes are undone, and are
// valid until the next call.
func (p *Parser) Parse(buf []byte, limits Limits) (args [][]byte, n int, err error) {
	if len(buf) == 0 {
		return nil, 0, nil
	}
	if buf[0] != '*' {
		return p.inline(buf, limits)
	}
	if p.left == 0 {
		count, next, err := number(buf, 1, errCount)
		if next == 0 || err != nil {
			return nil, 0, err
		}
		if count <= 0 {
			return nil, next, nil
		}
		if count > int64(limits.Args) {
			return nil, 0, errCount
		}
		p.pos, p.left = next, int(count)
	}
	for p.left > 0 {
		done, err := p.bulk(buf, limits)
		if err != nil {
			return nil, 0, err
		}
		if !done {
			return nil, 0, nil
		}
	}
	n = p.pos
	p.args = p.args[:0]
	for _, s := range p.spans {
		p.args = append(p.args, buf[s.from:s.to:s.to])
	}
	p.Reset()
	return p.args, n, nil
}

// bulk reads an argument and reports whether it is whole.
func (p *Parser) bulk(buf []byte, limits Limits) (done bool, err error) {
	if p.pos >= len(buf) {
		return false, nil
	}
	if c := buf[p.pos]; c != '$' {
		return false, ProtocolError(fmt.Sprintf("expected '$', got '%c'", printable(c)))
	}
	length, from, err := number(buf, p.pos+1, errBulk)
	switch {
	case err != nil:
		return false, err
	case from == 0:
		return false, nil
	case length < 0 || length > int64(limits.Bulk):
		return false, errBulk
	}
	to := from + int(length)
	if to+2 > limits.Command {
		return false, errBig
	}
	if len(buf) < to+2 {
		return false, nil
	}
	if buf[to] != '\r' || buf[to+1] != '\n' {
		return false, errEnd
	}
	p.spans = append(p.spans, span{from, to})
	p.pos = to + 2
	p.left--
	return true, nil
}

func printable(c byte) byte {
	if c < ' ' || c > '~' {
		return '?'
	}
	return c
}

// number reads a number that ends with its line, and returns where the next line
// begins: 0 if the end is not there yet.
func number(buf []byte, from int, wrong ProtocolError) (v int64, next int, err error) {
	for at := from; at < len(buf); at++ {
		if at-from >= maxNumber {
			return 0, 0, wrong
		}
		if c := buf[at]; c != '\r' {
			continue
		}
		if at+1 == len(buf) {
			return 0, 0, nil
		}
		v, ok := Int(buf[from:at])
		if !ok || buf[at+1] != '\n' {
			return 0, 0, wrong
		}
		return v, at + 2, nil
	}
	if len(buf)-from >= maxNumber {
		return 0, 0, wrong
	}
	return 0, 0, nil
}

// Int reads a decimal number as Redis does: without a plus, leading zeros or spaces.
func Int(text []byte) (v int64, ok bool) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = u*10 + uint64(c-'0') // 19 digits fit
	}
	switch {
	case negative && u <= 1<<63:
		return -int64(u), true // of 1<<63 too, whose conversion is the least number already
	case !negative && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}

// inline reads a command that a person typed: words with spaces between.
func (p *Parser) inline(buf []byte, limits Limits) (args [][]byte, n int, err error) {
	end := bytes.IndexByte(buf[p.pos:], '\n')
	if end < 0 {
		p.pos = len(buf)
		if len(buf) >= limits.Command {
			return nil, 0, errInline
		}
		return nil, 0, nil
	}
	end += p.pos
	p.pos = 0
	if end >= limits.Command {
		return nil, 0, errInline
	}
	line := buf[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	p.args = p.args[:0]
	for at := 0; ; {
		for at < len(line) && space(line[at]) {
			at++
		}
		if at == len(line) {
			return p.args, end + 1, nil
		}
		word, next, ok := unquote(line, at)
		if !ok {
			return nil, 0, errUnbalanced
		}
		if len(p.args) == limits.Args {
			return nil, 0, errCount
		}
		if len(word) > limits.Bulk {
			return nil, 0, errBulk
		}
		p.args = append(p.args, word)
		at = next
	}
}

// space reports whether c stands between words; a zero byte does, which in Redis
// ends the line.
func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0 }

// unquote undoes the quotes of the word at from, in place, as it never grows.
func unquote(line []byte, from int) (word []byte, next int, ok bool) {
	var quote byte // the one that is open
	to := from
	put := func(c byte) { line[to] = c; to++ }
	at := from
	for ; at < len(line); at++ {
		c := line[at]
		switch {
		case quote == 0 && space(c):
			return line[from:to:to], at, true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			// What follows must be the end of the word.
			if at+1 < len(line) && !space(line[at+1]) {
				return nil, 0, false
			}
			return line[from:to:to], at + 1, true
		case quote == '\'' && c == '\\' && at+1 < len(line) && line[at+1] == '\'':
			at++
			put('\'')
		case quote == '"' && c == '\\' && at+3 < len(line) && line[at+1] == 'x' && hex(line[at+2]) >= 0 && hex(line[at+3]) >= 0:
			put(byte(hex(line[at+2])<<4 | hex(line[at+3])))
			at += 3
		case quote == '"' && c == '\\' && at+1 < len(line):
			at++
			put(escaped(line[at]))
		default:
			put(c)
		}
	}
	return line[from:to:to], at, quote == 0
}

func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
