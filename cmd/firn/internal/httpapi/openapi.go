package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// about introduces the description.
const about = `Firn issues unique ids. Ids are strings in JSON, since JavaScript loses integers above 2^53.

Where GET is allowed, HEAD is too, except for ids. Other methods get 405 with the code method_not_allowed. New codes, fields and
parameters may be added; a parameter that is not listed is refused below /v1 and at /readyz.

The same server also answers gRPC, gRPC-Web and Connect, the Redis protocol, and clients of Leaf, TinyId and CosId, which have
descriptions of their own.`

// describe answers the description, which is the same for everyone and on each server of a version.
func (a *API) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header()["Content-Type"] = typeJSON
	_, _ = w.Write(a.description()) // a failed write means that the client has gone
	return nil
}

// describe returns the description of requests, in OpenAPI 3.1.
func describe(routes []*Route) []byte {
	paths, named := schema{}, schema{"Error": of[failed]()}
	for _, d := range routes {
		operations := schema{}
		for method := range strings.SplitSeq(d.Methods, ", ") {
			if method != http.MethodHead {
				operations[strings.ToLower(method)] = d.operation(method)
			}
		}
		paths[d.Path] = operations
		for _, body := range d.Answer {
			if body.name != "" {
				named[body.name] = body.schema()
			}
		}
	}
	document, _ := json.Marshal(schema{ // its values have a JSON
		"openapi": "3.1.0",
		"info":    schema{"title": "Firn", "version": "1", "description": about, "license": schema{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers": []schema{{"url": "/"}},
		"paths":   paths,
		"components": schema{
			"schemas": named,
			"securitySchemes": schema{
				"token":       schema{"type": "http", "scheme": "bearer"},
				"certificate": schema{"type": "mutualTLS"},
			},
		},
	})
	return append(document, '\n')
}

func (d *Route) operation(method string) schema {
	parameters := []schema{}
	for part := range strings.SplitSeq(d.Path, "/") {
		if name := strings.Trim(part, "{}"); name != part {
			parameters = append(parameters, schema{"name": name, "in": "path", "required": true, "description": inPath[name], "schema": formOf(name)})
		}
	}
	for _, p := range d.Query {
		form := p.Form
		if p.Many {
			form = schema{"type": "array", "items": form}
		}
		parameters = append(parameters, schema{"name": p.Name, "in": "query", "description": p.Help, "schema": form})
	}
	for _, p := range d.Header {
		parameters = append(parameters, schema{"name": p.Name, "in": "header", "description": p.Help, "schema": p.Form})
	}
	security := []schema{{}} // none is needed of callers on this machine, or for anonymous names
	if !d.Open {
		security = append(security, schema{"token": []string{}}, schema{"certificate": []string{}})
	}
	return schema{
		"operationId": strings.ToLower(method) + strings.ToUpper(d.Name[:1]) + d.Name[1:],
		"summary":     d.Says, "parameters": parameters, "security": security, "responses": d.responses(),
	}
}

// formOf returns the schema of a parameter of paths.
func formOf(name string) schema {
	if name == "worker" {
		return schema{"type": "integer", "minimum": 0}
	}
	return text
}

func (d *Route) responses() schema {
	content := schema{}
	for kind, body := range d.Answer {
		if body.name != "" {
			content[kind] = schema{"schema": reference(body.name)}
		} else {
			content[kind] = schema{"schema": body.schema()}
		}
	}
	all := schema{"200": schema{"description": "success", "content": content}}
	for status, codes := range d.errors() {
		failure := schema{
			"description": fmt.Sprintf("%s: %s", http.StatusText(status), strings.Join(codes, ", ")),
			"content":     schema{"application/json": schema{"schema": reference("Error")}},
			"x-codes":     codes,
		}
		switch status {
		case http.StatusUnauthorized:
			failure["headers"] = schema{"WWW-Authenticate": schema{"schema": text}}
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			failure["headers"] = schema{"Retry-After": schema{"description": "seconds; without it a retry makes no sense", "schema": schema{"type": "integer"}}}
		}
		all[strconv.Itoa(status)] = failure
	}
	return all
}

// errors returns the codes of all errors that the request may have, by status.
func (d *Route) errors() map[int][]string {
	all := map[int][]string{}
	for _, some := range []map[int][]string{d.Codes, commonCodes} {
		for status, codes := range some {
			all[status] = append(all[status], codes...)
		}
	}
	if !d.Open {
		all[http.StatusUnauthorized] = []string{"unauthorized"}
	}
	if !d.Always {
		all[http.StatusServiceUnavailable] = append(all[http.StatusServiceUnavailable], "starting")
	}
	for _, codes := range all {
		slices.Sort(codes)
	}
	return all
}
