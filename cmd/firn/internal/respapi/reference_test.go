package respapi

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// limits are small, so that short inputs reach them.
var limits = commandLimits{args: 5, bulk: 40, command: 100}

// errProtocol stands for any protocol error in the reference.
var errProtocol = errors.New("protocol error")

var (
	countLine = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,18})\r\n`)
	bulkLine  = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})\r\n`)
)

// reference parses all commands of a complete stream, in the most obvious way. It returns them,
// and the error that ends the stream. A stream that ends within a command is not an error.
func reference(stream string) (commands [][]string, err error) {
	for stream != "" {
		args, n, err := referenceOne(stream)
		if err != nil || n == 0 {
			return commands, err
		}
		if len(args) > 0 {
			commands = append(commands, args)
		}
		stream = stream[n:]
	}
	return commands, nil
}

func referenceOne(s string) (args []string, n int, err error) {
	if s[0] != '*' {
		return referenceInline(s)
	}
	count, n, err := referenceLine(countLine, s[1:])
	if n == 0 || err != nil {
		return nil, 0, err
	}
	n++
	if count <= 0 {
		return nil, n, nil
	}
	if count > int64(limits.args) {
		return nil, 0, errProtocol
	}
	for range count {
		if n == len(s) {
			return nil, 0, nil
		}
		if s[n] != '$' {
			return nil, 0, errProtocol
		}
		n++
		length, header, err := referenceLine(bulkLine, s[n:])
		if header == 0 || err != nil {
			return nil, 0, err
		}
		n += header
		if length > int64(limits.bulk) || n+int(length)+2 > limits.command {
			return nil, 0, errProtocol
		}
		if n+int(length)+2 > len(s) {
			return nil, 0, nil
		}
		text, end := s[n:n+int(length)], s[n+int(length):n+int(length)+2]
		if end != "\r\n" {
			return nil, 0, errProtocol
		}
		args = append(args, text)
		n += int(length) + 2
	}
	return args, n, nil
}

// referenceLine matches a line with a number; n is 0 if the line is incomplete.
func referenceLine(form *regexp.Regexp, s string) (v int64, n int, err error) {
	if m := form.FindStringSubmatch(s); m != nil {
		v, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return 0, 0, errProtocol
		}
		return v, len(m[0]), nil
	}
	if at := strings.IndexByte(s, '\r'); at >= 0 && at < 24 && at+1 < len(s) || len(s) >= 24 && (at < 0 || at >= 24) {
		return 0, 0, errProtocol
	}
	return 0, 0, nil
}

var (
	blank  = `[\x00 \t\n\v\f\r]`
	quoted = regexp.MustCompile(`^(?s:((?:[^\x00 \t\n\v\f\r"'])*)(?:"((?:[^"\\]|\\.)*)"|'((?:[^']*\\')*(?:[^']*[^'\\])?)')?)`)
	spaces = regexp.MustCompile(`^` + blank + `*`)
	escape = regexp.MustCompile(`(?s)\\(x[0-9a-fA-F]{2}|.)`)
)

func referenceInline(s string) (args []string, n int, err error) {
	at := strings.IndexByte(s, '\n')
	if at < 0 {
		if len(s) >= limits.command {
			return nil, 0, errProtocol
		}
		return nil, 0, nil
	}
	if at >= limits.command {
		return nil, 0, errProtocol
	}
	rest := strings.TrimSuffix(s[:at], "\r")
	for {
		rest = rest[len(spaces.FindString(rest)):]
		if rest == "" {
			return args, at + 1, nil
		}
		m := quoted.FindStringSubmatchIndex(rest)
		word := rest[m[2]:m[3]]
		switch {
		case m[4] >= 0:
			word += escape.ReplaceAllStringFunc(rest[m[4]:m[5]], unescape)
		case m[6] >= 0:
			word += strings.ReplaceAll(rest[m[6]:m[7]], `\'`, `'`)
		}
		rest = rest[m[1]:]
		if rest != "" && !strings.ContainsRune("\x00 \t\n\v\f\r", rune(rest[0])) {
			return nil, 0, errProtocol // an open quote, or text after a closing one
		}
		if len(args) == limits.args || len(word) > limits.bulk {
			return nil, 0, errProtocol
		}
		args = append(args, word)
	}
}

func unescape(s string) string {
	switch {
	case len(s) == 4:
		v, err := strconv.ParseUint(s[2:], 16, 8)
		if err != nil {
			return s
		}
		return string([]byte{byte(v)})
	case strings.ContainsAny(s[1:], "nrtba"):
		return map[string]string{"n": "\n", "r": "\r", "t": "\t", "b": "\b", "a": "\a"}[s[1:]]
	}
	return s[1:]
}

// parse parses a stream that arrives in pieces, as a server does. Its results must equal those of
// reference.
func parse(stream []byte, piece func() int) (commands [][]string, err error) {
	var p parser
	var buf []byte
	for len(stream) > 0 {
		n := min(max(piece(), 1), len(stream))
		buf = append(bytes.Clone(buf), stream[:n]...) // it moves each time
		stream = stream[n:]
		for {
			args, n, err := p.parse(buf, limits)
			if err != nil {
				return commands, err
			}
			if n == 0 {
				break
			}
			if len(args) > 0 {
				var copied []string
				for _, a := range args {
					copied = append(copied, string(a))
				}
				commands = append(commands, copied)
			}
			buf = buf[n:]
		}
	}
	return commands, nil
}
