package veil_test

import (
	"fmt"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/veil"
)

func BenchmarkVeil(b *testing.B) {
	for _, bits := range []int{63, 53, 20} {
		for _, length := range []int{16, 32} {
			b.Run(fmt.Sprintf("%dbits/AES-%d", bits, 8*length), func(b *testing.B) {
				c := newCipher(b, veil.Config{Keys: keys(b, length), Bits: bits, Namespace: "orders"})
				b.ReportAllocs()
				id := firn.ID(0)
				for b.Loop() {
					if _, err := c.Veil(id); err != nil {
						b.Fatal(err)
					}
					id = (id + 1) & (1<<bits - 1)
				}
			})
		}
	}
}

func BenchmarkUnveil(b *testing.B) {
	c := newCipher(b, veil.Config{Keys: keys(b, 32), Namespace: "orders"})
	b.ReportAllocs()
	id := firn.ID(0)
	for b.Loop() {
		if _, err := c.Unveil(id); err != nil {
			b.Fatal(err)
		}
		id++
	}
}

func BenchmarkVeilParallel(b *testing.B) {
	c := newCipher(b, veil.Config{Keys: keys(b, 32), Namespace: "orders"})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for id := firn.ID(0); pb.Next(); id++ {
			if _, err := c.Veil(id); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	cfg := veil.Config{Keys: keys(b, 32), Namespace: "orders"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := veil.New(cfg); err != nil {
			b.Fatal(err)
		}
	}
}
