package zkstore

import (
	"fmt"
	"net/url"
	"strings"
)

// path returns the path of a register. Distinct keys have distinct paths.
func (s *Store) path(key string) string {
	path := s.root
	for segment := range strings.SplitSeq(key, "/") {
		path += "/" + escape(segment)
	}
	return path
}

// empty stands for an empty segment.
const empty = "%"

// escape turns a segment of a key into the name of a znode. It writes as %XX what ZooKeeper refuses in
// names (its PathUtils.validatePath: dots alone, characters beyond UTF-16's first plane or private
// there), "zookeeper", which ZooKeeper uses itself, and the escape character.
func escape(segment string) string {
	switch segment {
	case "":
		return empty
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

// unescape undoes escape; ok is false for names that escape never makes.
func unescape(name string) (segment string, ok bool) {
	if name == empty {
		return "", true
	}
	segment, err := url.PathUnescape(name)
	return segment, err == nil && escape(segment) == name
}
