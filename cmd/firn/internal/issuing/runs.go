package issuing

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

// Generation changes with every change of the served settings. A protocol with lasting
// connections then identifies its callers again: their credentials may have been revoked.
func (f *Front) Generation() uint64 { return f.service.now.Load().generation }

// FindBytes is Find for a name in a buffer. It allocates nothing if the namespace exists.
func (f *Front) FindBytes(caller *access.Caller, name []byte) (*Namespace, error) {
	if ns := f.service.now.Load().namespaces[string(name)]; ns != nil && caller.May(ns.name) {
		return ns, nil
	}
	return f.Find(caller, string(name))
}

// IssueEach issues one id each for n requests that came together, in b.IDs. One call costs
// less, and the ids are in the order of the requests. N is at most [Front.Limit]. Either
// all requests succeed, or all fail with the same error and b is empty.
func (f *Front) IssueEach(ctx context.Context, caller *access.Caller, ns *Namespace, n int, b *Batch) error {
	err := f.serve(caller, ns, n, n, func(ns *Namespace) (int, error) { return n, ns.take(ctx, n, b) })
	if err != nil {
		b.IDs = b.IDs[:0]
	}
	return err
}

// consecutive is a base that can issue consecutive ids.
type consecutive interface {
	// consecutive takes n consecutive ids and returns the first.
	consecutive(ctx context.Context, n int) (firn.ID, error)
}

// takeRow takes count consecutive ids.
func (n *Namespace) takeRow(ctx context.Context, count int, b *Batch) error {
	row, ok := n.base.(consecutive)
	if !ok || n.texts != nil || n.cipher != nil {
		why := "of kind " + n.Kind()
		if ok {
			why = "which are veiled or have a prefix"
		}
		return failure.BadRequest("not_consecutive", "the ids of namespace %s, %s, are not consecutive: take %d with FIRN.NEXT %s COUNT %d",
			n.name, why, count, n.name, count)
	}
	first, err := row.consecutive(ctx, count)
	if err != nil {
		return err
	}
	b.IDs = append(b.IDs, first, first+firn.ID(count-1))
	return nil
}
