package sequence

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

// ErrExhausted is matched by every *[ExhaustedError]: the ids asked for do not fit below the maximum.
var ErrExhausted = errors.New("sequence: exhausted")

// An ExhaustedError reports that a call asked for more ids than are left. The call took no ids.
type ExhaustedError struct {
	Name  string  // the sequence
	Want  int64   // how many ids were asked for
	Left  int64   // how many there were
	Max   firn.ID // the greatest id allowed: Config.Max, or the end of a block
	Block int64   // the length of the block that ends at Max; 0 if Max is Config.Max
}

func (e *ExhaustedError) Error() string {
	where := ""
	var ways []string
	if e.Left > 0 {
		ways = append(ways, "ask for fewer")
	}
	if e.Block > 0 {
		where = fmt.Sprintf(", where a block of %d ends", e.Block)
		ways = append(ways, "go on in a later block")
	} else {
		if e.Max < firn.MaxID {
			ways = append(ways, fmt.Sprintf("raise Max (at most %d), unless a veil ends there", int64(firn.MaxID)))
		}
		ways = append(ways, "use another name")
	}
	return fmt.Sprintf("sequence %q has %d ids left up to %d%s, not %d: %s",
		e.Name, e.Left, int64(e.Max), where, e.Want, strings.Join(ways, ", or "))
}

// Is reports whether target is [ErrExhausted].
func (e *ExhaustedError) Is(target error) bool { return target == ErrExhausted }
