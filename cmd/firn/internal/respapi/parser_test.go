package respapi

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func whole() int { return math.MaxInt }

func TestCommandsAreRead(t *testing.T) {
	for in, want := range map[string][][]string{
		"*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n":               {{"INCR", "orders"}},
		"*1\r\n$4\r\nPING\r\n*1\r\n$0\r\n\r\n":               {{"PING"}, {""}},
		"*0\r\n*-1\r\n*-9\r\nPING\n":                         {{"PING"}},
		"*1\r\n$4\r\n\r\n\r\n\r\n":                           {{"\r\n\r\n"}},
		"incr orders\r\n  ping  \n\r\n\n":                    {{"incr", "orders"}, {"ping"}},
		`echo "a b\n\x41\q" 'it\'s \n'` + "\n":               {{"echo", "a b\nAq", `it's \n`}},
		`x"y" ''` + "\n":                                     {{"xy", ""}},
		"a\x00b\n":                                           {{"a", "b"}},
		"*2\r\n$4\r\nINCR\r\n$6\r\norders\r":                 nil,
		"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nINCR\r\n$6\r\norde": {{"PING"}},
	} {
		for _, piece := range []func() int{whole, func() int { return 1 }, func() int { return 3 }} {
			if got, err := parse([]byte(in), piece); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%q: %q, %v, want %q", in, got, err, want)
			}
		}
	}
}

func TestMalformedInputGetsTheErrorsOfRedis(t *testing.T) {
	for in, want := range map[string]string{
		"*x\r\n":                     "invalid multibulk length",
		"*01\r\n":                    "invalid multibulk length",
		"*+1\r\n":                    "invalid multibulk length",
		"*1\rx":                      "invalid multibulk length",
		"*99999999999999999999\r\n":  "invalid multibulk length",
		"*6\r\n":                     "invalid multibulk length",
		"*1000000000000000000000000": "invalid multibulk length",
		"*1\r\nPING\r\n":             "expected '$', got 'P'",
		"*1\r\n\x01":                 "expected '$', got '?'",
		"*1\r\n$-1\r\n":              "invalid bulk length",
		"*1\r\n$41\r\n":              "invalid bulk length",
		"*1\r\n$x\r\n":               "invalid bulk length",
		"*1\r\n$1\r\nxyz":            "expected CRLF after bulk",
		"\"x\n":                      "unbalanced quotes in request",
		"'x'y\n":                     "unbalanced quotes in request",
		strings.Repeat("x", 100):     "too big inline request",
		strings.Repeat("*", 25):      "invalid multibulk length",
		"*4\r\n" + strings.Repeat("$30\r\n"+strings.Repeat("x", 30)+"\r\n", 4): "too big request",
	} {
		for _, piece := range []func() int{whole, func() int { return 1 }} {
			_, err := parse([]byte(in), piece)
			var protocol protocolError
			if !errors.As(err, &protocol) || err.Error() != "Protocol error: "+want {
				t.Errorf("%q: %v, want %s", in, err, want)
			}
		}
	}
}

func TestIntAcceptsWhatRedisAccepts(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "-1": -1, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		if v, ok := parseInt([]byte(text)); !ok || v != want {
			t.Errorf("%s: %d, %t", text, v, ok)
		}
	}
	for _, text := range []string{"", "-", "-0", "+1", "01", "1 ", "1.0", "9223372036854775808", "-9223372036854775809", "99999999999999999999", "0x1"} {
		if v, ok := parseInt([]byte(text)); ok {
			t.Errorf("%q is %d, want no number", text, v)
		}
	}
}

func TestRepliesAreWritten(t *testing.T) {
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{appendInt(nil, math.MinInt64), ":-9223372036854775808\r\n"},
		{appendSimple(nil, "OK"), "+OK\r\n"},
		{appendError(nil, "ERR a\r\nb"), "-ERR a  b\r\n"},
		{appendBulk(nil, ""), "$0\r\n\r\n"},
		{appendBulk(nil, []byte("a\r\n")), "$3\r\na\r\n\r\n"},
		{appendArray(nil, 12), "*12\r\n"},
		{appendMap(nil, resp2, 2), "*4\r\n"},
		{appendMap(nil, resp3, 2), "%2\r\n"},
		{appendSet(nil, resp2, 2), "*2\r\n"},
		{appendSet(nil, resp3, 2), "~2\r\n"},
		{appendNull(nil, resp2), "$-1\r\n"},
		{appendNull(nil, resp3), "_\r\n"},
	} {
		if string(c.got) != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if long := appendError(nil, strings.Repeat("x", 5000)); len(long) > 1100 {
		t.Errorf("an error of %d bytes", len(long))
	}
}

func TestACommandDoesNotAllocate(t *testing.T) {
	var p parser
	in := []byte("*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n")
	half := in[:20]
	out := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(1000, func() {
		for _, buf := range [][]byte{half, in} {
			if _, n, err := p.parse(buf, limits); err != nil || n != 0 && n != len(in) {
				t.Fatal(n, err)
			}
		}
		out = appendInt(out[:0], 249864446382967636)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParser(f *testing.F) {
	for _, in := range []string{
		"*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n*1\r\n$4\r\nPING\r\n", "incr orders\r\n", "*1\r\n$4\r\nPI", "*-1\r\n\n",
		"echo \"\\x41\\n\" 'a\\'b'\n", "*1\r\n$-1\r\n", "*1\r\n$1\r\nxyz", "\x00 \v'\n", "*6\r\n", "*2\r\n$30\r\n", "\"a\"b\n", "\"\\", "*1\r",
	} {
		f.Add([]byte(in), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		want, wrong := reference(string(in))
		random := rand.New(rand.NewPCG(seed, 0))
		got, err := parse(slices.Clone(in), func() int { return random.IntN(12) })
		if (err == nil) != (wrong == nil) || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %q, %v, want %q, %v", in, got, err, want, wrong)
		}
	})
}

func FuzzInt(f *testing.F) {
	for _, text := range []string{"0", "-1", "9223372036854775807", "-9223372036854775808", "01", "-0", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := parseInt([]byte(text))
		if ok && string(appendInt(nil, v)) != ":"+text+"\r\n" {
			t.Errorf("%q parses as %d", text, v)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var p parser
	in := []byte("*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, n, err := p.parse(in, limits); n == 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}
