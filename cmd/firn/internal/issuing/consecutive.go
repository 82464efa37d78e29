package issuing

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/failure"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// consecutive is a base that can issue consecutive ids.
type consecutive interface {
	// consecutive takes n consecutive ids and returns the first.
	consecutive(ctx context.Context, n int) (firn.ID, error)
}

// takeRow takes count consecutive ids.
func (n *Namespace) takeRow(ctx context.Context, count int, b *Batch) error {
	row, ok := n.base.(consecutive)
	if is := n.Lacks(settings.Row); is != "" || !ok {
		return failure.BadRequest("not_consecutive", "the ids of namespace %s, %s, are not consecutive: take %d with FIRN.NEXT %s COUNT %d",
			n.name, is, count, n.name, count)
	}
	first, err := row.consecutive(ctx, count)
	if err != nil {
		return err
	}
	b.IDs = append(b.IDs, first, first+firn.ID(count-1))
	return nil
}
