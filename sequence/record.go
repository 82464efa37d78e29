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

// A sequence keeps one small readable record in the store:
//
//	firn/sequence/NAME  {"last":"1042","by":"9f86d081884c7d65","write":17,"at":"2026-11-21T09:00:00Z"}
//
// Last is a string, since some tools lose integers above 2^53. No two writes have the same By and
// Write, so equal bytes are the same write: a write whose outcome is unknown can be recognised.
type record struct {
	Last  string    `json:"last"`
	By    string    `json:"by"`    // the random token of the process that wrote it
	Write uint64    `json:"write"` // counts the writes of that process
	At    time.Time `json:"at"`    // its clock at this write, for operators
}

// decode returns the last id used according to a record, and who wrote the record.
func decode(e store.Entry) (last int64, by string, err error) {
	var r record
	if err = json.Unmarshal(e.Value, &r); err == nil {
		number, wrong := strconv.ParseUint(r.Last, 10, 63)
		if wrong == nil {
			return int64(number), r.By, nil
		}
		err = firn.NewSyntaxError("last id", r.Last, fmt.Sprintf("it is a number in quotes, 0 to %d", firn.MaxID))
	}
	return 0, "", register.Foreign(e.Key, "name", err)
}
