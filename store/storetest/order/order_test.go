package order_test

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/store/storetest/order"
)

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		what  string
		calls []order.Call
		says  string // empty: in order
	}{
		{"nothing", nil, ""},
		{"one after another", []order.Call{{Begin: 1, End: 2, First: 1, N: 1}, {Begin: 3, End: 4, First: 2, N: 1}}, ""},
		{"a gap", []order.Call{{Begin: 1, End: 2, First: 1, N: 3}, {Begin: 3, End: 4, First: 9, N: 1}}, ""},
		{"together, in any order", []order.Call{{Begin: 1, End: 5, First: 2, N: 1}, {Begin: 2, End: 4, First: 1, N: 1}}, ""},
		{"at the same moment", []order.Call{{Begin: 1, End: 2, First: 2, N: 1}, {Begin: 2, End: 4, First: 1, N: 1}}, ""},
		{"a later one below", []order.Call{{Begin: 1, End: 2, First: 2, N: 1}, {Begin: 3, End: 4, First: 1, N: 1}}, "not greater"},
		{"below one that ended long ago", []order.Call{
			{Begin: 1, End: 2, First: 9, N: 2}, {Begin: 3, End: 9, First: 11, N: 1}, {Begin: 4, End: 5, First: 8, N: 1},
		}, "not greater"},
		{"twice", []order.Call{{Begin: 1, End: 5, First: 2, N: 1}, {Begin: 2, End: 4, First: 2, N: 1}}, "in common"},
		{"overlapping ranges", []order.Call{{Begin: 1, End: 5, First: 1, N: 3}, {Begin: 2, End: 4, First: 3, N: 1}}, "in common"},
		{"no ids", []order.Call{{Begin: 1, End: 5, First: 1}}, "no call"},
	} {
		err := order.Check(test.calls)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.what, err, test.says)
		}
	}
}
