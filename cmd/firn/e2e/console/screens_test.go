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

// TestEachPageFits opens each page in both widths, languages and themes. A page that is wider than its window
// would scroll sideways.
func TestEachPageFits(t *testing.T) {
	mem := memstore.New(nil)
	for i := range 40 {
		holder(t, mem, fmt.Sprintf("node-%02d.example.org", i))
	}
	at, _ := serve(t, mem, "", kinds+"limits: {rate: {sessions: 1/h}}\n")
	b := open(t, at)
	folder := os.Getenv("SCREENSHOTS")
	b.show("/")
	b.waits(`document.querySelector('.lamp.good') !== null`)
	id := ask(t, at+"/v1/ids/legacy")["ids"].([]any)[0].(string)
	pages := map[string]string{"namespaces": "#/namespaces/orders", "pools": "#/pools/default", "decoder": "#/decoder/" + id + "?layout=twitter", "designer": "#/designer"}
	for _, width := range []int64{1280, 375} {
		for _, theme := range []string{"light", "dark"} {
			for _, language := range []string{"en", "zh-CN"} {
				for name, page := range pages {
					b.do("resize", chromedp.EmulateViewport(width, 900), prefer(theme))
					eval[any](b, `localStorage.setItem('firn.language', `+quote(language)+`)`)
					b.show("/" + page)
					ready := map[string]string{
						"namespaces": `document.querySelector('.chart canvas') !== null`, "pools": `document.querySelector('.grid .own') !== null`,
						"decoder": `document.querySelector('.bits') !== null`, "designer": `document.querySelector('.borders') !== null`,
					}[name]
					if folder != "" && name == "namespaces" {
						load(t, at)
					}
					b.waits(ready)
					if name == "pools" {
						b.click(`.grid .slot.held`)
					}
					if name == "namespaces" {
						b.click(`form.make button`)
						b.waits(`document.querySelector('.made') !== null`)
					}
					what := fmt.Sprintf("%s-%d-%s-%s", name, width, theme, language)
					if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
						t.Errorf("%s is %d pixels too wide", what, over)
					}
					lang, back := eval[string](b, `document.documentElement.lang`), eval[string](b, `getComputedStyle(document.body).backgroundColor`)
					if lang != language || strings.Contains(back, "(15,") != (theme == "dark") {
						t.Errorf("%s has language %s and background %s", what, lang, back)
					}
					if folder != "" {
						picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
						if err != nil {
							t.Fatal(err)
						}
						if err := os.WriteFile(filepath.Join(folder, what+".png"), picture, 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	}
	b.quiet()
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
