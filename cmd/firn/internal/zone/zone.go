// Package zone reads time zones as people write them.
package zone

import (
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// Parse reads UTC, which the empty text is too, an offset as +08:00, or the name of a
// zone as Asia/Shanghai. Local is refused, since it is not the same on all machines.
// Errors are a *[firn.SyntaxError].
func Parse(text string) (*time.Location, error) {
	if text == "" {
		return time.UTC, nil
	}
	if at, err := time.Parse("-07:00", text); err == nil {
		_, offset := at.Zone()
		return time.FixedZone("UTC"+text, offset), nil
	}
	const wanted = "write UTC, an offset as +08:00, or a name as Asia/Shanghai"
	if strings.EqualFold(text, "local") {
		return nil, firn.NewSyntaxError("zone", text, wanted+"; it must be the same on all machines")
	}
	at, err := time.LoadLocation(text)
	if err != nil {
		return nil, firn.NewSyntaxError("zone", text, wanted)
	}
	return at, nil
}
