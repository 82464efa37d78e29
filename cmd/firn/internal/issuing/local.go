package issuing

import (
	"context"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/prefixed"
)

// local makes ids that need no store.
type local struct{ next settings.NextWide }

func (l *local) take(ctx context.Context, n int) ([]string, error) {
	return l.written(ctx, n, func(_ []byte, text string) string { return text })
}

func (l *local) written(ctx context.Context, n int, write func(id []byte, text string) string) ([]string, error) {
	out := make([]string, n)
	for i := range out {
		id, text, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		out[i] = write(id, text)
	}
	return out, nil
}

func (*local) state(*State)                {}
func (*local) close(context.Context) error { return nil }

// localPrefixed writes the bytes of local ids behind a prefix.
type localPrefixed struct {
	local  *local
	prefix prefixed.Prefix
}

func (p *localPrefixed) take(ctx context.Context, n int) ([]string, error) {
	return p.local.written(ctx, n, func(id []byte, _ string) string { return p.prefix.Bytes(id) })
}

func (*local) able() error { return nil }
