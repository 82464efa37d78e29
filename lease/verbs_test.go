package lease_test

import (
	"context"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// A Lease and its sources have the verbs of docs/decisions/0011.
var _ interface {
	Next(ctx context.Context) (firn.ID, error)
	Take(ctx context.Context, n int) (firn.Run, error)
	Fill(ctx context.Context, dst []firn.ID) (int, error)
	Local() *firn.Local
	Check() error
	Close(ctx context.Context) error
} = (*lease.Lease)(nil)

// workers is a lease.Source, spelled out.
type workers interface {
	Acquire(ctx context.Context, ask func() lease.Ask) (firn.Grant, error)
	Renew(ctx context.Context, held firn.Grant, ask lease.Ask) (firn.Grant, error)
	Look(ctx context.Context, held firn.Grant) error
	Release(ctx context.Context, held firn.Grant, last firn.Tick) error
	Traits() lease.Traits
}

var (
	_ workers                                                                                                             = lease.Source(nil)
	_ workers                                                                                                             = lease.Fixed(0, 1)
	_ workers                                                                                                             = lease.FixedFunc(nil)
	_ func(context.Context, lease.Config) (*lease.Lease, error)                                                           = lease.Open
	_ func(context.Context, lease.Config) (*lease.Lease, error)                                                           = lease.OnThisMachine
	_ func(context.Context, lease.Source, lease.Config) (*lease.Lease, error)                                             = lease.Keep
	_ func(lease.Config) error                                                                                            = lease.Config.Check
	_ func(lease.Config) error                                                                                            = lease.CheckLoans
	_ func(context.Context, lease.Config, time.Duration) (*lease.Loan, firn.Grant, error)                                 = lease.Lend
	_ func(context.Context, store.Store) ([]string, error)                                                                = lease.Pools
	_ func(lease.Config) (lease.Source, error)                                                                            = lease.NewSource
	_ func(lease.Config, string) (*lease.Loan, error)                                                                     = lease.NewLoan
	_ func(context.Context, store.Store, string) (lease.Pool, error)                                                      = lease.Inspect
	_ func(context.Context, store.Store, string) (time.Duration, error)                                                   = lease.Relax
	_ func(ctx context.Context, s store.Store, pool string, datacenter, worker int64, gone time.Time) (lease.Slot, error) = lease.Reclaim
)
