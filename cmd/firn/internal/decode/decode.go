// Package decode decodes ids in any text form, for the command line and the server.
package decode

import (
	"errors"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// A Result is a decoded id. 64-bit numbers that may exceed 2^53 are strings in its JSON.
type Result struct {
	ID         firn.ID   `json:"id"`
	Layout     string    `json:"layout"`        // the preset's name, or the textual form
	Time       time.Time `json:"time,omitzero"` // see [Shown]
	Note       string    `json:"note,omitempty"`
	Tick       firn.Tick `json:"tick,string"`
	Datacenter int64     `json:"datacenter"`
	Worker     int64     `json:"worker"`
	Sequence   int64     `json:"sequence"`

	// The encoding of the text, and other encodings that it fits, unless it is one of decimal digits.
	Encoding string    `json:"-"`
	Others   []Reading `json:"other_readings,omitempty"`
}

// plausible is how far ahead the time of an id may be if its encoding was guessed.
const plausible = 366 * 24 * time.Hour

const notAnID = "it is neither a number of 64 bits in decimal, hex, base32, base36, base58, base62, base64, base64url or base2, " +
	"nor a readable id such as 20261120-221503.123-w0017-s0042"

// Text decodes a text as an id of a layout. Encoding is a format that [ParseFormat] reads, or empty. If it is empty,
// Text takes the first encoding that fits and gives a time that is not far in the future.
func Text(text, encoding string, layout firn.Layout, now time.Time) (Result, error) {
	if encoding != "" {
		id, encoding, err := parseAs(text, encoding, layout.ParseReadable)
		if err != nil {
			return Result{}, err
		}
		return ID(id, encoding, layout)
	}
	if negative(text) { // base64 would accept the dash
		_, err := firn.ParseID(text)
		return Result{}, err
	}
	all := readings(text)
	if len(all) == 0 {
		id, err := layout.ParseReadable(text)
		if err == nil {
			return ID(id, readableName, layout)
		}
		if errors.Is(err, firn.ErrRange) {
			return Result{}, err
		}
		if strings.Trim(text, "0123456789") == "" { // too long, or empty
			_, err := firn.ParseID(text)
			return Result{}, err
		}
		return Result{}, firn.NewSyntaxError("id", text, notAnID)
	}
	best := 0
	for i, r := range all {
		if r.plain(text) {
			break
		}
		if p, err := layout.Decompose(r.ID); err == nil && layout.Time(p.Tick).Before(now.Add(plausible)) && p.Tick > 0 {
			best = i
			break
		}
	}
	chosen := all[best]
	result, err := ID(chosen.ID, chosen.Encoding.String(), layout)
	if !chosen.plain(text) {
		result.Others = append(all[:best:best], all[best+1:]...)
	}
	return result, err
}

// negative reports whether text is a negative decimal number.
func negative(text string) bool {
	digits, dash := strings.CutPrefix(text, "-")
	return dash && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// ID decodes an id. Encoding is that of its text.
func ID(id firn.ID, encoding string, layout firn.Layout) (Result, error) {
	p, err := layout.Decompose(id)
	if err != nil {
		return Result{}, err
	}
	at, note := Shown(layout.Time(p.Tick))
	return Result{
		ID: id, Layout: Label(layout), Time: at, Note: note, Tick: p.Tick,
		Datacenter: p.Datacenter, Worker: p.Worker, Sequence: p.Sequence, Encoding: encoding,
	}, nil
}

// Label returns the name of a layout's preset, else its textual form.
func Label(l firn.Layout) string {
	if name := l.Name(); name != "" {
		return name
	}
	return l.String()
}
