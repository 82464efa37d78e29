package rpc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The root of the repository, from here.
const root = "../../../.."

// need returns the first of paths that exists. If there is no such path, it skips the test,
// or fails it where every test must run.
func need(t *testing.T, what string, paths ...string) string {
	t.Helper()
	for _, path := range paths {
		if found, err := filepath.Glob(path); err == nil && len(found) > 0 {
			full, err := filepath.Abs(found[len(found)-1])
			if err != nil {
				t.Fatal(err)
			}
			return full
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: make test installs it", what)
	}
	t.Skipf("%s is missing: make test installs it", what)
	return ""
}

// run returns what a program printed to standard output and standard error.
func run(t *testing.T, program string, args ...string) (output string, ok bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return string(out), err == nil
}

func TestGrpcurl(t *testing.T) {
	grpcurl := need(t, "grpcurl", root+"/.tools/grpcurl-v*")
	s := start(t, benchConfig)
	for _, c := range []struct {
		args string
		ok   bool
		want []string
	}{
		{"ADDRESS list", true, []string{"firn.v1.IDService\n", "grpc.health.v1.Health\n"}},
		{"ADDRESS list firn.v1.IDService", true, []string{"firn.v1.IDService.GenerateStream"}},
		{"ADDRESS describe firn.v1.GenerateRequest", true, []string{"optional int32 count = 2", ".firn.v1.Form form = 3"}},
		{`-d {"namespace":"users","count":2} ADDRESS firn.v1.IDService/Generate`, true, []string{`"ids": [`, `"1"`, `"2"`}},
		{`-d {"namespace":"users","count":1000,"form":"FORM_RUNS"} ADDRESS firn.v1.IDService/Generate`, true, []string{`"count": 1000`, `"stride": "1"`}},
		{`-d {"namespace":"users","total":5,"batch":2} ADDRESS firn.v1.IDService/GenerateStream`, true, []string{`"1007"`}},
		{`-H authorization:Bearer\tsecret ADDRESS firn.v1.IDService/ListNamespaces`, true, []string{`"kind": "segment"`, `"pool": "default"`}},
		{`-H authorization:Basic\tsecret ADDRESS firn.v1.IDService/ListNamespaces`, false, []string{"Code: Unauthenticated", `"unauthorized"`}},
		{`-d {"namespace":"users","count":0} ADDRESS firn.v1.IDService/Generate`, false, []string{"Code: InvalidArgument", `"reason": "bad_count"`}},
		{`-d {"namespace":"none"} ADDRESS firn.v1.IDService/Generate`, false, []string{"Code: NotFound", `"reason": "unknown_namespace"`, `"domain": "firn"`}},
		{`-d {"id":"249682737550880157"} ADDRESS firn.v1.IDService/Decode`, true, []string{`"sequence": "3485"`, `"time": "2026-11-20T23:50:03.513Z"`}},
		{"ADDRESS grpc.health.v1.Health/Check", true, []string{`"status": "SERVING"`}},
		{`-d {"service":"firn.v1.IDService"} ADDRESS grpc.health.v1.Health/Check`, true, []string{`"status": "SERVING"`}},
		{`-import-path ` + root + `/proto -proto firn/v1/id.proto -d {"namespace":"users"} ADDRESS firn.v1.IDService/Generate`, true, []string{`"ids"`}},
	} {
		args := []string{"-plaintext"}
		for arg := range strings.FieldsSeq(strings.ReplaceAll(c.args, "ADDRESS", s.address)) {
			args = append(args, strings.ReplaceAll(arg, `\t`, " "))
		}
		out, ok := run(t, grpcurl, args...)
		if ok != c.ok {
			t.Errorf("grpcurl %s: succeeded: %t\n%s", c.args, ok, out)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("grpcurl %s: %s; want %s", c.args, out, want)
			}
		}
	}
}

// python is a typical client, with the classes that protoc generates.
const python = `
import sys
import grpc
from firn.v1 import id_pb2 as firn

def expand(answer):
    yield from answer.ids
    for run in answer.runs:
        yield from range(run.first, run.first + run.count * run.stride, run.stride)
    yield from answer.texts

with grpc.insecure_channel(sys.argv[1]) as channel:
    def method(kind, name, answer):
        return kind("/firn.v1.IDService/" + name, lambda message: message.SerializeToString(), answer.FromString)
    generate = method(channel.unary_unary, "Generate", firn.GenerateResponse)
    stream = method(channel.unary_stream, "GenerateStream", firn.GenerateResponse)

    ids = set()
    for form in (firn.FORM_LIST, firn.FORM_RUNS):
        ids.update(expand(generate(firn.GenerateRequest(namespace="users", count=1000, form=form), timeout=5)))
        for answer in stream(firn.GenerateStreamRequest(namespace="wide", total=2500, form=form), timeout=5):
            ids.update(expand(answer))
    print(len(ids), "ids")

    try:
        generate(firn.GenerateRequest(namespace="none"), timeout=5)
    except grpc.RpcError as e:
        print(e.code().name, e.details())
`

func TestPython(t *testing.T) {
	protoc := need(t, "protoc", "/usr/bin/protoc")
	need(t, "the schema of times", "/usr/include/google/protobuf/timestamp.proto")
	need(t, "grpcio of Python", "/usr/lib/python3/dist-packages/grpc")
	folder := t.TempDir()
	if out, ok := run(t, protoc, "-I", root+"/proto", "--python_out="+folder, "firn/v1/id.proto"); !ok {
		t.Fatal(out)
	}
	client := filepath.Join(folder, "client.py")
	if err := os.WriteFile(client, []byte(python), 0o600); err != nil {
		t.Fatal(err)
	}
	out, ok := run(t, "/usr/bin/python3", client, start(t, benchConfig).address)
	if !ok || !strings.HasPrefix(out, "7000 ids\nNOT_FOUND unknown namespace") {
		t.Error(out)
	}
}
