package settings

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/firn-id/firn"
)

// Bounds of a configuration file. A server follows its file, so a file must not take the memory of the server.
const (
	// maxFile is thousands of namespaces.
	maxFile = 1 << 20
	// maxValues bounds the values with those that aliases repeat: nine lines of nine aliases each are 9^9 values.
	maxValues = 200_000
	// maxEntries bounds the namespaces, the tokens, and each list: the library needs about half a millisecond for each.
	maxEntries = 10_000
	// maxDepth bounds nested values: the YAML library recurses.
	maxDepth = 100
)

// checkSize returns an error for a text that would take much memory or time as a configuration. A text that is not YAML
// is left to the errors of the YAML library.
func checkSize(source []byte) (err error) {
	if n := len(source); n > maxFile {
		return firn.NewRangeError("size of the file in bytes", int64(n), 0, maxFile, "divide the namespaces among several servers")
	}
	if err := checkNesting(source); err != nil { // before the library sees it
		return err
	}
	defer func() {
		if recover() != nil { // as in unmarshal, which reports it
			err = nil
		}
	}()
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		return nil
	}
	s := sizes{anchors: map[string]int{}}
	total := 0
	for _, doc := range file.Docs {
		total = min(total+s.of(doc.Body, 0), maxValues+1)
	}
	switch {
	case s.deep:
		return fmt.Errorf("values are nested more than %d deep", maxDepth)
	case total > maxValues:
		return fmt.Errorf("it has more than %d values with those that aliases (*name) repeat: write the values out, or use fewer aliases", maxValues)
	}
	return nil
}

const (
	// maxFlow bounds open brackets. Texts in quotes may have some too.
	maxFlow = 1000
	// maxLines is room for 10,000 namespaces of five lines each. The library needs time by the square of their number.
	maxLines = 50_000
	// maxDocuments bounds the lines that end a document.
	maxDocuments = 10
	// maxRow bounds the marks between two line ends, commas or brackets.
	maxRow = 200
)

// checkNesting refuses texts for which the YAML library would take memory or time by the square of their length: values
// nest by brackets, and within a line by marks, as in "- - - a", "? ? a", "a: a: a" and "&a &a a". Lines nest by their
// indentation, which takes more text than the library takes memory.
func checkNesting(source []byte) error {
	line, documents, open, row := 1, 0, 0, 0
	ends := func(i int) bool {
		return i < 0 || i >= len(source) || bytes.IndexByte([]byte(" \t\r\n"), source[i]) >= 0
	}
	for i, b := range source {
		switch b {
		case '[', '{':
			open, row = open+1, 0
		case ']', '}':
			open, row = max(0, open-1), 0
		case '\n', '\r':
			if row = 0; b == '\n' || i+1 < len(source) && source[i+1] != '\n' {
				line++
			}
			if rest := source[i+1:]; bytes.HasPrefix(rest, []byte("---")) || bytes.HasPrefix(rest, []byte("...")) {
				documents++
			}
		case ',':
			row = 0
		case '-', '?', ':':
			if ends(i + 1) {
				row++
			}
		case '&', '!', '*':
			if ends(i - 1) {
				row++
			}
		}
		switch {
		case line > maxLines:
			return fmt.Errorf("it has more than %d lines: divide the namespaces among several servers", maxLines)
		case documents > maxDocuments:
			return fmt.Errorf("it has more than %d lines that begin with --- or ...: only one document is read", maxDocuments)
		case open > maxFlow:
			return fmt.Errorf("there are more than %d opening brackets than closing ones", maxFlow)
		case row > maxRow:
			return fmt.Errorf("line %d has more than %d of the marks - ? : & ! * in a row: write lists and settings on lines of their own", line, maxRow)
		}
	}
	return nil
}

// sizes counts values. Anchors has those below each anchor.
type sizes struct {
	anchors map[string]int
	deep    bool
}

// of returns how many values a node stands for, at most maxValues+1.
func (s *sizes) of(n ast.Node, depth int) int {
	if depth > maxDepth {
		s.deep = true
		return 1
	}
	size := 1
	add := func(child ast.Node) { size = min(size+s.of(child, depth+1), maxValues+1) }
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			add(v)
		}
	case *ast.MappingValueNode:
		add(n.Key)
		add(n.Value)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			add(v)
		}
	case *ast.TagNode:
		add(n.Value)
	case *ast.AnchorNode:
		add(n.Value)
		s.anchors[n.Name.String()] = size
	case *ast.AliasNode:
		size = max(1, s.anchors[n.Value.String()])
	}
	return size
}
