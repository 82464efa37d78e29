package decode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
)

// The texts were written by bwmarrin/snowflake v0.3.0.
func TestTextsOfBwmarrinAreReadByTheirNames(t *testing.T) {
	layout, err := firn.ParseLayout("twitter")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		format, text string
		id           firn.ID
	}{
		{"bwmarrin32", "y", 0},
		{"bwmarrin58", "1", 0},
		{"bwmarrin64", "MA==", 0},
		{"bwmarrin32", "9", 31},
		{"bwmarrin58", "x", 31},
		{"bwmarrin64", "MzE=", 31},
		{"bwmarrin32", "b3", 57},
		{"bwmarrin58", "Z", 57},
		{"bwmarrin64", "NTc=", 57},
		{"bwmarrin32", "b4", 58},
		{"bwmarrin58", "21", 58},
		{"bwmarrin64", "NTg=", 58},
		{"bwmarrin32", "byq9kgirrr9ma", 1169786042799259000},
		{"bwmarrin58", "3HuscJJ4k47", 1169786042799259000},
		{"bwmarrin64", "MTE2OTc4NjA0Mjc5OTI1OTAwMA==", 1169786042799259000},
		{"bwmarrin32", "b49ksazyoyhyy", 2124950006535319552},
		{"bwmarrin58", "5W5ZFoG5LmG", 2124950006535319552},
		{"bwmarrin64", "MjEyNDk1MDAwNjUzNTMxOTU1Mg==", 2124950006535319552},
		{"bwmarrin32", "8999999999999", 9223372036854775807},
		{"bwmarrin58", "npL6MjP8Qfc", 9223372036854775807},
		{"bwmarrin64", "OTIyMzM3MjAzNjg1NDc3NTgwNw==", 9223372036854775807},
	} {
		r, err := decode.Text(c.text, c.format, layout, time.Now())
		if err != nil || r.ID != c.id || r.Encoding != c.format {
			t.Errorf("%s %s: %d %s, %v; want %d", c.format, c.text, r.ID, r.Encoding, err, c.id)
		}
		if id, err := decode.Number(c.text, c.format); err != nil || id != c.id {
			t.Errorf("%s %s as a number: %d, %v; want %d", c.format, c.text, id, err, c.id)
		}
	}
	for _, c := range []struct{ format, text, want string }{
		{"bwmarrin58", "5W5ZFoG5Lm0", `'0' is not one of its digits`},
		{"bwmarrin58", "", "it is empty"},
		{"bwmarrin58", "npL6MjP8Qfd", "above 9223372036854775807"},
		{"bwmarrin58", strings.Repeat("Z", 1000), "above"},
		{"bwmarrin32", "0", `'0' is not one of its digits`},
		{"bwmarrin64", "MTIz!", "it is not base64 with padding"},
		{"bwmarrin64", "LTE=", "-1"},
		{"bwmarrin36", "X", "base2, bwmarrin32, bwmarrin58, bwmarrin64, readable are allowed: did you mean bwmarrin32"},
	} {
		if _, err := decode.Text(c.text, c.format, layout, time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %s", c.format, c.text, err, c.want)
		}
	}
}
