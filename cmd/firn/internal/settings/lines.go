package settings

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// lines knows where the values of a file are. It parses the file once, at the first question: a generated file may have
// the same mistake thousands of times.
type lines struct {
	source []byte
	once   sync.Once
	of     map[string]int // by keys, joined with dots
}

// find returns the line of a key's value or, if it is missing, that of the key above it; 0 if neither is known.
func (l *lines) find(keys []string) int {
	if l == nil {
		return 0
	}
	l.once.Do(l.parse)
	for ; len(keys) > 0; keys = keys[:len(keys)-1] {
		if at := l.of[strings.Join(keys, ".")]; at > 0 {
			return at
		}
	}
	return 0
}

// text returns a line of the file.
func (l *lines) text(line int) []byte {
	all := bytes.Split(l.source, []byte("\n"))
	if line < 1 || line > len(all) {
		return nil
	}
	return all[line-1]
}

func (l *lines) parse() {
	defer func() { _ = recover() }() // as in unmarshal: then the rest of the lines is not known
	l.of = map[string]int{}
	file, err := parser.ParseBytes(l.source, 0)
	if err != nil {
		return
	}
	for _, doc := range file.Docs {
		l.add("", doc.Body)
	}
}

// add adds the values in a node, without those of aliases.
func (l *lines) add(at string, n ast.Node) {
	if n == nil {
		return
	}
	if t := n.GetToken(); at != "" && t != nil && l.of[at] == 0 {
		l.of[at] = t.Position.Line
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			l.addKey(at, v)
		}
	case *ast.MappingValueNode:
		l.addKey(at, n)
	case *ast.SequenceNode:
		for i, v := range n.Values {
			l.add(fmt.Sprintf("%s[%d]", at, i), v)
		}
	case *ast.TagNode:
		l.add(at, n.Value)
	case *ast.AnchorNode:
		l.add(at, n.Value)
	}
}

func (l *lines) addKey(at string, v *ast.MappingValueNode) {
	if at != "" {
		at += "."
	}
	l.add(at+v.Key.GetToken().Value, v.Value)
}
