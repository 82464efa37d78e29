package zkstore

import (
	"fmt"
	"net/url"
	"strings"
)

// path returns where a register is. Distinct keys have distinct paths.
func (s *Store) path(key string) string {
	var b strings.Builder
	b.WriteString(s.root)
	for segment := range strings.SplitSeq(key, "/") {
		b.WriteByte('/')
		b.WriteString(escape(segment))
	}
	return b.String()
}

// nothing stands for what is between two slashes that follow each other.
const nothing = "%"

// escape makes a segment of a key the name of a znode: as it is, but for what
// ZooKeeper does not let be a name (its PathUtils.validatePath): nothing, a dot or
// two, what is beyond UTF-16's first plane or private there, and "zookeeper",
// which is its own at the top. Those, and the escape itself, are written as %XX.
func escape(segment string) string {
	switch segment {
	case "":
		return nothing
	case ".", "..", "zookeeper":
		return fmt.Sprintf("%%%02X%s", segment[0], segment[1:])
	}
	var b strings.Builder
	for _, r := range segment {
		if r != '%' && (r < 0xD800 || r >= 0xF900 && r < 0xFFF0) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescape is the way back; ok is false for names that escape does not make.
func unescape(name string) (segment string, ok bool) {
	if name == nothing {
		return "", true
	}
	segment, err := url.PathUnescape(name)
	return segment, err == nil && escape(segment) == name
}
