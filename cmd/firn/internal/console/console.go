// Package console is the page at / for browsers. It has files and no data: the page asks the interface of HTTP, with the
// token that its user types.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
)

//go:embed assets
var assets embed.FS

// policy lets the page load and ask nothing but this server, and lets no other page frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"

// types are the content types by extension. Those of the machine may differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".json": "application/json",
}

// A file is a file as it is sent.
type file struct {
	contentType  string
	plain, small []byte // small is compressed
	tag          string // of its content
}

// Console serves the page. Make one with [New].
type Console struct {
	page    *file
	files   map[string]*file // by path
	version string           // of all files
}

// New prepares the files.
func New() (*Console, error) {
	raw := map[string][]byte{}
	err := fs.WalkDir(assets, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || types[path.Ext(name)] == "" {
			return err
		}
		text, err := assets.ReadFile(name)
		raw[strings.TrimPrefix(name, "assets/")] = text
		return err
	})
	if err == nil {
		raw["layouts.json"], err = json.Marshal(presets())
	}
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	c := &Console{files: map[string]*file{}, version: versionOf(raw)}
	pack, err := gzip.NewWriterLevel(nil, gzip.BestCompression) // one for all, as each takes 800 kB
	if err != nil {
		return nil, err
	}
	for name, text := range raw {
		if name == "index.html" {
			text = bytes.ReplaceAll(text, []byte("{version}"), []byte(c.version))
		}
		if c.files[name], err = newFile(name, text, pack); err != nil {
			return nil, fmt.Errorf("console: %s: %w", name, err)
		}
	}
	c.page = c.files["index.html"]
	delete(c.files, "index.html")
	return c, nil
}

// versionOf returns a text that differs if any file does.
func versionOf(raw map[string][]byte) string {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		sum := sha256.Sum256(raw[name])
		fmt.Fprintf(all, "%s %x\n", name, sum)
	}
	return hex.EncodeToString(all.Sum(nil))[:16]
}

func newFile(name string, text []byte, pack *gzip.Writer) (*file, error) {
	sum := sha256.Sum256(text)
	f := &file{contentType: types[path.Ext(name)], plain: text, tag: `"` + hex.EncodeToString(sum[:])[:16] + `"`}
	var small bytes.Buffer
	pack.Reset(&small)
	if _, err := pack.Write(text); err != nil {
		return nil, err
	}
	if err := pack.Close(); err != nil {
		return nil, err
	}
	f.small = small.Bytes()
	return f, nil
}

// Register adds the files of the page to a mux.
func (c *Console) Register(mux *http.ServeMux, readable func(http.Handler) http.Handler, missing http.Handler) {
	mux.Handle("/console/{version}/{file...}", readable(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := c.files[r.PathValue("file")]
		if f == nil {
			missing.ServeHTTP(w, r)
			return
		}
		// The name of the folder is the version of the content. Servers of two versions may stand behind one proxy, so
		// another version is answered too, but not kept.
		cache := "no-cache"
		if r.PathValue("version") == c.version {
			cache = "public, max-age=31536000, immutable"
		}
		f.serve(w, r, cache)
	})))
}

// Page serves the page to browsers, and text to others.
func (c *Console) Page(text http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		if Wanted(r) {
			c.page.serve(w, r, "no-cache")
			return
		}
		text.ServeHTTP(w, r)
	})
}

// Wanted reports whether a request is one of a browser for a page.
func Wanted(r *http.Request) bool {
	for _, header := range r.Header["Accept"] {
		for part := range strings.SplitSeq(header, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil || kind != "text/html" {
				continue
			}
			q, err := strconv.ParseFloat(params["q"], 64)
			return err != nil || q > 0
		}
	}
	return false
}

// Location is where the page is, as seen from a path without a folder such as /cache. It is relative, since there may be a
// prefix that a proxy strips.
const Location = "./#/namespaces"

// serve answers with a file.
func (f *file) serve(w http.ResponseWriter, r *http.Request, cache string) {
	h := w.Header()
	h.Set("Cache-Control", cache)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Add("Vary", "Accept-Encoding")
	text, tag := f.plain, f.tag
	compressed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	if compressed {
		text, tag = f.small, strings.TrimSuffix(f.tag, `"`)+`-gzip"`
	}
	h.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.contentType)
	if compressed {
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text) // a failed write means that the client has gone
}

// idBits are the bits of an id beside the sign.
const idBits = 63

// A preset is a layout as the page knows it: what takes an id apart, and says what a layout can do.
type preset struct {
	Name          string `json:"name"`
	Text          string `json:"text"` // what ParseLayout reads
	Bits          string `json:"bits"`
	Time          int    `json:"time"` // without the sign's place
	Datacenter    int    `json:"datacenter"`
	Worker        int    `json:"worker"`
	Sequence      int    `json:"sequence"`
	SequenceFirst bool   `json:"sequence_first"`
	Unit          int64  `json:"unit_ns,string"`
	Epoch         int64  `json:"epoch_ms"`
	Remark        string `json:"remark"`
}

func presets() []preset {
	var all []preset
	for _, p := range firn.Presets() {
		c := p.Layout.Config()
		all = append(all, preset{
			Name: p.Name, Text: p.Layout.String(), Bits: p.Layout.Bits(),
			Time:       min(c.TimeBits, idBits-c.DatacenterBits-c.WorkerBits-c.SequenceBits),
			Datacenter: c.DatacenterBits, Worker: c.WorkerBits, Sequence: c.SequenceBits, SequenceFirst: c.SequenceFirst,
			Unit: int64(c.Unit), Epoch: c.Epoch.UnixMilli(), Remark: p.Remark,
		})
	}
	return all
}
