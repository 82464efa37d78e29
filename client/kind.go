package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
)

// A kind is the kind of a namespace, as a server reports it.
type kind struct {
	known bool   // no need to ask again
	name  string // "" if not known
	grows bool   // its ids grow, with one server
	ranks bool   // its ids come from ranges, so taking ids skips a range
}

// The kinds that matter here; all others are buffered as they come.
var (
	// inOrder promise that each id is greater than all issued before it, anywhere.
	inOrder = []string{"sequence", "number"}
	growing = []string{"snowflake", "segment"}
	// numeric are numbers, unless they have a prefix.
	numeric = []string{"snowflake", "segment", "sequence"}
)

// askKind asks the servers for the kind of a namespace. The kind is not known while
// the namespace does not exist: some servers make a namespace on first use.
func (n *Namespace[T]) askKind(ctx context.Context) (kind, error) {
	var described struct {
		Kind   string          `json:"kind"`
		Prefix string          `json:"prefix"`
		Veil   json.RawMessage `json:"veil"`
	}
	err := n.client.persist(ctx, question{
		namespace: n.name,
		note:      n.failed,
		ask: func(ctx context.Context, one *server) error {
			return n.client.observed(ctx, one, n.name, 0, exchange{
				method: http.MethodGet, path: "/v1/namespaces/" + n.name, accept: "application/json", token: true, most: maxMessage,
				read: func(body []byte) error {
					if err := json.Unmarshal(body, &described); err != nil || described.Kind == "" {
						return fmt.Errorf("%w: it does not say of what kind %q is: %s", ErrAnswer, n.name, shown(string(body)))
					}
					return nil
				},
			})
		},
	}, math.MaxInt64)
	switch {
	case errors.Is(err, ErrUnknownNamespace):
		return kind{}, nil
	case errors.Is(err, ErrDenied) && n.buffer.AnyKind:
		return kind{known: true}, nil
	case errors.Is(err, ErrDenied):
		return kind{}, fmt.Errorf("ask of what kind it is, which Buffer.AnyKind does without: %w", err)
	case err != nil:
		return kind{}, err
	}
	if n.form.numbers && (described.Prefix != "" || !slices.Contains(numeric, described.Kind)) {
		return kind{}, &KindError{Namespace: n.name, Kind: described.Kind, Why: "its ids are texts, which are had with Client.Texts"}
	}
	veiled := !slices.Contains([]string{"", `""`, "null", "false"}, string(described.Veil))
	return kind{
		known: true, name: described.Kind,
		grows: n.form.numbers && slices.Contains(growing, described.Kind) && !veiled,
		ranks: n.form.numbers && described.Kind == "segment" && !veiled,
	}, nil
}

// learn returns the kind if it may be buffered, and asks for it if it is not known.
// Issued says that the namespace has issued ids.
func (n *Namespace[T]) learn(ctx context.Context, issued bool) (kind, error) {
	n.mu.Lock()
	k := n.kind
	n.mu.Unlock()
	if k.known {
		return k, nil
	}
	k, err := n.askKind(ctx)
	if err != nil {
		return kind{}, err
	}
	if slices.Contains(inOrder, k.name) && !n.buffer.AnyKind {
		// Not remembered: the kind is asked again, in case the namespace changes.
		return kind{}, &KindError{Namespace: n.name, Kind: k.name,
			Why: "its ids would no longer be greater than all that others had before if they lay in a buffer; " +
				"ask a server each time, with Fetch, or set Buffer.AnyKind if that does not matter"}
	}
	k.known = k.known || issued // a server that issues and does not say will not say later
	n.mu.Lock()
	n.kind = k
	n.mu.Unlock()
	return k, nil
}
