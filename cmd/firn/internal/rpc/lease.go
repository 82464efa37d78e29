package rpc

import (
	"context"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/access"
)

// lease grants a lease.
func (a *API) lease(ctx context.Context, from *access.Caller, r *firnv1.LeaseRequest) (answer *firnv1.LeaseResponse, release func(), err error) {
	l, err := a.front.GrantLease(ctx, from, r.GetPool(), r.GetOnce())
	if err != nil {
		return nil, nil, err
	}
	return &firnv1.LeaseResponse{
		Lease: l.Lease, Pool: l.Pool, Clock: int64(l.Clock), First: int64(l.First), End: int64(l.End), LookMs: l.LookMS, UnitNs: l.Unit,
		SequenceBits: int32(l.SequenceBits), TimeShift: int32(l.TimeShift), SequenceShift: int32(l.SequenceShift), Base: int64(l.Base),
		Worker: l.Worker, Layout: l.Layout, Once: l.Once,
	}, nil, nil
}

// renew renews a lease.
func (a *API) renew(ctx context.Context, from *access.Caller, r *firnv1.RenewRequest) (answer *firnv1.RenewResponse, release func(), err error) {
	l, err := a.front.RenewLease(ctx, from, r.GetPool(), r.GetOnce(), r.GetLease(), r.GetEnd())
	if err != nil {
		return nil, nil, err
	}
	return &firnv1.RenewResponse{Lease: l.Lease, Pool: l.Pool, Clock: int64(l.Clock), End: int64(l.End), Once: l.Once}, nil, nil
}
