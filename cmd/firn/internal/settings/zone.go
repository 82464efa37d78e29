package settings

import (
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for machines without zones: a bare container, Windows

	"github.com/firn-id/firn"
)

const daySeconds = 24 * 60 * 60

// ofTheMachine are the names of whatever zone a machine is set to.
var ofTheMachine = []string{"local", "localtime", "posixrules"}

// ParseZone reads UTC, which the empty text is too, an offset as +08:00, or the name of a
// zone as Asia/Shanghai. Local is refused, since it is not the same on all machines.
// Errors are a *[firn.SyntaxError].
func ParseZone(text string) (*time.Location, error) {
	if text == "" {
		return time.UTC, nil
	}
	if at, err := time.Parse("-07:00", text); err == nil {
		if _, offset := at.Zone(); -daySeconds < offset && offset < daySeconds {
			return time.FixedZone("UTC"+text, offset), nil
		}
	}
	const wanted = "write UTC, an offset as +08:00, or a name as Asia/Shanghai"
	if slices.Contains(ofTheMachine, strings.ToLower(text)) {
		return nil, firn.NewSyntaxError("zone", text, wanted+"; it must be the same on all machines")
	}
	at, err := time.LoadLocation(text)
	if err != nil {
		return nil, firn.NewSyntaxError("zone", text, wanted)
	}
	return at, nil
}
