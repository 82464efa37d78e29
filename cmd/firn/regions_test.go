package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store/storetest/servers"
)

// take requests ids of a namespace. ok is false if the server answers with an error, as without its store.
// Goroutines may call it.
func (s *served) take(namespace string, count int) (ids []string, ok bool) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, fmt.Sprintf("http://%s/v1/ids/%s?count=%d", s.address, namespace, count), nil)
	if err != nil {
		s.t.Error(err)
		return nil, false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return nil, false
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Error(err)
		return nil, false
	}
	if answer.StatusCode != http.StatusOK {
		return nil, false
	}
	var found struct{ IDs []string }
	if err := json.Unmarshal(body, &found); err != nil || len(found.IDs) != count {
		s.t.Errorf("%s: %d ids, want %d: %v", namespace, len(found.IDs), count, err)
		return nil, false
	}
	return found.IDs, true
}

// site starts a server with a configuration.
func site(t *testing.T, configuration string) *served {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "firn.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	return startServed(t, folder, "off")
}

// TestSitesWithStoresOfTheirOwn runs the two files of docs/regions.md, each over a Redis. Both sites
// have the same worker, so only the datacenter tells their ids apart.
func TestSitesWithStoresOfTheirOwn(t *testing.T) {
	t.Parallel()
	blocks := snippets(t, "docs/regions.md", "## Two sites, each with its store")
	if len(blocks) != 3 || blocks[1].language != "yaml" || blocks[2].language != "yaml" {
		t.Fatalf("the page has %d blocks, want a command and two files", len(blocks))
	}
	stores := []*servers.Server{servers.Redis(t), servers.Redis(t)}
	var sites []*served
	for i, b := range blocks[1:] {
		page := fmt.Sprintf("10.%d.0.5:6379", i+1)
		if strings.Count(b.text, page) != 1 || strings.Count(b.text, "datacenter: ") != 1 {
			t.Fatalf("the file of site %d has no store %s or no datacenter:\n%s", i+1, page, b.text)
		}
		sites = append(sites, site(t, strings.NewReplacer(page, stores[i].Addr(), "datacenter: ", "worker: 3, datacenter: ",
			"listen: {http: 0.0.0.0:7070, resp: 0.0.0.0:7071}\n", "").Replace(b.text)))
	}
	layout, err := firn.ParseLayout("41/3/7/12")
	if err != nil {
		t.Fatal(err)
	}
	had := map[string]bool{}
	check := func(i int, namespace string) {
		t.Helper()
		ids, ok := sites[i].take(namespace, 2000)
		if !ok {
			t.Fatalf("site %d issues no %s", i+1, namespace)
		}
		for _, text := range ids {
			id, err := firn.ParseID(text)
			if err != nil {
				t.Fatal(err)
			}
			if had[namespace+text] {
				t.Fatalf("%s %d was issued twice", namespace, id)
			}
			had[namespace+text] = true
			if p, err := layout.Decompose(id); namespace == "orders" && (err != nil || p.Datacenter != int64(i+1) || p.Worker != 3) {
				t.Fatalf("site %d issues %d of datacenter %d, worker %d: %v", i+1, id, p.Datacenter, p.Worker, err)
			}
			if namespace == "items" && int64(id)%4 != int64(i+1) {
				t.Fatalf("site %d issues item %d", i+1, id)
			}
		}
	}
	both := func() {
		t.Helper()
		for range 5 {
			for i := range sites {
				check(i, "orders")
				check(i, "items")
			}
		}
	}
	both()
	stores[0].Kill()
	for range 5 { // up to the fence; the other site does not notice
		check(0, "orders")
		check(1, "orders")
		check(1, "items")
	}
	used := 0
	for ; ; used++ {
		if _, ok := sites[0].take("items", 2000); !ok {
			break
		}
		if used > 10_000 {
			t.Fatal("without its store site 1 issues items for ever")
		}
	}
	check(0, "orders")
	stores[0].Restart()
	until(t, "site 1 issues items again", func() bool { _, ok := sites[0].take("items", 1); return ok })
	both()
}

// TestSitesWithoutDatacentersCollide shows what the page says must never be done.
func TestSitesWithoutDatacentersCollide(t *testing.T) {
	t.Parallel()
	var sites []*served
	for range 2 {
		sites = append(sites, site(t, "store: redis://"+servers.Redis(t).Addr()+"/0\nnamespaces: {orders: {worker: 3}, items: {kind: segment}}\n"))
	}
	for _, namespace := range []string{"orders", "items"} {
		// At the full rate all sequences of a millisecond are used, so ids made at the same time are equal.
		type answer struct {
			site int
			ids  []string
		}
		had, twice := map[string]int{}, ""
		for deadline := time.Now().Add(time.Minute); !t.Failed() && twice == "" && time.Now().Before(deadline); {
			answers := make(chan answer, len(sites))
			for i, s := range sites {
				go func() { ids, _ := s.take(namespace, 100_000); answers <- answer{i, ids} }()
			}
			for range sites {
				for a := <-answers; len(a.ids) > 0; a.ids = a.ids[1:] {
					if other, ok := had[a.ids[0]]; ok && other != a.site {
						twice = a.ids[0]
					}
					had[a.ids[0]] = a.site
				}
			}
		}
		if _, err := strconv.ParseInt(twice, 10, 64); err != nil {
			t.Errorf("%s: of %d ids none was issued by both sites", namespace, len(had))
		}
	}
}
