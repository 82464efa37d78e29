package settings

import "fmt"

// A Verb is a way to ask for ids that not all namespaces allow, in whatever protocol.
type Verb int

// The verbs.
const (
	Single Verb = iota // single ids, as numbers
	Row                // consecutive ids, of which only the last is answered
	Range              // a range that the client hands out itself, with its stride
	// CounterRange is a range of a length that the client chooses, taken from the counter in the store. The client
	// computes the first id from the last.
	CounterRange
)

// Lacks returns "" if the ids can be asked for so, and otherwise what they are: "of kind segment and veiled".
func (n Namespace) Lacks(v Verb) string {
	k := n.Of()
	counted := k.Source == Ranges || k.Source == Counter && v != CounterRange
	also := ""
	switch {
	case !k.Numeric, v != Single && !counted:
	case n.Prefix != "":
		also = " and written with a prefix"
	case v == Single:
		return ""
	case n.Veil != nil:
		also = " and veiled"
	case n.Stride > 1 && v != Range:
		also = fmt.Sprintf(" and %d apart", n.Stride)
	default:
		return ""
	}
	return "of kind " + k.Name + also
}
