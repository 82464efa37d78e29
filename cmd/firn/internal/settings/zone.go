package settings

import (
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // for machines without time zone files, such as bare containers and Windows

	"github.com/firn-id/firn"
)

const daySeconds = 24 * 60 * 60

// ofTheMachine are names of the zone that a machine is set to.
var ofTheMachine = []string{"local", "localtime", "posixrules"}

// parseOffset parses UTC (or the empty text), or an offset such as +08:00.
func parseOffset(text string) (zone *time.Location, ok bool) {
	if text == "" || text == "UTC" {
		return time.UTC, true
	}
	at, err := time.Parse("-07:00", text)
	_, offset := at.Zone()
	if err != nil || offset <= -daySeconds || offset >= daySeconds {
		return nil, false
	}
	return time.FixedZone("UTC"+text, offset), true
}

// ParseZone parses UTC (or the empty text), an offset such as +08:00, or a name such as Asia/Shanghai. It refuses
// Local, which differs between machines. Errors are a *[firn.SyntaxError].
func ParseZone(text string) (*time.Location, error) {
	if at, ok := parseOffset(text); ok {
		return at, nil
	}
	const wanted = "write UTC, an offset as +08:00, or for numbers a name as Asia/Shanghai"
	if slices.Contains(ofTheMachine, strings.ToLower(text)) {
		return nil, firn.NewSyntaxError("zone", text, wanted+"; it must be the same on all machines")
	}
	at, err := time.LoadLocation(text)
	if err != nil {
		return nil, firn.NewSyntaxError("zone", text, wanted)
	}
	return at, nil
}
