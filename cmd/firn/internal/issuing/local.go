package issuing

import (
	"context"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// local makes ids that need no store.
type local struct {
	next  settings.NextWide
	write func(id []byte, text string) string
}

func (l *local) take(ctx context.Context, n int) ([]string, error) {
	out := make([]string, n)
	for i := range out {
		id, text, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = l.write(id, text)
	}
	return out, nil
}

func (*local) state(*State)                {}
func (*local) close(context.Context) error { return nil }
func (*local) able() error                 { return nil }
