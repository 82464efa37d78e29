package rpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/decode"
	"github.com/firn-id/firn/cmd/firn/internal/issuing"
)

// decode returns the parts of an id.
func (a *API) decode(_ context.Context, from *access.Caller, r *firnv1.DecodeRequest) (answer *firnv1.DecodeResponse, release func(), err error) {
	contents, err := a.front.Decode(from, issuing.DecodeRequest{
		ID: r.GetId(), Format: r.GetFormat(), Namespace: r.GetNamespace(),
		Layout: r.GetLayout(), Unit: r.GetUnit(), Epoch: r.GetEpoch(),
	})
	if err != nil {
		return nil, nil, err
	}
	answer = &firnv1.DecodeResponse{}
	for _, f := range contents.All() {
		if err := set(answer, f); err != nil {
			return nil, nil, a.front.Refuse(err)
		}
	}
	return answer, nil, nil
}

// set sets the field of an answer that has the name of a part. An id that is no number is the field text.
func set(answer *firnv1.DecodeResponse, f decode.Field) error {
	var value any
	name := protoreflect.Name(f.Name)
	switch v := f.Value.(type) {
	case firn.ID:
		value = int64(v)
	case firn.Tick:
		value = int64(v)
	case time.Time:
		value = timestamppb.New(v).ProtoReflect()
	case string:
		if value = v; name == "id" {
			name = "text"
		}
	default:
		value = v
	}
	m := answer.ProtoReflect()
	field := m.Descriptor().Fields().ByName(name)
	if field == nil {
		return fmt.Errorf("DecodeResponse has no field for %s", name) // TestEachKindIsReadBackOverEachProtocol finds it
	}
	if n, ok := value.(int64); ok && field.Kind() == protoreflect.Int32Kind {
		value = int32(n)
	}
	m.Set(field, protoreflect.ValueOf(value))
	return nil
}

// list returns the states of namespaces.
func (a *API) list(_ context.Context, from *access.Caller, _ *firnv1.ListNamespacesRequest) (answer *firnv1.ListNamespacesResponse, release func(), err error) {
	states, release, err := a.front.List(from)
	if err != nil {
		return nil, nil, err
	}
	answer = &firnv1.ListNamespacesResponse{}
	for _, s := range states {
		answer.Namespaces = append(answer.Namespaces, namespace(s))
	}
	return answer, release, nil
}

func namespace(s issuing.State) *firnv1.Namespace {
	n := &firnv1.Namespace{
		Name: s.Namespace, Kind: s.Kind, Layout: s.Layout, Clock: s.Clock,
		Template: s.Template, Prefix: s.Prefix, Veil: s.Veil, Error: s.Error,
	}
	if l := s.LeaseState; l != nil {
		n.Lease = &firnv1.Lease{
			Pool: s.Pool, Worker: l.Worker, Fence: int64(l.Fence), Until: timestamppb.New(l.Until),
			Left: seconds(l.Left), Renewals: l.Renewals, Losses: l.Losses,
		}
	}
	if g := s.Segment; g != nil {
		n.Segment = &firnv1.Segment{
			Left: g.Left, Lasts: seconds(g.Lasts), Step: g.Step, Ranges: int32(g.Ranges), Fetches: g.Fetches, Waits: g.Waits,
		}
	}
	if q := s.Sequence; q != nil {
		n.Sequence = &firnv1.Sequence{Last: int64(q.Last), Additions: q.Additions, Issued: q.Issued, RequestsPerAddition: q.Batch}
	}
	return n
}

func seconds(s float64) *durationpb.Duration {
	return durationpb.New(time.Duration(s * float64(time.Second)))
}
