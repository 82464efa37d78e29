package bench_test

import (
	"testing"

	"github.com/bwmarrin/snowflake"

	"github.com/firn-id/firn"
)

func BenchmarkBase58(b *testing.B) {
	var ids [256]firn.ID
	x := uint64(88172645463325252)
	for i := range ids {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		ids[i] = firn.ID(x>>1) | 1<<61
	}
	var text string
	b.Run("firn", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			text = firn.Base58.Compact(ids[i&255])
		}
	})
	b.Run("bwmarrin", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			text = snowflake.ID(ids[i&255]).Base58()
		}
	})
	_ = text
}
