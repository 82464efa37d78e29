package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/cmd/firn/firnv1"
	"github.com/firn-id/firn/cmd/firn/firnv1/firnv1connect"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

const verbsToken = "the-token-of-this-test"

// A verbsClient sends each kind of request to one server.
type verbsClient struct {
	t    *testing.T
	base string
	rpc  firnv1connect.IDServiceClient
	rdb  *redis.Client
}

// startShapes runs a server with a namespace shop.kN for each shape.
func startShapes(t *testing.T, shapes []settings.Shape) *verbsClient {
	t.Helper()
	config := fmt.Sprintf("store: 'memory:'\nlisten: {http: '127.0.0.1:0', resp: '127.0.0.1:0'}\ncosid: true\n"+
		"tokens: [{name: all, sha256: %x, namespaces: ['*'], unveil: true}]\nnamespaces:\n", sha256.Sum256([]byte(verbsToken)))
	for i, s := range shapes {
		config += fmt.Sprintf("  shop.k%d: {kind: %s", i, s.KindName())
		if s.Veil != nil {
			config += ", veil: {key_env: KEYS_OF_THIS_TEST}"
		}
		if s.Prefix != "" {
			config += ", prefix: " + s.Prefix
		}
		if s.Stride > 1 {
			config += fmt.Sprintf(", stride: %d", s.Stride)
		}
		if s.Of().Source == settings.Template {
			config += ", template: 'B{yyyy}-{n:6}'"
		}
		config += "}\n"
	}
	file := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("firn", "serve", "--config", file)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "KEYS_OF_THIS_TEST=3:000102030405060708090a0b0c0d0e0f")
	http, resp, _ := serveUntilTheEnd(t, cmd)
	c := &verbsClient{t: t, base: "http://127.0.0.1:" + http}
	c.rpc = firnv1connect.NewIDServiceClient(c, c.base)
	c.rdb = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + resp, Password: verbsToken})
	t.Cleanup(func() { _ = c.rdb.Close() })
	return c
}

// Do implements [connect.HTTPClient], with the token.
func (c *verbsClient) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+verbsToken)
	return http.DefaultClient.Do(r)
}

// over returns the body of an answer with status 2xx.
func (c *verbsClient) over(method, path string) (string, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%d: %s", answer.StatusCode, body)
	}
	return string(body), err
}

// one returns the id that is the whole body of an answer.
func (c *verbsClient) one(method, path string) ([]string, error) {
	body, err := c.over(method, path)
	if err == nil && body == "" { // TinyId's failure
		err = errors.New("an empty answer")
	}
	return []string{body}, err
}

// listed returns the ids that an answer has in a field.
func (c *verbsClient) listed(path, field string) ([]string, error) {
	body, err := c.over("POST", path)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	var ids []json.Number
	if err := errors.Join(json.Unmarshal([]byte(body), &fields), json.Unmarshal(fields[field], &ids)); err != nil {
		var texts []string
		if json.Unmarshal(fields[field], &texts) == nil && len(texts) > 0 {
			return texts, nil
		}
		return nil, fmt.Errorf("%s: %w", body, err)
	}
	var texts []string
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	if len(texts) == 0 {
		return nil, errors.New(body)
	}
	return texts, nil
}

// row returns count numbers, so far apart.
func row(first, count, apart int64) (ids []string) {
	for i := range count {
		ids = append(ids, strconv.FormatInt(first+i*apart, 10))
	}
	return ids
}

// tinyRange returns the ids of a range in TinyId's form.
func tinyRange(most, current, delta, remainder int64) (ids []string) {
	for id := current + 1; id <= most; id++ {
		if id%delta == remainder {
			ids = append(ids, strconv.FormatInt(id, 10))
		}
	}
	return ids
}

// requests returns a function for each request, by its form. It returns the ids that the client then has.
func (c *verbsClient) requests() map[string]func(name, id string) ([]string, error) {
	ctx := c.t.Context()
	generated := func(m *firnv1.GenerateResponse) []string {
		ids := slices.Clone(m.GetTexts())
		for _, id := range m.GetIds() {
			ids = append(ids, strconv.FormatInt(id, 10))
		}
		return ids
	}
	tiny := func(form string) string { return "/tinyid/id/" + form + "?token=" + verbsToken + "&bizType=" }
	return map[string]func(name, id string) ([]string, error){
		"POST /v1/ids/NAME":              func(name, _ string) ([]string, error) { return c.listed("/v1/ids/"+name, "ids") },
		"POST /v1/ids/NAME?numbers=true": func(name, _ string) ([]string, error) { return c.listed("/v1/ids/"+name+"?numbers=true", "ids") },
		"GET /v1/decode/ID?namespace=NAME": func(name, id string) ([]string, error) {
			_, err := c.over("GET", "/v1/decode/"+id+"?namespace="+name)
			return nil, err
		},
		"Generate": func(name, _ string) ([]string, error) {
			answer, err := c.rpc.Generate(ctx, connect.NewRequest(&firnv1.GenerateRequest{Namespace: name}))
			if err != nil {
				return nil, err
			}
			return generated(answer.Msg), nil
		},
		"GenerateStream": func(name, _ string) (ids []string, err error) {
			stream, err := c.rpc.GenerateStream(ctx, connect.NewRequest(&firnv1.GenerateStreamRequest{Namespace: name, Total: new(int64(2))}))
			if err != nil {
				return nil, err
			}
			for stream.Receive() {
				ids = append(ids, generated(stream.Msg())...)
			}
			return ids, errors.Join(stream.Err(), stream.Close())
		},
		"Decode": func(name, id string) ([]string, error) {
			_, err := c.rpc.Decode(ctx, connect.NewRequest(&firnv1.DecodeRequest{Namespace: name, Id: id}))
			return nil, err
		},
		"FIRN.NEXT NAME": func(name, _ string) ([]string, error) {
			answer, err := c.rdb.Do(ctx, "FIRN.NEXT", name).Slice()
			return []string{fmt.Sprint(answer...)}, err
		},
		"FIRN.DECODE NAME ID": func(name, id string) ([]string, error) { return nil, c.rdb.Do(ctx, "FIRN.DECODE", name, id).Err() },
		"INCR NAME": func(name, _ string) ([]string, error) {
			id, err := c.rdb.Incr(ctx, name).Result()
			return row(id, 1, 1), err
		},
		"SET NAME 0 NX": func(name, _ string) ([]string, error) {
			if set, err := c.rdb.SetNX(ctx, name, 0, 0).Result(); set || err != nil {
				return nil, errors.Join(err, fmt.Errorf("set: %v", set))
			}
			return nil, nil
		},
		`redisson.getIdGenerator("NAME").nextId()`: func(name, _ string) ([]string, error) {
			taken, err := c.rdb.EvalSha(ctx, "e57ac7b74498ebd39874c49d73184be9513f8789", []string{name, "{" + name + "}:allocation"}).Int64Slice()
			if err != nil {
				return nil, err
			}
			return row(taken[0], taken[1], 1), nil
		},
		"INCRBY NAME 3": func(name, _ string) ([]string, error) {
			last, err := c.rdb.IncrBy(ctx, name, 3).Result()
			return row(last-2, 3, 1), err
		},
		"/api/snowflake/get/NAME": func(name, _ string) ([]string, error) { return c.one("GET", "/api/snowflake/get/"+name) },
		"/api/segment/get/NAME":   func(name, _ string) ([]string, error) { return c.one("GET", "/api/segment/get/"+name) },
		"nextId":                  func(name, _ string) ([]string, error) { return c.listed(tiny("nextId")+name, "data") },
		"nextIdSimple":            func(name, _ string) ([]string, error) { return c.one("POST", tiny("nextIdSimple")+name) },
		"nextSegmentId": func(name, _ string) ([]string, error) {
			body, err := c.over("POST", tiny("nextSegmentId")+name)
			var answer struct {
				Data *struct{ MaxID, CurrentID, Delta, Remainder int64 }
			}
			if err == nil {
				err = json.Unmarshal([]byte(body), &answer)
			}
			if err != nil || answer.Data == nil {
				return nil, errors.Join(err, errors.New(body))
			}
			return tinyRange(answer.Data.MaxID, answer.Data.CurrentID, answer.Data.Delta, answer.Data.Remainder), nil
		},
		"nextSegmentIdSimple": func(name, _ string) ([]string, error) {
			body, err := c.over("POST", tiny("nextSegmentIdSimple")+name)
			var current, loading, most, delta, remainder int64
			if err == nil {
				_, err = fmt.Sscanf(body, "%d,%d,%d,%d,%d", &current, &loading, &most, &delta, &remainder)
			}
			if err != nil {
				return nil, err
			}
			return tinyRange(most, current, delta, remainder), nil
		},
		"GET /ids/as-string/NAME": func(name, _ string) ([]string, error) { return c.one("GET", "/ids/as-string/"+name) },
		"GET /ids/NAME":           func(name, _ string) ([]string, error) { return c.one("GET", "/ids/"+name) },
		"PATCH /segments/NAMESPACE/NAME": func(name, _ string) ([]string, error) {
			body, err := c.over("PATCH", "/segments/"+strings.Replace(name, ".", "/", 1)+"?step=5")
			if err != nil {
				return nil, err
			}
			last, err := strconv.ParseInt(body, 10, 64)
			return row(last-4, 5, 1), err
		},
		"POST /segments/distributor/NAMESPACE/NAME": func(name, _ string) ([]string, error) {
			_, err := c.over("POST", "/segments/distributor/"+strings.Replace(name, ".", "/", 1)+"?offset=0&step=5")
			return nil, err
		},
	}
}

// Each request, to a namespace of each shape, is answered or refused as the table of docs/configuration.md says; and all ids that
// the protocols give out of one namespace differ.
func TestANamespaceMeansTheSameInEveryProtocol(t *testing.T) {
	shapes := settings.Shapes()
	c := startShapes(t, shapes)
	requests := c.requests()
	cells := 0
	for i, s := range shapes {
		name := fmt.Sprintf("shop.k%d", i)
		given := map[string]string{}
		first, err := requests["POST /v1/ids/NAME"](name, "")
		if err != nil {
			t.Fatal(err)
		}
		given[first[0]] = "the first"
		for range 2 {
			for _, r := range settings.Requests {
				send := requests[r.Form]
				if send == nil {
					t.Fatalf("no function sends %s", r.Form)
				}
				cells++
				ids, err := send(name, first[0])
				if why := s.Lacks(r.Verb); (err == nil) != (why == "") {
					t.Errorf("%s: %s, %s: %v %v, want an error: %t", s.Name, r.Protocol, r.Form, ids, err, why != "")
					continue
				}
				if err != nil {
					continue
				}
				for _, id := range ids {
					if by := given[id]; by != "" || id == "" {
						t.Errorf("%s: %s gives %q, which %s had given", s.Name, r.Form, id, by)
					}
					given[id] = r.Form
				}
			}
		}
	}
	if want := 2 * len(shapes) * len(settings.Requests); cells != want {
		t.Errorf("%d requests were sent, want %d", cells, want)
	}
}
