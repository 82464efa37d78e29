package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/cmd/firn/internal/settings"
)

// undescribed are the beginnings of what the description leaves out: the page for people, and interfaces that others
// describe.
var undescribed = []string{
	"/{$}", "/", "/console/", "/firn.v1.IDService/", "/firn.v1.LeaseService/", "/grpc.health.v1.Health/", "/grpc.reflection.", // protobuf
	"/api/", "/decodeSnowflakeId", "/cache", "/db", // Leaf
	"/tinyid", "/machines/", "/segments/", "/ids",
}

func TestTheDescriptionHasEachRequest(t *testing.T) {
	s, h := newServer(t, settings.Config{})
	patterns, err := s.Patterns()
	if err != nil {
		t.Fatal(err)
	}
	status, body, header := ask(t, h, "GET", "/openapi.json", "")
	var described struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Codes []string `json:"x-codes"`
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &described); err != nil || status != 200 || header.Get("Content-Type") != "application/json" {
		t.Fatal(status, header, err)
	}
	if len(patterns) < len(described.Paths) {
		t.Fatalf("these are not all patterns: %q", patterns)
	}
	for _, pattern := range patterns {
		left := slices.ContainsFunc(undescribed, func(u string) bool { return pattern == u || len(u) > 1 && strings.HasPrefix(pattern, u) })
		if got := described.Paths[pattern] != nil; got == left {
			t.Errorf("%s: described %v, left out on purpose %v", pattern, got, left)
		}
	}
	page, err := os.ReadFile("../../../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Errors")
	for path, operations := range described.Paths {
		if !strings.Contains(string(page), path) {
			t.Errorf("docs/http.md does not name %s", path)
		}
		for _, o := range operations {
			for status, response := range o.Responses {
				for _, code := range response.Codes {
					if !slices.ContainsFunc(strings.Split(table, "\n"), func(row string) bool {
						return strings.HasPrefix(row, "| "+status) && strings.Contains(row, fmt.Sprintf("`%s`", code))
					}) {
						t.Errorf("docs/http.md has no row %s with %s, which %s may have", status, code, path)
					}
				}
			}
		}
	}
}
