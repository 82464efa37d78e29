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

// What a sequence keeps in the store is one small readable record:
//
//	firn/sequence/NAME  {"last":"1042","by":"9f86d081884c7d65","write":17,"at":"2026-11-21T09:00:00Z"}
//
// Last is a string, since some tools lose integers above 2^53. By and Write together are never
// written twice, so equal bytes are the same write: one whose outcome is unknown is found again.
type record struct {
	Last  string    `json:"last"`
	By    string    `json:"by"`    // the random token of the process that wrote it
	Write uint64    `json:"write"` // counts the writes of that process
	At    time.Time `json:"at"`    // its clock at this write, for operators
}

// decode returns what a record says was used last, and who wrote it.
func decode(e store.Entry) (last int64, by string, err error) {
	var r record
	if err = json.Unmarshal(e.Value, &r); err == nil {
		number, wrong := strconv.ParseUint(r.Last, 10, 63)
		if wrong == nil {
			return int64(number), r.By, nil
		}
		err = firn.NewSyntaxError("last", r.Last, fmt.Sprintf("it is a number in quotes, 0 to %d", firn.MaxID))
	}
	return 0, "", register.Foreign(e.Key, "name", err)
}
