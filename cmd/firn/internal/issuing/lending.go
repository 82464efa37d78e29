package issuing

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/lease"
)

// A Lender has the pool whose workers a caller may lease.
type Lender struct {
	Config  lease.Config // of the server's own lease in the pool
	By      string       // the caller
	Address string       // its address
	Most    int          // how many workers the caller may lease here at once
	pool    *pool
}

// Lender returns the pool with a name, if the caller may lease its workers.
func (f *Front) Lender(caller *access.Caller, pool string) (Lender, error) {
	now := f.service.now.Load()
	caller, err := f.current(now, caller, 1)
	if err != nil {
		return Lender{}, err
	}
	most, err := caller.Leases(pool)
	if err != nil {
		return Lender{}, f.denied(caller.Name(), caller.From(), "leases of pool "+pool, 1, err)
	}
	p := now.pools[pool]
	if p == nil {
		return Lender{}, f.Refuse(failure.New(http.StatusNotFound, "unknown_pool", "unknown pool %q: it is not the setting pool of any namespace of the server; a namespace without that setting has pool \"default\"", pool))
	}
	l := Lender{p.settings, caller.Name(), caller.From(), most, p}
	here, _ := os.Hostname() // for people only
	l.Config.Host = fmt.Sprintf("%s for %s at %s", here, l.By, l.Address)
	l.Config.Store, l.Config.Log = f.service.store, f.service.log
	return l, nil
}

// Leasable returns an error unless workers of the pool may be leased. Those that are leased already, the server looks at.
func (l Lender) Leasable() error {
	if err := lease.CheckLoans(l.Config); err != nil {
		return failure.BadRequest("not_leasable", "pool %q: %v", l.Config.Pool, err)
	}
	return nil
}

// Grants returns an error unless the server may claim workers for programs. It needs a worker itself: then the pool is
// open, and a newcomer need not wait. A server that is about to end would only make a program turn to another.
func (f *Front) Grants(l Lender) error {
	if err := l.Leasable(); err != nil {
		return err
	}
	if f.service.draining.Load() {
		failed := failure.New(http.StatusServiceUnavailable, "shutting_down", "the server is shutting down: ask another one")
		failed.Retry = time.Second
		return failed
	}
	_, err := l.pool.held()
	return err
}
