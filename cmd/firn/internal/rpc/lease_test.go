package rpc_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/firnv1"
)

func TestAWorkerIsLeased(t *testing.T) { overEach(t, testAWorkerIsLeased) }

func testAWorkerIsLeased(t *testing.T, over transport) {
	s := start(t, "namespaces: {orders: {layout: sonyflake}}", over)
	_, conn := s.dial(t)
	leases := firnv1.NewLeaseServiceClient(conn)
	l, err := leases.Lease(t.Context(), &firnv1.LeaseRequest{Pool: "default", Once: "a1"})
	if err != nil {
		t.Fatal(err)
	}
	layout, err := firn.ParseLayout("sonyflake")
	if err != nil {
		t.Fatal(err)
	}
	p := l.GetFirst() + 5
	id := firn.ID(p>>l.GetSequenceBits()<<l.GetTimeShift() | p&(1<<l.GetSequenceBits()-1)<<l.GetSequenceShift() | l.GetBase())
	parts, err := layout.Decompose(id)
	if want := (firn.Parts{Tick: firn.Tick(l.GetFirst() >> l.GetSequenceBits()), Worker: l.GetWorker(), Sequence: 5}); err != nil || parts != want {
		t.Errorf("the sixth id has %+v, %v; want %+v", parts, err, want)
	}
	if l.GetPool() != "default" || l.GetClock() > l.GetFirst() || l.GetFirst() >= l.GetEnd() || l.GetLookMs() != 3000 || l.GetUnitNs() != 1e7 || l.GetOnce() != "a1" {
		t.Errorf("%+v", l)
	}
	renew := &firnv1.RenewRequest{Pool: "default", Lease: l.GetLease(), End: l.GetEnd(), Once: "a2"}
	r, err := leases.Renew(t.Context(), renew)
	if err != nil || r.GetLease() != l.GetLease() || r.GetPool() != "default" || r.GetEnd() <= l.GetEnd() || r.GetClock() < l.GetClock() || r.GetOnce() != "a2" {
		t.Errorf("renewed: %+v, %v", r, err)
	}
	code, _, got := post(t, "http://"+s.address+"/firn.v1.LeaseService/Renew", "application/json",
		fmt.Appendf(nil, `{"pool":"default","lease":%q,"end":"%d"}`, r.GetLease(), r.GetEnd()))
	if want := fmt.Sprintf(`"end":"%d"`, r.GetEnd()); code != http.StatusOK || !strings.Contains(string(got), want) {
		t.Errorf("over Connect: %d %s, want %s", code, got, want)
	}
	for word, call := range map[string]struct {
		code codes.Code
		do   func() error
	}{
		"lease_lost": {codes.FailedPrecondition, func() error {
			_, err := leases.Renew(t.Context(), &firnv1.RenewRequest{Pool: "default", Lease: strings.Repeat("A", 26) + ".0.1", End: l.GetEnd()})
			return err
		}},
		"bad_lease": {codes.InvalidArgument, func() error {
			_, err := leases.Renew(t.Context(), &firnv1.RenewRequest{Pool: "default", End: l.GetEnd()})
			return err
		}},
		"bad_request": {codes.InvalidArgument, func() error {
			_, err := leases.Renew(t.Context(), &firnv1.RenewRequest{Pool: "default", Lease: l.GetLease(), End: -l.GetEnd()})
			return err
		}},
		"bad_request: once": {codes.InvalidArgument, func() error {
			_, err := leases.Lease(t.Context(), &firnv1.LeaseRequest{Pool: "default", Once: "a.1"})
			return err
		}},
		"unknown_pool": {codes.NotFound, func() error {
			_, err := leases.Lease(t.Context(), &firnv1.LeaseRequest{Pool: "orders"})
			return err
		}},
	} {
		err := status.Convert(call.do())
		var got string
		for _, d := range err.Details() {
			if info, ok := d.(*errdetails.ErrorInfo); ok {
				got = info.GetReason()
			}
		}
		if word, _, _ = strings.Cut(word, ":"); err.Code() != call.code || got != word {
			t.Errorf("%v %s %q, want %v %s", err.Code(), got, err.Message(), call.code, word)
		}
	}
}
