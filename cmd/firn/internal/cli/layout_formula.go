package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// A formula has the expressions that take ids of a layout apart in another language. They are about the number id and,
// in smallest and largest, about the moment t.
type formula struct {
	parts             []namedExpression // the time, then the fields from high to low
	smallest, largest string
}

type namedExpression struct{ name, text string }

// A language writes formulas.
type language struct {
	finest time.Duration        // what its times count
	number func(n int64) string // a literal
	time   func(l firn.Layout, tick string) string
	tick   func(l firn.Layout) string // of t; a factor or a quotient, so that it can be multiplied
	print  func(out io.Writer, about string, f formula, t time.Time)
}

// languages has the values of --formula.
var languages = map[string]language{
	"mysql": {
		finest: time.Microsecond, number: decimal,
		time: func(l firn.Layout, tick string) string {
			return fmt.Sprintf("TIMESTAMPADD(MICROSECOND, %s, %s)", scaled(tick, " * ", l.Unit()/time.Microsecond, decimal), mysqlTime(l.Epoch()))
		},
		tick: func(l firn.Layout) string {
			return scaled(fmt.Sprintf("TIMESTAMPDIFF(MICROSECOND, %s, t)", mysqlTime(l.Epoch())), " DIV ", l.Unit()/time.Microsecond, decimal)
		},
		print: func(out io.Writer, about string, f formula, t time.Time) {
			printSQL(out, about+" Times are in UTC.", f, mysqlTime(t))
		},
	},
	"postgres": {
		finest: time.Microsecond, number: decimal,
		time: func(l firn.Layout, tick string) string {
			return fmt.Sprintf("%s + %s * INTERVAL '%d microseconds'", postgresTime(l.Epoch()), tick, l.Unit()/time.Microsecond)
		},
		tick: func(l firn.Layout) string {
			return scaled(fmt.Sprintf("round(extract(epoch FROM t - %s) * 1000000)::bigint", postgresTime(l.Epoch())), " / ", l.Unit()/time.Microsecond, decimal)
		},
		print: func(out io.Writer, about string, f formula, t time.Time) { printSQL(out, about, f, postgresTime(t)) },
	},
	"js": {
		finest: time.Millisecond, number: bigInt,
		time: func(l firn.Layout, tick string) string {
			return fmt.Sprintf("new Date(Number(%s + %s))", scaled(tick, " * ", l.Unit()/time.Millisecond, bigInt), bigInt(l.Epoch().UnixMilli()))
		},
		tick: func(l firn.Layout) string {
			return scaled(fmt.Sprintf("(BigInt(t.getTime()) - %s)", bigInt(l.Epoch().UnixMilli())), " / ", l.Unit()/time.Millisecond, bigInt)
		},
		print: printJS,
	},
}

func languageNames() []string { return slices.Sorted(maps.Keys(languages)) }

// formulaOf returns the formula of a layout in a language.
func formulaOf(l firn.Layout, name string) (language, formula, error) {
	in, ok := languages[name]
	if !ok {
		return in, formula{}, firn.NewSyntaxError("formula", name, failure.List(languageNames(), "and")+" are allowed")
	}
	if l.Unit()%in.finest != 0 || l.Epoch().UnixNano()%int64(in.finest) != 0 {
		return in, formula{}, firn.NewSyntaxError("formula", name, fmt.Sprintf("its times have a resolution of %v, but not the unit or the epoch of layout %s: "+
			"firn decode and the server decode such ids", in.finest, describe(l)))
	}
	below := 0 // how many bits are below a field
	shifted := func() string {
		if below == 0 {
			return "id"
		}
		return "id >> " + in.number(int64(below))
	}
	var f formula
	for _, field := range slices.Backward(fields(l, decode.Result{})[1:]) { // the first is the time
		f.parts = append(f.parts, namedExpression{field.name, inner(shifted()) + " & " + in.number(1<<field.width-1)})
		below += field.width
	}
	f.parts = append(f.parts, namedExpression{"tick", shifted()}, namedExpression{"time", in.time(l, inner(shifted()))})
	slices.Reverse(f.parts)
	f.smallest = in.tick(l)
	f.largest = f.smallest
	if below > 0 {
		f.smallest += " * " + in.number(1<<below)
		f.largest = f.smallest + " + " + in.number(1<<below-1)
	}
	return in, f, nil
}

// byName returns the expressions, for JSON.
func (f formula) byName() map[string]string {
	all := map[string]string{"smallest": f.smallest, "largest": f.largest}
	for _, p := range f.parts {
		all[p.name] = p.text
	}
	return all
}

// inner returns an expression as a part of another: languages rank >> and & differently.
func inner(text string) string {
	if text == "id" {
		return text
	}
	return "(" + text + ")"
}

func decimal(n int64) string { return fmt.Sprint(n) }

func bigInt(n int64) string { return fmt.Sprintf("%dn", n) }

// scaled returns an expression multiplied or divided by a number.
func scaled(text, operator string, by time.Duration, number func(int64) string) string {
	if by == 1 {
		return text
	}
	return text + operator + number(int64(by))
}

func mysqlTime(t time.Time) string { return t.UTC().Format("TIMESTAMP'2006-01-02 15:04:05.999999'") }

func postgresTime(t time.Time) string {
	return t.UTC().Format("TIMESTAMPTZ'2006-01-02 15:04:05.999999+00'")
}

func printSQL(out io.Writer, about string, f formula, t string) {
	fmt.Fprintf(out, "-- %s\n-- Write your table for orders and its column for id.\nSELECT id", about)
	for _, p := range f.parts {
		fmt.Fprintf(out, ",\n  %s AS %s", p.text, p.name)
	}
	fmt.Fprintf(out, "\nFROM orders;\n\n"+
		"-- The smallest and the largest id of the moment t. The ids of a span of time are those\n"+
		"-- from smallest of its beginning to below smallest of its end.\n"+
		"SELECT\n  %s AS smallest,\n  %s AS largest\nFROM (SELECT %s AS t) AS moment;\n", f.smallest, f.largest, t)
}

func printJS(out io.Writer, about string, f formula, _ time.Time) {
	fmt.Fprintf(out, "// %s\n// An id is a BigInt, as in BigInt('1541815603606036480'): a Number loses ids above 2^53.\nconst parts = id => ({\n", about)
	for _, p := range f.parts {
		fmt.Fprintf(out, "  %s: %s,\n", p.name, p.text)
	}
	fmt.Fprintf(out, "})\n\n"+
		"// The smallest and the largest id of the moment t, a Date. The ids of a span of time are those\n"+
		"// from smallest(its beginning) to below smallest(its end).\n"+
		"const smallest = t => %s\nconst largest = t => %s\n", f.smallest, f.largest)
}
