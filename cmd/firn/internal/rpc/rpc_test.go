package rpc_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/firnv1"
)

const allKinds = `
namespaces:
  plain:    {}
  wide:     {pool: wide, layout: 41/0/0/22}
  flakes:   {pool: flakes, layout: sonyflake, ahead: 1s}
  short:    {kind: segment, min_step: 10, max_step: 100, target: 1m, from: 500}
  striped:  {kind: segment, offset: 1, stride: 4}
  hidden:   {kind: segment, veil: {key_env: RPC_TEST_KEYS, bits: 53}}
  txn:      {kind: sequence}
  invoices: {kind: number, template: "INV{yyyy}-{n:5}"}
  sessions: {kind: uuid}
  objects:  {kind: objectid}
  pays:     {kind: serial, prefix: PAY}
  carts:    {prefix: cart}
limits: {batch: 5000}
`

// expand returns all ids of an answer as text.
func expand(answer *firnv1.GenerateResponse) (ids []string) {
	for _, id := range answer.GetIds() {
		ids = append(ids, fmt.Sprint(id))
	}
	for _, run := range answer.GetRuns() {
		for i := range run.GetCount() {
			ids = append(ids, fmt.Sprint(run.GetFirst()+int64(i)*run.GetStride()))
		}
	}
	return append(ids, answer.GetTexts()...)
}

func TestEveryKindIsServedInBothForms(t *testing.T) { overEach(t, testEveryKindIsServedInBothForms) }

func testEveryKindIsServedInBothForms(t *testing.T, over transport) {
	t.Setenv("RPC_TEST_KEYS", "3:000102030405060708090a0b0c0d0e0f")
	client, _ := start(t, allKinds, over).dial(t)
	const number, few, text = "ids", "runs", "texts"
	for namespace, want := range map[string]struct{ runs, form string }{
		"plain": {few, `^\d{18,19}$`}, "wide": {few, `^\d{17,19}$`}, "flakes": {few, `^\d{17,19}$`}, "short": {few, `^\d{3,5}$`},
		"striped": {few, `^\d+$`}, "hidden": {number, `^\d{1,16}$`}, "txn": {few, `^\d+$`},
		"invoices": {text, `^INV20\d\d-\d{5}$`}, "sessions": {text, `^[0-9a-f-]{36}$`}, "objects": {text, `^[0-9a-f]{24}$`},
		"pays": {text, `^PAY20\d{27}$`}, "carts": {text, `^cart_[0-9A-Z]{13}$`},
	} {
		seen := map[string]bool{}
		for name, form := range forms {
			for _, n := range []int{1, 2, 1500, 3000} {
				if namespace == "invoices" {
					n = min(n, 1000)
				}
				answer, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: namespace, Count: count(n), Form: form})
				if err != nil {
					t.Fatalf("%s: %v", namespace, err)
				}
				ids := expand(answer)
				if len(ids) != n {
					t.Errorf("%s, %s: %d ids, want %d", namespace, name, len(ids), n)
				}
				for i, id := range ids {
					if seen[id] || !regexp.MustCompile(want.form).MatchString(id) {
						t.Fatalf("%s, %s: id %d of %d is %q, seen before: %t", namespace, name, i, n, id, seen[id])
					}
					seen[id] = true
				}
				if namespace == "flakes" || namespace == "striped" { // consecutive ids are a stride apart
					stride := map[string]int64{"flakes": 1 << 16, "striped": 4}[namespace]
					for _, id := range ids {
						if a, b := number64(t, id), number64(t, ids[0]); (a-b)%stride != 0 {
							t.Fatalf("%s, %s: %d and %d are not a multiple of %d apart", namespace, name, a, b, stride)
						}
					}
				}
				expected := want.runs
				if expected == few && name == "list" {
					expected = number
				}
				for field, filled := range map[string]int{number: len(answer.GetIds()), few: len(answer.GetRuns()), text: len(answer.GetTexts())} {
					if (filled > 0) != (field == expected) {
						t.Errorf("%s, %s: %d ids in %s, want all in %s", namespace, name, filled, field, expected)
					}
				}
				if size := proto.Size(answer); expected == few && n == 3000 && namespace != "short" && namespace != "flakes" && size > 200 {
					t.Errorf("%s: %d ids in runs take %d bytes", namespace, n, size)
				}
			}
		}
	}
	// The default is a single id.
	answer, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "plain"})
	if err != nil || len(answer.GetIds()) != 1 {
		t.Errorf("%v, %v", answer, err)
	}
}

func number64(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestErrorsHaveACodeAndTheSharedReason(t *testing.T) {
	overEach(t, testErrorsHaveACodeAndTheSharedReason)
}

func testErrorsHaveACodeAndTheSharedReason(t *testing.T, over transport) {
	t.Setenv("RPC_TEST_KEYS", "3:000102030405060708090a0b0c0d0e0f")
	client, _ := start(t, allKinds, over).dial(t)
	generate := func(namespace string, n int) func() error {
		return func() error {
			_, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: namespace, Count: count(n)})
			return err
		}
	}
	stream := func(r *firnv1.GenerateStreamRequest) func() error {
		return func() error {
			s, err := client.GenerateStream(t.Context(), r)
			if err != nil {
				return err
			}
			_, err = s.Recv()
			return err
		}
	}
	decode := func(r *firnv1.DecodeRequest) func() error {
		return func() error {
			_, err := client.Decode(t.Context(), r)
			return err
		}
	}
	for _, c := range []struct {
		call        func() error
		code        codes.Code
		word, words string
	}{
		{generate("plain", 0), codes.InvalidArgument, "bad_count", "from 1 to 5000"},
		{generate("plain", -1), codes.InvalidArgument, "bad_count", "-1"},
		{generate("plain", 5001), codes.ResourceExhausted, "batch_too_large", "limit of 5000"},
		{generate("plain", 1<<31-1), codes.ResourceExhausted, "batch_too_large", "2147483647"},
		{generate("missing", 1), codes.NotFound, "unknown_namespace", "missing"},
		{generate("", 1), codes.NotFound, "unknown_namespace", `names no namespace`},
		{generate(strings.Repeat("x", 1000), 1), codes.NotFound, "unknown_namespace", "xxx"},
		{stream(&firnv1.GenerateStreamRequest{Namespace: "missing"}), codes.NotFound, "unknown_namespace", "missing"},
		{stream(&firnv1.GenerateStreamRequest{Namespace: "plain", Batch: count(0)}), codes.InvalidArgument, "bad_count", "batch 0"},
		{stream(&firnv1.GenerateStreamRequest{Namespace: "plain", Batch: count(5001)}), codes.ResourceExhausted, "batch_too_large", "5001"},
		{stream(&firnv1.GenerateStreamRequest{Namespace: "plain", Total: proto.Int64(0)}), codes.InvalidArgument, "bad_count", "total 0"},
		{stream(&firnv1.GenerateStreamRequest{Namespace: "plain", Total: proto.Int64(-5)}), codes.InvalidArgument, "bad_count", "total -5"},
		{stream(&firnv1.GenerateStreamRequest{Namespace: "plain", Total: proto.Int64(1e9 + 1)}), codes.InvalidArgument, "bad_count", "1000000000"},
		{decode(&firnv1.DecodeRequest{Id: "xyz!"}), codes.InvalidArgument, "bad_id", "xyz!"},
		{decode(&firnv1.DecodeRequest{Id: "1", Format: "roman"}), codes.InvalidArgument, "bad_format", "roman"},
		{decode(&firnv1.DecodeRequest{Id: "1", Layout: "90/1/1/1"}), codes.InvalidArgument, "bad_layout", "90/1/1/1"},
		{decode(&firnv1.DecodeRequest{Id: "1", Namespace: "sessions"}), codes.InvalidArgument, "bad_id", "makes UUIDs of version 7"},
		{decode(&firnv1.DecodeRequest{Id: "1", Namespace: "txn", Format: "readable"}), codes.InvalidArgument, "bad_format", "have no time in them"},
		{decode(&firnv1.DecodeRequest{Id: "1", Namespace: "carts", Format: "hex"}), codes.InvalidArgument, "bad_format", "have one form"},
		{decode(&firnv1.DecodeRequest{Id: "1", Namespace: "txn", Layout: "firn"}), codes.InvalidArgument, "bad_request", "not both"},
		{decode(&firnv1.DecodeRequest{Id: "1", Namespace: "missing"}), codes.NotFound, "unknown_namespace", "missing"},
	} {
		got := status.Convert(c.call())
		var word string
		for _, d := range got.Details() {
			if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == "firn" {
				word = info.GetReason()
			}
		}
		if got.Code() != c.code || word != c.word || !strings.Contains(got.Message(), c.words) {
			t.Errorf("%v %s %q; want %v, %s and %q", got.Code(), word, got.Message(), c.code, c.word, c.words)
		}
	}
}

func TestIssuedIDsDecode(t *testing.T) { overEach(t, testIssuedIDsDecode) }

func testIssuedIDsDecode(t *testing.T, over transport) {
	t.Setenv("RPC_TEST_KEYS", "3:000102030405060708090a0b0c0d0e0f")
	client, _ := start(t, allKinds, over).dial(t)
	made, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	id := firn.ID(made.GetIds()[0])
	got, err := client.Decode(t.Context(), &firnv1.DecodeRequest{Id: firn.Base58.Fixed(id), Format: "base58", Namespace: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	layout := firn.DefaultLayout()
	p, err := layout.Decompose(id)
	if err != nil {
		t.Fatal(err)
	}
	want := &firnv1.DecodeResponse{
		Kind: "snowflake", Id: int64(id), Layout: "firn", Time: got.GetTime(), Tick: int64(p.Tick), Datacenter: p.Datacenter, Worker: p.Worker, Sequence: p.Sequence,
	}
	if !proto.Equal(got, want) || !got.GetTime().AsTime().Equal(layout.Time(p.Tick)) {
		t.Errorf("%v, want %v at %v", got, want, layout.Time(p.Tick))
	}
}

func TestNamespacesAreListedWithTheFieldsOfTheirKind(t *testing.T) {
	overEach(t, testNamespacesAreListedWithTheFieldsOfTheirKind)
}

func testNamespacesAreListedWithTheFieldsOfTheirKind(t *testing.T, over transport) {
	t.Setenv("RPC_TEST_KEYS", "3:000102030405060708090a0b0c0d0e0f")
	client, _ := start(t, allKinds, over).dial(t)
	for _, namespace := range []string{"short", "txn"} {
		if _, err := client.Generate(t.Context(), &firnv1.GenerateRequest{Namespace: namespace, Count: count(3)}); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := client.ListNamespaces(t.Context(), &firnv1.ListNamespacesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*firnv1.Namespace{}
	names := ""
	for _, n := range answer.GetNamespaces() {
		all[n.GetName()] = n
		names += " " + n.GetName()
	}
	if names != " carts flakes hidden invoices objects pays plain sessions short striped txn wide" {
		t.Error(names)
	}
	plain := all["plain"]
	if plain.GetKind() != "snowflake" || plain.GetLease().GetPool() != "default" || plain.GetLayout() != "firn" || plain.GetClock() != "steady" ||
		plain.GetLease().GetFence() == 0 || plain.GetLease().GetLeft().AsDuration() <= 0 || plain.GetLease().GetUntil().AsTime().IsZero() {
		t.Error(plain)
	}
	if s := all["short"]; s.GetKind() != "segment" || s.GetSegment().GetFetches() == 0 || s.GetLease() != nil {
		t.Error(s)
	}
	if s := all["txn"]; s.GetKind() != "sequence" || s.GetSequence().GetLast() != 3 || s.GetSequence().GetIssued() != 3 {
		t.Error(s)
	}
	if s := all["invoices"]; s.GetTemplate() == "" || all["carts"].GetPrefix() != "cart" || all["hidden"].GetVeil() == "" {
		t.Error(s, all["carts"], all["hidden"])
	}
}
