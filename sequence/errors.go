package sequence

import (
	"errors"
	"fmt"
	"strings"

	"github.com/firn-id/firn"
)

// The sentinels a caller branches on with [errors.Is]. A store that cannot be
// reached is store.ErrUnavailable, and a call after Close is [firn.ErrClosed].
var (
	// ErrExhausted is matched by every *[ExhaustedError]: the ids asked for do not fit below the maximum.
	ErrExhausted = errors.New("sequence: exhausted")
	// ErrSetBack is matched by every *[SetBackError]: the store has forgotten ids that this process knows of.
	ErrSetBack = errors.New("sequence: set back")
)

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

// A SetBackError reports that the record of a sequence has vanished or lies below what this
// process has seen of it, and that Config.Strict forbids raising it. Nothing was written.
type SetBackError struct {
	Name  string
	Found firn.ID // the last id used, according to the record; 0 without a record
	Known firn.ID // the last id used, as far as this process knows
}

func (e *SetBackError) Error() string {
	return fmt.Sprintf("sequence %q was set back: the store says that %d was the last id used, and this process has seen %d: find the greatest id that anybody received, and raise the sequence to it",
		e.Name, int64(e.Found), int64(e.Known))
}

// Is reports whether target is [ErrSetBack].
func (e *SetBackError) Is(target error) bool { return target == ErrSetBack }
