package settings

import (
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
	// maxDepth bounds nested values: the YAML library recurses.
	maxDepth = 100
)

// checkSize returns an error for a text that would take much memory or time as a configuration. A text that is not YAML
// is left to the errors of the YAML library.
func checkSize(source []byte) (err error) {
	if n := len(source); n > maxFile {
		return firn.NewRangeError("size of the file in bytes", int64(n), 0, maxFile, "divide the namespaces among several servers")
	}
	depth := 0
	for _, b := range source { // before the library sees it
		switch b {
		case '[', '{':
			if depth++; depth > maxFlow {
				return fmt.Errorf("there are more than %d opening brackets than closing ones", maxFlow)
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
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

// maxFlow bounds open brackets. Texts in quotes may have some too.
const maxFlow = 1000

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
