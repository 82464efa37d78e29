package sequence

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/register"
)

// A sequence keeps one small readable record in the store, under [register.CounterKey]:
//
//	firn/counter:NAME  {"kind":"sequence","form":"plain","last":"1042","by":"9f86d081884c7d65","write":17,"at":"2026-11-21T09:00:00Z"}
//
// Last is a string, since some tools lose integers above 2^53. No two writes have the same By and
// Write, so equal bytes are the same write: a write whose outcome is unknown can be recognised.
type record struct {
	register.Use
	Last  string    `json:"last"`
	By    string    `json:"by"`    // the random token of the process that wrote it
	Write uint64    `json:"write"` // counts the writes of that process
	At    time.Time `json:"at"`    // its clock at this write, for operators
}

const kind = "sequence"

// decode reads the record of name for a use. It returns the last id used, who wrote the record, and the use of
// the next write. Errors: [store.ErrForeign], *[store.TakenError].
func decode(name string, e store.Entry, use *register.Use) (last int64, by string, next *register.Use, err error) {
	var r record
	if err = json.Unmarshal(e.Value, &r); err == nil {
		err = r.Check()
	}
	if err == nil {
		if next, err = use.Over(name, r.Use); err != nil {
			return 0, "", nil, err
		}
		number, wrong := strconv.ParseUint(r.Last, 10, 63)
		if wrong == nil {
			return int64(number), r.By, next, nil
		}
		err = firn.NewSyntaxError("last id", r.Last, fmt.Sprintf("it is a number in quotes, 0 to %d", firn.MaxID))
	}
	return 0, "", nil, register.Foreign(e.Key, "name", err)
}
