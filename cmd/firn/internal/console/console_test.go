package console_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cmd/firn/internal/console"
)

// browser is the Accept of a browser that opens a page.
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

func serve(t *testing.T) http.Handler {
	t.Helper()
	c, err := console.New()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	c.Register(mux, func(h http.Handler) http.Handler { return h }, http.NotFoundHandler())
	mux.Handle("/{$}", c.Page(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") })))
	return mux
}

// get returns the answer to a request with headers, given as name and value.
func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// files returns the addresses that the page and its modules load.
func files(t *testing.T, h http.Handler) []string {
	t.Helper()
	page := get(h, "/", "Accept", browser).Body.String()
	var found []string
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] {
			seen[path] = true
			found = append(found, path)
		}
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="(console/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		add("/" + m[1])
	}
	for i := 0; i < len(found); i++ {
		for _, m := range regexp.MustCompile(`(?:from |URL\()'(?:\./)?([\w./-]+)'`).FindAllStringSubmatch(get(h, found[i]).Body.String(), -1) {
			add(found[i][:strings.LastIndexByte(found[i], '/')+1] + m[1])
		}
	}
	return found
}

func TestOnlyABrowserGetsThePage(t *testing.T) {
	h := serve(t)
	for accept, page := range map[string]bool{
		browser: true, "text/html": true, "TEXT/HTML; charset=utf-8": true, "application/json, text/html;q=0.1": true,
		"": false, "*/*": false, "text/plain": false, "text/html;q=0": false, "application/json": false, "text/htmlx": false, ";;,": false,
	} {
		w := get(h, "/", "Accept", accept)
		if got := strings.HasPrefix(w.Body.String(), "<!doctype html>"); got != page || w.Header().Get("Vary") == "" {
			t.Errorf("Accept %q: a page: %v, want %v; Vary %q", accept, got, page, w.Header()["Vary"])
		}
	}
}

func TestThePageLoadsItselfFromThisServerOnly(t *testing.T) {
	h := serve(t)
	all := files(t, h)
	if len(all) < 12 {
		t.Errorf("the page loads only %q", all)
	}
	for _, path := range append(all, "/") {
		w := get(h, path, "Accept", browser)
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || w.Header().Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		for _, lax := range []string{"unsafe", "http:", "https:", "*", "blob:"} {
			if strings.Contains(policy, lax) {
				t.Errorf("%s has the policy %s", path, policy)
			}
		}
		if strings.Contains(path, "vendor") {
			continue
		}
		for _, bad := range []string{"innerHTML", "dangerouslySetInnerHTML", "eval(", "document.write", "http://", "https://", `style="`} {
			if body := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", ""); strings.Contains(strings.ToLower(body), strings.ToLower(bad)) {
				t.Errorf("%s has %q", path, bad)
			}
		}
	}
}

func TestThePageIsSmall(t *testing.T) {
	h := serve(t)
	sum := 0
	for _, path := range append(files(t, h), "/") {
		w := get(h, path, "Accept", browser, "Accept-Encoding", "gzip, br")
		sum += w.Body.Len()
		if w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed", path)
			continue
		}
		r, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if plain := get(h, path, "Accept", browser); err != nil || !bytes.Equal(text, plain.Body.Bytes()) || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s differs when it is compressed: %v", path, err)
		}
	}
	if sum > 100_000 {
		t.Errorf("the page has %d bytes", sum)
	}
	t.Logf("%d bytes", sum)
}

func TestABrowserKeepsFilesOfThisVersionOnly(t *testing.T) {
	h := serve(t)
	for _, path := range files(t, h) {
		w := get(h, path)
		if got := w.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: Cache-Control %s", path, got)
		}
		other := "/console/older/" + strings.SplitN(path, "/", 4)[3]
		if old := get(h, other); old.Code != http.StatusOK || old.Header().Get("Cache-Control") != "no-cache" || old.Body.String() != w.Body.String() {
			t.Errorf("%s: %d, Cache-Control %s", other, old.Code, old.Header().Get("Cache-Control"))
		}
		for _, encoding := range []string{"", "gzip"} {
			tag := get(h, path, "Accept-Encoding", encoding).Header().Get("ETag")
			if again := get(h, path, "Accept-Encoding", encoding, "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
				t.Errorf("%s with ETag %s: %d", path, tag, again.Code)
			}
		}
	}
	page := get(h, "/", "Accept", browser)
	if page.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("the page may be kept: %v", page.Header())
	}
	if again := get(h, "/", "Accept", browser, "If-None-Match", page.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("the page is sent again: %d", again.Code)
	}
	for _, path := range []string{"/console/x/nothing.js", "/console/x/", "/console/x/index.html", "/console/x/vendor/README.md", "/console/x/..%2fconsole.go"} {
		if w := get(h, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestTheLibrariesAreThoseOfTheTable(t *testing.T) {
	folder := filepath.Join("assets", "vendor")
	table, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(table)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) == 5 {
			rows[strings.TrimPrefix(cells[0], "| ")] = line
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		switch filepath.Ext(e.Name()) {
		case ".LICENSE":
			if !strings.Contains(string(table), e.Name()) {
				t.Errorf("%s is not in the table", e.Name())
			}
		case ".md":
		default:
			if !strings.Contains(rows[e.Name()], hex.EncodeToString(sum[:])) {
				t.Errorf("%s has the SHA-256 %x, but its row is %q", e.Name(), sum, rows[e.Name()])
			}
		}
	}
}

func TestThePageKnowsThePresets(t *testing.T) {
	var got []struct {
		Name, Text                         string
		Time, Datacenter, Worker, Sequence int
		Unit                               int64 `json:"unit_ns,string"`
		Epoch                              int64 `json:"epoch_ms"`
	}
	if err := json.Unmarshal(get(serve(t), "/console/x/layouts.json").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	presets := firn.Presets()
	if len(got) != len(presets) {
		t.Fatalf("%d presets, want %d", len(got), len(presets))
	}
	for i, p := range presets {
		g := got[i]
		end := g.Epoch + int64(float64(g.Unit)*float64(uint64(1)<<g.Time)/1e6)
		if off := end - p.Layout.End().UnixMilli(); g.Name != p.Name || g.Text != p.Layout.String() || off < -1000 || off > 1000 {
			t.Errorf("%s: %+v ends %d ms off", p.Name, g, off)
		}
	}
}
