package settings

import (
	"errors"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/numbering"
	"github.com/firn-id/firn/store"
)

// numbers makes texts with a date and a counter, by a template.
var numbers = &Kind{
	Name: "number", Source: Template, fixed: []string{"template", "zone"}, settings: []any{Counted{}, Dated{}, Number{}},
	Makes: func(n Namespace) string { return "numbers like " + n.Template },
	Read: func(n Namespace) (func(string) (decode.Contents, error), error) {
		_, format, err := n.NumberFormat()
		return func(text string) (decode.Contents, error) { return readNumber(text, format) }, err
	},
	check: func(n Namespace, found Mistakes) { n.number(found) },
}

// Number has the settings of business numbers.
type Number struct {
	Template string `yaml:"template" required:"true" flag:"template" example:"ORD{yyyyMMdd}-{n:6}" help:"format of the numbers, such as ORD{yyyyMMdd}-{n:6}; they restart each year, month or day in it; required"`
}

// NumberFormat returns the configuration of a number without its counter, and a format that answers questions but
// makes no numbers.
func (n Namespace) NumberFormat() (numbering.Config, *numbering.Format, error) {
	found := Mistakes{}
	cfg, format := n.number(found)
	return cfg, format, found.Join()
}

func (n Namespace) number(found Mistakes) (cfg numbering.Config, format *numbering.Format) {
	cfg = numbering.Config{Template: n.Template, Start: int64(n.filled().From), Time: firn.SystemTime()}
	cfg.Zone, found["zone"] = ParseZone(n.Zone)
	check := cfg
	check.Counter = uncounted{}
	var err error
	format, err = numbering.New(check)
	if outside, ok := errors.AsType[*firn.RangeError](err); ok && outside.Field == "Start" {
		found["from"] = err
	} else {
		found["template"] = err
	}
	return cfg, format
}

// uncounted is in the place of a counter that is not asked for ids.
type uncounted struct{ numbering.Counter }

func (uncounted) Declare(string) error { return nil }
func (uncounted) Clock() store.Clock   { return nil }

func readNumber(text string, format *numbering.Format) (decode.Contents, error) {
	n, err := format.Parse(text)
	if err != nil {
		return decode.Contents{}, err
	}
	c := decode.Contents{Kind: "number", Fields: []decode.Field{{Name: "id", Value: text}, {Name: "template", Value: format.String()}}}
	if period := format.Period(); period != "" {
		c.Fields = append(c.Fields, decode.Field{Name: "period", Value: period}, decode.Field{Name: "begins", Value: n.Begins})
	}
	c.Fields = append(c.Fields, decode.Field{Name: "number", Value: n.N})
	return c, nil
}
