package settings

import (
	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/serial"
)

// serials makes texts that begin with the time, from the numbers of a leased generator.
var serials = &Kind{
	Name: "serial", Source: Generator, Help: "32 digits that begin with the time",
	// One zone's time an hour ago is another's now. A number with a check digit has the digits of a ten times larger number without.
	fixed: []string{"pool", "zone", "check"}, settings: []any{Pooled{}, Serial{}, Dated{}, Prefixed{}},
	Format: func(n Namespace) (func(firn.ID) (string, error), error) {
		f, err := n.SerialFormat()
		if err != nil {
			return nil, err
		}
		return f.Text, nil
	},
	Makes: func(n Namespace) string {
		f, err := n.SerialFormat()
		if err != nil {
			return "serials"
		}
		return "serials like " + f.String()
	},
	Read: func(n Namespace) (func(string) (decode.Contents, error), error) {
		f, err := n.SerialFormat()
		return func(text string) (decode.Contents, error) {
			c, err := decode.Serial(text, f)
			return c.With(n.verified()...), err
		}, err
	},
	check: func(n Namespace, found Mistakes) {
		n.checkLease(found)
		n.serial(found)
	},
}

// Serial has the settings of serials.
type Serial struct {
	Width int    `yaml:"width" flag:"width" default:"32" help:"how many characters, prefix and check included"`
	Check string `yaml:"check" flag:"check" default:"none" allowed:"none, luhn, mod97" help:"check digits at the end: none, luhn (one) or mod97 (two, ISO 7064)"`
}

// SerialFormat returns how serials are written.
func (n Namespace) SerialFormat() (*serial.Format, error) {
	found := Mistakes{}
	f := n.serial(found)
	return f, found.Join()
}

func (n Namespace) serial(found Mistakes) *serial.Format {
	n = n.filled()
	cfg := serial.Config{Layout: n.layout(found), Width: n.Width, Prefix: n.Prefix}
	cfg.Check, found["check"] = serial.ParseCheck(n.Check)
	var ok bool
	if cfg.Zone, ok = parseOffset(n.Zone); !ok {
		found["zone"] = firn.NewSyntaxError("zone of serials", n.Zone,
			"use UTC or one offset, such as +08:00: that of a name can change, or differ between machines, which would repeat serials")
	}
	f, err := serial.New(cfg)
	found.place(n.Of(), err)
	return f
}

// verified returns what a serial that could be read was checked for.
func (n Namespace) verified() (fields []decode.Field) {
	n = n.filled()
	if n.Prefix != "" {
		fields = append(fields, decode.Prefix(n.Prefix))
	}
	if n.Check != serial.NoCheck.String() {
		fields = append(fields, decode.Field{Name: "check", Value: n.Check})
	}
	return fields
}
