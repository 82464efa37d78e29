package resp

import "strconv"

// A Version is that of the protocol in which replies are written.
type Version int

// The versions.
const (
	V2 Version = 2
	V3 Version = 3
)

// maxError bounds what an error says.
const maxError = 1024

// AppendInt appends an integer.
func AppendInt(b []byte, v int64) []byte {
	return line(strconv.AppendInt(append(b, ':'), v, 10))
}

// AppendSimple appends a short text without line ends, as OK.
func AppendSimple(b []byte, text string) []byte {
	return line(append(append(b, '+'), text...))
}

// AppendError appends an error, whose text begins with its kind, as "ERR ". Ends of
// lines in it become spaces, and what is too long is cut off.
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

// AppendMap begins n pairs of name and value, which follow: as RESP2 has no maps, an
// array there.
func AppendMap(b []byte, v Version, n int) []byte {
	if v == V3 {
		return length(b, '%', n)
	}
	return length(b, '*', 2*n)
}

// AppendSet begins a set of n replies, which follow.
func AppendSet(b []byte, v Version, n int) []byte {
	if v == V3 {
		return length(b, '~', n)
	}
	return length(b, '*', n)
}

// AppendNull appends nothing, as a reply.
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
