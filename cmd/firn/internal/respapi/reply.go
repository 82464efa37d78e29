package respapi

import "strconv"

// A protocol is a version of the protocol for replies.
type protocol int

// The versions RESP2 and RESP3.
const (
	resp2 protocol = 2
	resp3 protocol = 3
)

// maxError bounds the text of an error, in bytes.
const maxError = 1024

// appendInt appends an integer.
func appendInt(b []byte, v int64) []byte {
	return line(strconv.AppendInt(append(b, ':'), v, 10))
}

// appendSimple appends a short text without line breaks, such as OK.
func appendSimple(b []byte, text string) []byte {
	return line(append(append(b, '+'), text...))
}

// appendError appends an error, whose text must begin with its kind, such as "ERR ". It replaces
// line breaks by spaces, and cuts a long text.
func appendError(b []byte, text string) []byte {
	b = append(b, '-')
	for i := range min(len(text), maxError) {
		if c := text[i]; c == '\r' || c == '\n' {
			b = append(b, ' ')
		} else {
			b = append(b, c)
		}
	}
	return line(b)
}

// appendBulk appends any text.
func appendBulk[T ~string | ~[]byte](b []byte, text T) []byte {
	b = length(b, '$', len(text))
	return line(append(b, text...))
}

// appendArray begins an array of n replies, which follow.
func appendArray(b []byte, n int) []byte { return length(b, '*', n) }

// appendMap begins a map of n pairs of name and value, which follow. RESP2 has no maps; there it
// is an array.
func appendMap(b []byte, v protocol, n int) []byte {
	if v == resp3 {
		return length(b, '%', n)
	}
	return length(b, '*', 2*n)
}

// appendSet begins a set of n replies, which follow. In RESP2 it is an array.
func appendSet(b []byte, v protocol, n int) []byte {
	if v == resp3 {
		return length(b, '~', n)
	}
	return length(b, '*', n)
}

// appendNull appends the null reply.
func appendNull(b []byte, v protocol) []byte {
	if v == resp3 {
		return append(b, "_\r\n"...)
	}
	return append(b, "$-1\r\n"...)
}

func length(b []byte, kind byte, n int) []byte {
	return line(strconv.AppendInt(append(b, kind), int64(n), 10))
}

func line(b []byte) []byte { return append(b, '\r', '\n') }
