package issuing

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
)

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
