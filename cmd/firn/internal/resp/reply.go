package resp

import "strconv"

// A Version is a version of the protocol for replies.
type Version int

// The versions RESP2 and RESP3.
const (
	V2 Version = 2
	V3 Version = 3
)

// maxError bounds the text of an error, in bytes.
const maxError = 1024

// AppendInt appends an integer.
func AppendInt(b []byte, v int64) []byte {
	return line(strconv.AppendInt(append(b, ':'), v, 10))
}

// AppendSimple appends a short text without line breaks, such as OK.
func AppendSimple(b []byte, text string) []byte {
	return line(append(append(b, '+'), text...))
}

// AppendError appends an error, whose text must begin with its kind, such as "ERR ". It replaces
// line breaks by spaces, and cuts a long text.
func AppendError(b []byte, text string) []byte {
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

// AppendBulk appends any text.
func AppendBulk[T ~string | ~[]byte](b []byte, text T) []byte {
	b = length(b, '$', len(text))
	return line(append(b, text...))
}

// AppendArray begins an array of n replies, which follow.
func AppendArray(b []byte, n int) []byte { return length(b, '*', n) }

// AppendMap begins a map of n pairs of name and value, which follow. RESP2 has no maps; there it
// is an array.
func AppendMap(b []byte, v Version, n int) []byte {
	if v == V3 {
		return length(b, '%', n)
	}
	return length(b, '*', 2*n)
}

// AppendSet begins a set of n replies, which follow. In RESP2 it is an array.
func AppendSet(b []byte, v Version, n int) []byte {
	if v == V3 {
		return length(b, '~', n)
	}
	return length(b, '*', n)
}

// AppendNull appends the null reply.
func AppendNull(b []byte, v Version) []byte {
	if v == V3 {
		return append(b, "_\r\n"...)
	}
	return append(b, "$-1\r\n"...)
}

func length(b []byte, kind byte, n int) []byte {
	return line(strconv.AppendInt(append(b, kind), int64(n), 10))
}

func line(b []byte) []byte { return append(b, '\r', '\n') }
