package bench

import (
	"context"
	"syscall"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/sony/sonyflake/v2"

	"github.com/firn-id/firn"
)

// both measures next with one goroutine and with two.
func both(b *testing.B, name string, next func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		used := cpu(b)
		for b.Loop() {
			if err := next(); err != nil {
				b.Fatal(err)
			}
		}
		used(b)
	})
	b.Run(name+"-2", func(b *testing.B) {
		b.ReportAllocs()
		used := cpu(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := next(); err != nil {
					b.Error(err)
					return
				}
			}
		})
		used(b)
	})
}

// cpu reports how many processors were kept busy meanwhile, as "cores".
func cpu(b *testing.B) func(*testing.B) {
	b.Helper()
	read := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before, start := read(), time.Now()
	return func(b *testing.B) {
		b.ReportMetric(float64(read()-before)/float64(time.Since(start)), "cores")
	}
}

func generator(b *testing.B, layout string, cfg firn.Config) *firn.Generator {
	b.Helper()
	var err error
	if cfg.Layout, err = firn.ParseLayout(layout); err != nil {
		b.Fatal(err)
	}
	g, err := firn.New(0, cfg)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := g.Next(b.Context()); err != nil { // the first waits for its tick
		b.Fatal(err)
	}
	return g
}

func nextOf(g *firn.Generator) func() error {
	return func() error {
		_, err := g.Next(context.Background())
		return err
	}
}

func BenchmarkFirn(b *testing.B) {
	const wide = "41/0/0/22" // its sequence is never used up, so that a call itself is measured
	both(b, "steady-wide", nextOf(generator(b, wide, firn.Config{})))
	both(b, "wall-wide", nextOf(generator(b, wide, firn.Config{Clock: firn.ClockWall})))
	both(b, "virtual-wide", nextOf(generator(b, wide, firn.Config{Clock: firn.ClockVirtual})))
	both(b, "steady-default", nextOf(generator(b, "firn", firn.Config{})))
	both(b, "lag-wide", nextOf(generator(b, wide, firn.Config{Lag: time.Millisecond})))
	both(b, "lag-default", nextOf(generator(b, "firn", firn.Config{Lag: time.Millisecond})))
	b.Run("fill-1024", func(b *testing.B) {
		g, ids := generator(b, wide, firn.Config{}), make([]firn.ID, 1024)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Fill(context.Background(), ids); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/id")
	})
}

func BenchmarkPeer(b *testing.B) {
	// bwmarrin's bits are settings of the package, read when a node is made.
	node, err := bwmarrin.NewNode(1)
	if err != nil {
		b.Fatal(err)
	}
	both(b, "bwmarrin-default", func() error { node.Generate(); return nil })
	bwmarrin.NodeBits, bwmarrin.StepBits = 0, 22
	wide, err := bwmarrin.NewNode(0)
	bwmarrin.NodeBits, bwmarrin.StepBits = 10, 12
	if err != nil {
		b.Fatal(err)
	}
	both(b, "bwmarrin-22-bit-step", func() error { wide.Generate(); return nil })

	for name, settings := range map[string]sonyflake.Settings{
		"sonyflake-default": {},
		"sonyflake-1ms":     {TimeUnit: time.Millisecond, BitsSequence: 22, BitsMachineID: 3},
	} {
		settings.MachineID = func() (int, error) { return 1, nil }
		sf, err := sonyflake.New(settings)
		if err != nil {
			b.Fatal(err)
		}
		both(b, name, func() error { _, err := sf.NextID(); return err })
	}
	both(b, "xid", func() error { xid.New(); return nil })
	both(b, "ulid", func() error { ulid.Make(); return nil })
	both(b, "uuid-v4", func() error { _, err := uuid.NewRandom(); return err })
	both(b, "uuid-v7", func() error { _, err := uuid.NewV7(); return err })
}
