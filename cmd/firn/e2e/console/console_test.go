package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/firn-id/firn/cmd/firn/internal/access"
	"github.com/firn-id/firn/cmd/firn/internal/storeurl"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

const kinds = `namespaces:
  orders: {}
  users: {kind: segment, min_step: 1000, max_step: 100000}
  txn: {kind: sequence}
  sessions: {kind: uuid}
  legacy: {layout: twitter, pool: old}
`

// ask returns the JSON of an answer.
func ask(t testing.TB, url string) map[string]any {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestANamespaceMakesIDsThatTheServerReadsInEachEncoding(t *testing.T) {
	url, _ := serve(t, memstore.New(nil), "", kinds)
	b := open(t, url)
	b.show("/")
	for _, name := range []string{"orders", "users", "txn", "sessions", "legacy"} {
		b.shows(name)
	}
	b.click(`a[href="#/namespaces/orders"]`)
	b.click(`form.make button`)
	b.waits(`document.querySelectorAll('.made .encodings tr').length === 8`)
	rows := eval[[][]string](b, `[...document.querySelectorAll('.made .encodings tr')].map(tr => [tr.querySelector('th').innerText, tr.querySelector('code').innerText])`)
	for _, row := range rows {
		if got := ask(t, url+"/v1/decode/"+row[1]+"?namespace=orders&format="+row[0])["id"]; got != rows[0][1] {
			t.Errorf("%s %s is read as %v, want %s", row[0], row[1], got, rows[0][1])
		}
	}
	b.click(`.made a.button`) // decode it
	b.shows(ask(t, url+"/v1/decode/"+rows[0][1])["tick"].(string))
	b.waits(`document.querySelectorAll('.bits .cells i').length === 63`)
	bits := eval[string](b, `[...document.querySelectorAll('.bits .cells i')].map(i => i.className === 'one' ? 1 : 0).join('')`)
	if got := ask(t, url+"/v1/decode/"+bits+"?format=base2")["id"]; got != rows[0][1] {
		t.Errorf("the bits %s are those of %v, want %s", bits, got, rows[0][1])
	}
	b.show("/#/namespaces/orders")
	b.waits(`document.querySelector('tr.chosen')?.innerText.includes('\t1\t')`) // ids since start
	b.waits(`document.querySelector('.chart canvas') !== null`)
	b.quiet()
}

func TestAnIDWithoutNamespaceHasThePlausibleLayouts(t *testing.T) {
	url, _ := serve(t, memstore.New(nil), "", kinds)
	b := open(t, url)
	b.show("/#/decoder/1541815603606036480")
	b.waits(`[...document.querySelectorAll('.likely button')].some(b => b.innerText === 'twitter')`)
	eval[any](b, `[...document.querySelectorAll('.likely button')].find(b => b.innerText === 'twitter').click()`)
	b.shows("2022-06-28 16:07:40.105Z")
	b.show("/#/decoder/0190f6a4-9a2b-7cc3-98c8-0123456789ab")
	b.shows("uuid")
	b.show("/#/decoder/!!")
	b.waits(`document.querySelector('[role=alert]') !== null`)
	b.quiet()
}

func TestThePoolShowsItsSlots(t *testing.T) {
	mem := memstore.New(nil)
	other := holder(t, mem, "elsewhere")
	url, _ := serve(t, mem, "", kinds)
	b := open(t, url)
	b.show("/#/pools/default")
	b.waits(`document.querySelectorAll('.grid .slot').length === 1024`)
	b.waits(`document.querySelectorAll('.grid .slot.own').length === 1 && document.querySelectorAll('.grid .slot.held').length === 1`)
	b.click(`.grid .slot.held`)
	b.shows("elsewhere")
	b.shows("Worker " + other)
	// The arrow keys move within the grid, of which one slot is a stop of the tab key.
	b.keys(`.grid .slot[tabindex="0"]`, kb.Home, kb.ArrowRight, kb.Enter)
	b.waits(`document.querySelector('.grid .slot[aria-pressed=true]') === document.querySelectorAll('.grid .slot')[1]`)
	b.quiet()
}

// holder takes a worker of the pool default until the end of the test.
func holder(t testing.TB, in store.Store, host string) (worker string) {
	t.Helper()
	l, err := lease.Open(t.Context(), lease.Config{Store: in, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	text, err := json.Marshal(l.State().Worker)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAWorkerIsReleasedOnceTheUserHasReadWhatHappens(t *testing.T) {
	mem := memstore.New(nil)
	other := holder(t, mem, "elsewhere")
	url, _ := serve(t, mem, "", kinds)
	b := open(t, url)
	b.show("/#/pools/default")
	b.shows("joined · elsewhere")
	b.waits(`document.querySelector('.grid .slot.held') !== null`)
	b.click(`.grid .slot.held`)
	press := func(text string) {
		t.Helper()
		eval[any](b, `[...document.querySelectorAll('button')].find(b => b.innerText === `+quote(text)+`).click()`)
	}
	b.shows("Release this worker …")
	press("Release this worker …")
	b.shows("Release worker " + other + " from elsewhere")
	press("Cancel")
	b.waits(`document.querySelector('[role=alertdialog]') === null`)
	if state := ask(t, url+"/v1/pools/default/workers")["slots"]; strings.Contains(fmt.Sprint(state), "released") {
		t.Fatalf("released without being asked to: %v", state)
	}
	press("Release this worker …")
	b.shows("no id is issued twice")
	press("Release worker " + other)
	b.shows("It was released")
	b.waits(`document.querySelectorAll('.grid .slot.released').length === 1`)
	b.shows("released by an operator · elsewhere")
	b.quiet()
}

func TestTheStoreIsExamined(t *testing.T) {
	st, err := storeurl.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	url, _ := serve(t, st, "", kinds)
	b := open(t, url)
	b.show("/#/store")
	b.shows("can lose what it confirmed")
	b.shows("use it only for tests")
	b.waits(`document.querySelectorAll('.findings .lamp.bad').length === 1 && document.querySelectorAll('.findings .lamp.good').length >= 3`)
	b.quiet()
}

func TestTheDesignerMovesABorder(t *testing.T) {
	url, _ := serve(t, memstore.New(nil), "", kinds)
	b := open(t, url)
	b.show("/#/designer")
	b.shows("firn next --layout '41/0/10/12'")
	b.keys(`.border`, kb.ArrowLeft)
	b.shows("firn next --layout '40/0/11/12'")
	eval[any](b, `[...document.querySelectorAll('button.plain')].find(b => b.innerText === 'sonyflake').click()`)
	b.shows("39/0/16/8,unit=10ms,epoch=2014-09-01T00:00:00Z,order=sequence-worker")
	b.quiet()
}

func TestALostConnectionIsShownUntilItIsBack(t *testing.T) {
	mem := memstore.New(nil)
	at, stop := serve(t, mem, "", kinds)
	b := open(t, at)
	b.show("/")
	b.waits(`document.querySelector('.lamp.good') !== null`)
	stop()
	b.shows("No connection to the server")
	b.shows("What you see is from")
	serve(t, mem, strings.TrimPrefix(at, "http://"), kinds)
	b.waits(`!document.body.innerText.includes('No connection to the server')`)
	b.quiet()
}

func TestATokenIsAskedForAndARefusedOneIsShown(t *testing.T) {
	secret, shop := access.NewSecret(), access.NewSecret()
	at, _ := serve(t, memstore.New(nil), "", kinds+`tokens:
  - {name: boss, sha256: "`+access.Hash(secret)+`", admin: true, namespaces: ["*"]}
  - {name: shop, sha256: "`+access.Hash(shop)+`", namespaces: [orders]}
`)
	b := open(t, at)
	b.show("/")
	enter := func(token string) {
		b.t.Helper()
		b.keys(`.token input`, token)
		b.click(`.token button.main`)
	}
	// Without a token there are no namespaces, but the page works.
	b.waits(`document.querySelector('.token input') !== null || document.body.innerText.includes('Nothing that this caller')`)
	if strings.Contains(b.text(), "orders") {
		t.Error("a caller without a token sees a namespace")
	}
	b.waits(`document.querySelector('.token input') !== null`)
	if eval[bool](b, `document.querySelector('.problem, .lamp.bad') !== null`) {
		t.Errorf("before a token was entered, the page shows a problem:\n%s", b.text())
	}
	enter("wrong")
	b.shows("The server refused the token")
	b.waits(`document.querySelector('.token .problem') !== null`)
	enter("☃") // no header can have it
	b.shows("The server refused the token")
	enter(shop)
	b.shows("orders")
	if text := b.text(); strings.Contains(text, "users") || strings.Contains(text, "Ids a second") && !strings.Contains(text, "need a token") {
		t.Errorf("token shop sees:\n%s", text)
	}
	b.show("/#/pools")
	b.shows("need a token with admin: true")
	b.click(`.token button`) // forget it
	b.waits(`document.querySelector('.token input') !== null`)
	enter(secret)
	b.waits(`document.querySelectorAll('.grid .slot').length === 1024`)
	b.show("/") // the tab keeps it
	b.shows("users")
	if kept := eval[string](b, `JSON.stringify(localStorage) + document.cookie`); strings.Contains(kept, secret) {
		t.Error("the token is kept longer than the tab")
	}
	b.quiet()
}

func TestHostileNamesStayText(t *testing.T) {
	const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`
	mem := memstore.New(nil)
	holder(t, mem, hostile)
	at, _ := serve(t, mem, "", "namespaces: {orders: {}, n: {kind: number, template: \"<b>{n:5}\"}}\n")
	b := open(t, at)
	b.show("/#/pools/default")
	b.click(`.grid .slot.held`)
	b.shows(hostile)
	escaped := url.PathEscape(hostile)
	for _, page := range []string{"/#/decoder/" + escaped + "?namespace=" + escaped, "/#/decoder/" + escaped, "/#/pools/" + escaped, "/#/namespaces/" + escaped, "/#/" + escaped, "/#/designer?bits=" + escaped + "&unit=" + escaped + "&epoch=" + escaped, "/#/decoder/%E0%A4%A"} {
		b.show(page)
		b.waits(`document.querySelector('h1') !== null`)
	}
	b.show("/#/namespaces/n")
	b.click(`form.make button`)
	b.shows("<b>00001")
	if eval[bool](b, `window.hit !== undefined || document.querySelector('img') !== null`) {
		t.Error("a name is markup")
	}
	b.quiet()
}

func TestANamespaceBeyondTheTableIsFoundByItsName(t *testing.T) {
	var config strings.Builder
	config.WriteString("namespaces:\n")
	for i := range 103 {
		fmt.Fprintf(&config, "  n%03d: {kind: uuid}\n", i)
	}
	at, _ := serve(t, memstore.New(nil), "", config.String())
	b := open(t, at)
	b.show("/")
	b.shows("3 more namespaces")
	b.keys(`main form input`, "n102", kb.Enter)
	b.waits(`document.querySelectorAll('tbody tr').length > 0 && document.querySelector('.card h2')?.innerText === 'n102'`)
	b.click(`.close`)
	b.shows("3 more namespaces")
	b.show("/#/namespaces/nothing")
	b.waits(`document.querySelector('main form input') !== null`)
	b.quiet()
}

func TestAServerWithoutConfigurationMakesANamespaceOnFirstUse(t *testing.T) {
	at, _ := serve(t, memstore.New(nil), "", "")
	b := open(t, at)
	b.show("/")
	b.keys(`main .card input`, "orders")
	b.click(`form.make button`)
	b.waits(`document.querySelector('.made') !== null`)
	b.waits(`document.querySelector('a[href="#/namespaces/orders"]') !== null`)
	b.keys(`main .card input`, "/")
	b.click(`form.make button`)
	b.waits(`document.querySelector('[role=alert]') !== null`)
	b.quiet()
}
