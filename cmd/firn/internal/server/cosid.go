package server

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/cosid"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/cmd/firn/internal/share"
	"github.com/firn-id/firn/store"
)

// cosidPaths are the paths of CosId's proxy server.
var cosidPaths = []string{"/machines/", "/segments/", "/ids", "/ids/"}

// registerCosID adds the API of CosId's proxy server. Its names need not be declared
// namespaces, so a configuration that declares namespaces must enable it explicitly.
func (s *Server) registerCosID(mux *http.ServeMux, st store.Store, nothing http.Handler) error {
	d := &distributor{front: s.service.Front(issuing.CosID), cfg: s.cfg.Load}
	h, err := cosid.Handler(cosid.Config{
		Store: st, Memory: s.service.Memory(), Issue: d.issue, Allow: d.allow, Segment: d.segment, Create: d.create, Skip: d.skip, Take: d.front.Charge, Observe: d.observe, Log: s.log,
	})
	if err != nil {
		return err
	}
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cfg := s.cfg.Load()
		if !cfg.CosID && len(cfg.Namespaces) > 0 {
			nothing.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
	for _, path := range cosidPaths {
		mux.Handle(path, served)
	}
	return nil
}

// A distributor serves CosId's requests by the same rules as all others.
type distributor struct {
	front *issuing.Front
	cfg   func() *settings.Config
}

// allow identifies the caller of a request and checks that they may use the name.
func (d *distributor) allow(r *http.Request, name string) (*access.Caller, error) {
	caller, err := d.front.Caller(r)
	if err == nil {
		err = d.front.Allow(caller, name)
	}
	return caller, err
}

// create counts a name that a client makes, of the names of its address.
func (d *distributor) create(caller *access.Caller) (undo func(), err error) {
	client := caller.Client()
	if !client.Take(share.Names, 1) {
		return nil, client.Refusal(share.Names)
	}
	return func() { client.Give(share.Names, 1) }, nil
}

// segment returns the settings of the name's segment. The name must be undeclared, or a
// namespace of kind segment that shows its ids unchanged: without veil, prefix or stripe. Its min_step and target do not
// apply: a client computes the first id of its range from the step that it asked for, so it must get just that many.
func (d *distributor) segment(name string) (cosid.Segment, error) {
	ns, declared := d.cfg().Namespaces[name]
	if !declared {
		return cosid.Segment{MaxStep: cosid.DefaultMaxStep}, nil
	}
	is := ns.Lacks(settings.CounterRange)
	if is == "" {
		return cosid.Segment{Least: ns.From, MaxStep: cmp.Or(ns.MaxStep, max(ns.MinStep, cosid.DefaultMaxStep)), MustExist: ns.MustExist}, nil
	}
	return cosid.Segment{}, failure.BadRequest("not_a_segment", "the ids of namespace %q are %s, and are not handed out as ranges: take single ids at /ids/%s, or have a name of its own that is declared with kind: segment",
		name, is, name)
}

// skip refuses anonymous callers.
func (d *distributor) skip(caller *access.Caller) error {
	if caller.Anonymous() {
		return d.front.Refuse(failure.New(http.StatusForbidden, "permission_denied",
			"offset is above the greatest step (max_step, or %d): without a token a counter cannot begin there, since that uses up the ids below", cosid.DefaultMaxStep))
	}
	return nil
}

func (d *distributor) issue(ctx context.Context, caller *access.Caller, name string, number bool) (string, error) {
	var b issuing.Batch
	ask := issuing.Ask{Namespace: name, Count: 1}
	if number {
		ask.Fits = numberAsCosID
	}
	ns, err := d.front.Issue(ctx, caller, ask, &b)
	if err != nil {
		return "", err
	}
	if ns.Numeric() {
		return b.IDs[0].String(), nil
	}
	return b.Texts[0], nil
}

// numberAsCosID refuses a namespace whose ids are not numbers.
func numberAsCosID(ns *issuing.Namespace) error {
	if is := ns.Lacks(settings.Single); is != "" {
		return failure.BadRequest("not_a_number", "the ids of namespace %s, %s, are not 64-bit numbers: use /ids/as-string/%s", ns.Name(), is, ns.Name())
	}
	return nil
}

// observe counts requests that issue no id; Issue counts the others.
func (d *distributor) observe(operation string, status int, took time.Duration) {
	d.front.Observe(took)
	if operation != "ids" {
		d.front.Answered(status)
	}
}
