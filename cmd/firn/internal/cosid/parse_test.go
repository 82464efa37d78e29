package cosid_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/cosid"
	"github.com/firn-id/firn/store"
)

func TestJavaDurationsAreParsed(t *testing.T) {
	for text, want := range map[string]int64{
		"PT5M": 300_000, "pt5m": 300_000, "PT0S": 0, "PT0.5S": 500, "PT1,25S": 1250, "PT1.S": 1000,
		"P1D": 86_400_000, "P1DT12H": 129_600_000, "P2DT3H4M5.678S": 183_845_678, "PT1H-5M": 3_300_000,
		"-PT1H": -3_600_000, "PT-5M": -300_000, "-PT-5M": 300_000, "+PT+1S": 1000, "PT-0.5S": -500,
		"PT0.0009S": 0, "PT-0.0001S": -1, "PT2562047788015H12M55.807S": math.MaxInt64,
		"PT2562047788015H12M55.807999999S": math.MaxInt64, "PT-2562047788015H-12M-55.808S": math.MinInt64,
	} {
		if got, err := cosid.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "P", "PT", "P1DT", "5m", "300", "PT5", "PTM", "P5M", "P1Y", "P1W", "PT5M1H", "PT1S1S", "PT1.5M", "PT.5S",
		"PT1.0000000001S", "P T5M", "PT5M ", "PT５M", "--PT5M", "PT5M\x00", "T5M", "PTT5M", "PT5MT1S", "PT1.5",
		"PT2562047788015H12M55.808S", "PT9223372036854775807S", "P999999999999999999D", "PT" + strings.Repeat("0", 64) + "S",
	} {
		if got, err := cosid.ParseDuration(text); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}

// FuzzParseDuration checks that a duration survives a round trip through Java's format.
func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"PT5M", "P1DT12H", "-PT0.5S", "PT2562047788015H12M55.807S", "PT-2562047788015H-12M-55.808S", "P", "PT1.S", "PT1.000000000S"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := cosid.ParseDuration(text)
		if err != nil {
			return
		}
		sign, abs := "", uint64(ms)
		if ms < 0 {
			sign, abs = "-", -abs
		}
		again := fmt.Sprintf("%sPT%dH%dM%d.%03dS", sign, abs/3_600_000, abs/60_000%60, abs/1000%60, abs%1000)
		if got, err := cosid.ParseDuration(again); err != nil || got != ms {
			t.Fatalf("%q is %d, and %q %d, %v", text, ms, again, got, err)
		}
	})
}

func TestFirnNamesOfCosIdsNames(t *testing.T) {
	long := strings.Repeat("n", 60)
	for want, parts := range map[string][]string{
		"shop":                         {"shop"},
		"shop.orders":                  {"shop", "orders"},
		"my_app.order-id":              {"my_app", "order-id"},
		"cosid--shop.orders_402026-11": {"shop", "orders@2026-11"},
		"cosid--_E4_B8_AD":             {"中"},
		"cosid--cosid--a":              {"cosid--a"},
		"cosid--_2Da.b_20":             {"-a", "b "},
		"cosid--a_5Fb_40":              {"a_b@"},
	} {
		if got := cosid.FirnName(parts...); got != want {
			t.Errorf("%q become %q, want %q", parts, got, want)
		}
	}
	if got := cosid.FirnName(long, "orders"); !strings.HasPrefix(got, "cosid---") || len(got) != 64 {
		t.Errorf("a long name becomes %q", got)
	}
}

// FuzzFirnName checks that names are valid, and that different names stay different.
func FuzzFirnName(f *testing.F) {
	f.Add("shop.orders", "cosid--shop.orders")
	f.Add("a@", "a_40")
	f.Add("cosid--a_40", "a@")
	f.Add("-", "_2D")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := cosid.FirnName(a), cosid.FirnName(b)
		if err := store.CheckName("", x); err != nil {
			t.Fatal(err)
		}
		if (a == b) != (x == y) {
			t.Fatalf("%q is %q, and %q is %q", a, x, b, y)
		}
	})
}
