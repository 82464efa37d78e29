package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn/store/memstore"
)

// A page is what the tests look at: an address, what it shows when it is ready, and what to click then.
type page struct{ name, at, ready, click, then string }

var pages = []page{
	{"namespaces", "#/namespaces/orders", `.chart canvas`, `form.make button`, `.made`},
	{"ranges", "#/namespaces/users", `.chart canvas`, "", ""},
	{"pools", "#/pools/default", `.grid .own`, `.grid .held`, `.inner dd`},
	{"release", "#/pools/default", `.inner button`, `.inner button`, `[role=alertdialog]`}, // of the worker chosen before
	{"store", "#/store", `.findings li`, "", ""},
	{"decoder", "#/decoder/1541815603606036480?layout=twitter", `.bits`, "", ""},
	{"plausible", "#/decoder/1541815603606036480", `.likely`, "", ""},
	{"refused", "#/decoder/!", `[role=alert]`, "", ""},
	{"designer", "#/designer", `.borders`, "", ""},
}

// decoded has a namespace for each form of ids that the decoder reads.
const decoded = kinds + `  pays: {kind: serial, prefix: PAY, check: mod97}
  invoices: {kind: number, template: "INV{yyyyMMdd}-{n:6}"}
  files: {kind: objectid}
  tickets: {kind: segment, prefix: tkt}
  hidden: {veil: {key_env: CONSOLE_VEIL}}
limits: {rate: {sessions: 1/h}}
`

// decoders returns a page of the decoder for an id of each namespace.
func decoders(t *testing.T, at string) (all []page) {
	t.Helper()
	for _, name := range []string{"users", "txn", "sessions", "legacy", "pays", "invoices", "files", "tickets", "hidden"} {
		ids, _ := ask(t, at+"/v1/ids/"+name)["ids"].([]any)
		if len(ids) != 1 {
			t.Fatalf("%s gives %v", name, ids)
		}
		all = append(all, page{"decoder-" + name, "#/decoder/" + ids[0].(string) + "?namespace=" + name, `.facts dd`, "", ""})
	}
	return all
}

// TestEachPageFitsAndCanBeUsedByEveryone opens each page in both widths, languages and themes. A page that is wider than
// its window would scroll sideways. axe finds what people with a screen reader, a keyboard or weak eyes cannot use.
func TestEachPageFitsAndCanBeUsedByEveryone(t *testing.T) {
	mem := memstore.New(nil)
	for i := range 40 {
		holder(t, mem, fmt.Sprintf("node-%02d.example.org", i))
	}
	t.Setenv("CONSOLE_VEIL", "1:"+strings.Repeat("ab", 32))
	at, _ := serve(t, mem, "", decoded)
	pages := append(pages, decoders(t, at)...)
	b := open(t, at)
	folder, source := os.Getenv("SCREENSHOTS"), axe(t)
	b.show("/")
	b.waits(`document.querySelector('.lamp.good') !== null`)
	ask(t, at+"/v1/ids/orders?count=0") // an error to count
	if folder != "" {
		load(t, at)
	}
	eval[int](b, source+"; 0")
	for _, language := range []string{"en", "zh-CN"} {
		if language != "en" {
			b.click(`.tools button`)
		}
		for _, width := range []int64{1280, 375} {
			for _, theme := range []string{"light", "dark"} {
				if folder == "" && (theme == "dark") != (width == 375) {
					continue // half of them show all widths and all colours
				}
				b.do("resize", chromedp.EmulateViewport(width, 900), prefer(theme))
				for _, page := range pages {
					what := fmt.Sprintf("%s-%d-%s-%s", page.name, width, theme, language)
					b.turn(page.at)
					b.waits(`document.querySelector('` + page.ready + `') !== null`)
					if page.click != "" {
						eval[any](b, `document.querySelector('`+page.click+`').click()`)
						b.waits(`document.querySelector('` + page.then + `') !== null`)
					}
					if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
						t.Errorf("%s is %d pixels too wide", what, over)
					}
					lang, back := eval[string](b, `document.documentElement.lang`), eval[string](b, `getComputedStyle(document.body).backgroundColor`)
					if lang != language || strings.Contains(back, "(15,") != (theme == "dark") {
						t.Errorf("%s has language %s and background %s", what, lang, back)
					}
					if language == "en" {
						if found := violations(b); found != "" {
							t.Errorf("%s:\n%s", what, found)
						}
					} else if strings.Contains(b.text(), "a counter made") {
						t.Errorf("%s has a note in English", what)
					}
					if folder != "" {
						b.picture(filepath.Join(folder, what+".png"))
					}
				}
			}
		}
	}
	b.quiet()
}

// axe returns the source of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", ".tools", "clients", "node_modules", "axe-core", "axe.min.js"))
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("axe-core is missing: run scripts/need-clients: %v", err)
	default:
		t.Skip("axe-core is missing: scripts/need-clients installs it")
	}
	return string(text)
}

// violations returns what axe finds in the page.
func violations(b *tab) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	const each = `v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 200) + ' ' + (n.any[0]?.message ?? '')).join('\n  ')`
	found, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`axe.run({resultTypes: ['violations']}).then((r) => r.violations.map((v) => %s).join('\n'))`, each), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// picture writes what the page looks like.
func (b *tab) picture(to string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(to, picture, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// prefer sets the theme that the user prefers.
func prefer(theme string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		return chromedp.Void{}, err
	}
}

// load asks for ids for some seconds, so that pictures have something to show.
func load(t *testing.T, at string) {
	t.Helper()
	for end, i := time.Now().Add(6*time.Second), 0; time.Now().Before(end); i++ {
		for _, path := range []string{fmt.Sprintf("orders?count=%d", 1+i*i%173), "users?count=20", "txn", "sessions", "legacy?count=7"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/v1/ids/"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
}
