package respapi

// This file parses commands, and reply.go writes replies. Both work in memory, do no I/O, and do not allocate per command.

import (
	"bytes"
	"fmt"
	"strings"
)

// commandLimits bounds a command. All fields must be set: 0 allows nothing.
type commandLimits struct {
	args    int // arguments of a command, including its name
	bulk    int // bytes of an argument
	command int // bytes of a whole command, and so of the reader's buffer
}

// A protocolError reports malformed input. The connection must be closed, because the next
// command cannot be found.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// The errors, in the words of Redis.
const (
	errCount      protocolError = "invalid multibulk length"
	errBulk       protocolError = "invalid bulk length"
	errEnd        protocolError = "expected CRLF after bulk"
	errInline     protocolError = "too big inline request"
	errUnbalanced protocolError = "unbalanced quotes in request"
	errBig        protocolError = "too big request"
)

// maxNumber bounds the bytes of a length with its line break. It is more than any number within
// the limits needs.
const maxNumber = 24

// A parser parses commands at the front of a growing buffer. The zero parser is ready to use.
// After reset it may be used for another connection.
type parser struct {
	args  [][]byte
	spans []span
	pos   int // bytes of an incomplete command that are parsed
	left  int // arguments of it that are still missing; 0 before the count is parsed
}

// A span is the position of an argument from the front of its command. It is not a slice, because
// the buffer may move before the command is complete.
type span struct{ from, to int }

// reset forgets an unfinished command.
func (p *parser) reset() { p.pos, p.left, p.spans = 0, 0, p.spans[:0] }

// parse parses one command at the front of buf. It returns the arguments, and the bytes that the
// command takes. If n is 0, the command is incomplete: call parse again with the same bytes and
// more after them; it continues where it stopped. An empty command has no arguments, and is not
// an error.
//
// The arguments are slices of buf, valid until the next call. parse removes the quotes of an
// inline command in place.
func (p *parser) parse(buf []byte, limits commandLimits) (args [][]byte, n int, err error) {
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
		if count > int64(limits.args) {
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
	p.reset()
	return p.args, n, nil
}

// bulk parses an argument and reports whether it is complete.
func (p *parser) bulk(buf []byte, limits commandLimits) (done bool, err error) {
	if p.pos >= len(buf) {
		return false, nil
	}
	if c := buf[p.pos]; c != '$' {
		return false, protocolError(fmt.Sprintf("expected '$', got '%c'", printable(c)))
	}
	length, from, err := number(buf, p.pos+1, errBulk)
	switch {
	case err != nil:
		return false, err
	case from == 0:
		return false, nil
	case length < 0 || length > int64(limits.bulk):
		return false, errBulk
	}
	to := from + int(length)
	if to+2 > limits.command {
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

// number parses a line with a number. Next is where the next line begins, or 0 if the line is
// incomplete.
func number(buf []byte, from int, wrong protocolError) (v int64, next int, err error) {
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
		v, ok := parseInt(buf[from:at])
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

// parseInt parses a decimal number as Redis does: no plus sign, leading zeros or spaces are allowed.
func parseInt(text []byte) (v int64, ok bool) {
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
		return -int64(u), true // correct for 1<<63 too: the conversion yields the least int64, and so does its negation
	case !negative && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}

// inline parses an inline command, as typed in telnet: words separated by spaces.
func (p *parser) inline(buf []byte, limits commandLimits) (args [][]byte, n int, err error) {
	end := bytes.IndexByte(buf[p.pos:], '\n')
	if end < 0 {
		p.pos = len(buf)
		if len(buf) >= limits.command {
			return nil, 0, errInline
		}
		return nil, 0, nil
	}
	end += p.pos
	p.pos = 0
	if end >= limits.command {
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
		if len(p.args) == limits.args {
			return nil, 0, errCount
		}
		if len(word) > limits.bulk {
			return nil, 0, errBulk
		}
		p.args = append(p.args, word)
		at = next
	}
}

// space reports whether c separates words. A zero byte does; in Redis it ends the line.
func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0 }

// unquote removes the quotes and escapes of the word at from. It works in place, because a word
// never grows.
func unquote(line []byte, from int) (word []byte, next int, ok bool) {
	var quote byte // the open quote; 0 outside quotes
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
			// A closing quote must end the word.
			if at+1 < len(line) && !space(line[at+1]) {
				return nil, 0, false
			}
			return line[from:to:to], at + 1, true
		case quote == '\'' && c == '\\' && at+1 < len(line) && line[at+1] == '\'':
			at++
			put('\'')
		case quote == '"' && c == '\\' && at+3 < len(line) && line[at+1] == 'x' && hexDigit(line[at+2]) >= 0 && hexDigit(line[at+3]) >= 0:
			put(byte(hexDigit(line[at+2])<<4 | hexDigit(line[at+3])))
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
	if at := strings.IndexByte("nrtba", c); at >= 0 {
		return "\n\r\t\b\a"[at]
	}
	return c
}

func hexDigit(c byte) int {
	at := strings.IndexByte("0123456789abcdefABCDEF", c)
	if at > 15 {
		at -= 6
	}
	return at
}
