package cli

import (
	"strings"
	"testing"
)

func TestColumnsAreAlignedByTheWidthThatATerminalShows(t *testing.T) {
	rows := [][]string{{"NAME", "NEXT"}, {"orders", "1"}, {"订单号码", "2"}, {"e\u0301te", "3"}, {"ｗｉｄｅ", "4"}, {"", "5"}, {palette(true).paint(red, "rot"), "6"}}
	var out strings.Builder
	if err := writeTable(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := "NAME      NEXT\norders    1\n订单号码  2\ne\u0301te       3\nｗｉｄｅ  4\n          5\n\x1b[31mrot\x1b[0m       6\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}
