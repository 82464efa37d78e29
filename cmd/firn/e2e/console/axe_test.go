package console

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn/store/memstore"
)

// axe returns the source of axe-core, which finds what people with a screen reader, a keyboard or weak eyes cannot use.
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

func TestAxeFindsNothingOnAnyPage(t *testing.T) {
	source := axe(t)
	mem := memstore.New(nil)
	holder(t, mem, "elsewhere")
	at, _ := serve(t, mem, "", kinds)
	b := open(t, at)
	b.show("/")
	b.waits(`document.querySelector('.lamp.good') !== null`)
	id := ask(t, at+"/v1/ids/legacy")["ids"].([]any)[0].(string)
	ask(t, at+"/v1/ids/orders?count=0") // an error to count
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 375} {
			b.do("resize", chromedp.EmulateViewport(width, 900), prefer(theme))
			for _, page := range []struct{ address, ready, click string }{
				{"#/namespaces/orders", `document.querySelector('.chart canvas') !== null`, `form.make button`},
				{"#/pools/default", `document.querySelector('.grid .own') !== null`, `.grid .held`},
				{"#/decoder/" + id, `document.querySelector('.encodings') !== null`, ""},
				{"#/decoder/!", `document.querySelector('[role=alert]') !== null`, ""},
				{"#/designer", `document.querySelector('.borders') !== null`, ""},
			} {
				b.show("/" + page.address)
				b.waits(page.ready)
				if page.click != "" {
					b.click(page.click)
				}
				if found := violations(b, source); found != "" {
					t.Errorf("%s, %s, %d pixels:\n%s", page.address, theme, width, found)
				}
			}
		}
	}
	b.quiet()
}

// violations returns what axe finds in the page.
func violations(b *tab, source string) string {
	b.t.Helper()
	eval[int](b, source+"; 0")
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	const each = `v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 200) + ' ' + (n.any[0]?.message ?? '')).join('\n  ')`
	found, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`axe.run().then((r) => r.violations.map((v) => %s).join('\n'))`, each), chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}
