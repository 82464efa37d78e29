package firn_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"

	"github.com/firn-id/firn"
)

var (
	_ fmt.Formatter  = firn.ID(0)
	_ fmt.Stringer   = firn.ID(0)
	_ slog.LogValuer = firn.ID(0)
)

func TestIDFormatsAsItsNumber(t *testing.T) {
	id := firn.ID(1958)
	type order struct{ ID firn.ID }
	for _, c := range []struct {
		format, want string
		arg          any
	}{
		{"%v", "1958", id},
		{"%s", "1958", id},
		{"%d", "1958", id},
		{"%x", "7a6", id},
		{"%X", "7A6", id},
		{"%#x", "0x7a6", id},
		{"%016x", "00000000000007a6", id},
		{"%b", "11110100110", id},
		{"%o", "3646", id},
		{"%O", "0o3646", id},
		{"%q", `"1958"`, id},
		{"%#q", "`1958`", id},
		{"%8d|", "    1958|", id},
		{"%-8d|", "1958    |", id},
		{"%08d", "00001958", id},
		{"%+d", "+1958", id},
		{"%8s|", "    1958|", id},
		{"%-8v|", "1958    |", id},
		{"%+v", "1958", id},
		{"%#v", "firn.ID(1958)", id},
		{"%+v", "{ID:1958}", order{id}},
		{"%v", "[1958 1958]", []firn.ID{id, id}},
		{"%v", "-5", firn.ID(-5)},
		{"%e", "%!e(firn.ID=1958)", id},
		{"%t", "%!t(firn.ID=1958)", id},
	} {
		if got := fmt.Sprintf(c.format, c.arg); got != c.want {
			t.Errorf("%s gives %s, want %s", c.format, got, c.want)
		}
	}
}

func TestIDIsAStringInJSONLogs(t *testing.T) {
	var out bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != "id" {
			return slog.Attr{}
		}
		return a
	}}
	slog.New(slog.NewJSONHandler(&out, options)).Info("made", "id", firn.MaxID)
	slog.New(slog.NewTextHandler(&out, options)).Info("made", "id", firn.MaxID)
	want := "{\"id\":\"9223372036854775807\"}\nid=9223372036854775807\n"
	if out.String() != want {
		t.Errorf("logged %q, want %q", out.String(), want)
	}
}
