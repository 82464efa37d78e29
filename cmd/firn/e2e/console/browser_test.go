package console

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/firn-id/firn/cmd/firn/internal/server"
	"github.com/firn-id/firn/cmd/firn/internal/settings"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/store"
)

// longest is how long a page may take to show something. The machine may be busy.
const longest = 30 * time.Second

// A tab is a page of the browser.
type tab struct {
	t    testing.TB
	ctx  context.Context
	url  string
	mu   sync.Mutex
	said []string // errors that the browser's console has, but those of requests
}

// browser is that of all tests: the start of one takes longer than most tests.
var browser struct {
	ctx context.Context
	end func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.end != nil {
		browser.end()
	}
	os.Exit(code)
}

// open opens a page that shows nothing yet.
func open(t testing.TB, url string) *tab {
	t.Helper()
	path, err := exec.LookPath("chromium")
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal("chromium is missing: run scripts/need-servers")
	default:
		t.Skip("chromium is missing: scripts/need-servers installs it")
	}
	if browser.ctx == nil {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900), chromedp.Flag("lang", "en"))
		all, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
		ctx, endFirst := chromedp.NewContext(all)
		if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
			t.Fatal(err)
		}
		browser.ctx, browser.end = ctx, func() { endFirst(); end() }
	}
	b := &tab{t: t, url: url}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithListener(b.hear))
	t.Cleanup(cancel)
	b.ctx = ctx
	if err := chromedp.Do(b.ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return b
}

// hear keeps what is an error. Requests that fail are none: a test that expects no such error sees what the page shows.
func (b *tab) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			said += " " + x.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, arg := range e.Args {
				said += string(arg.Value) + arg.Description
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork || e.Entry.Source == log.EntrySourceSecurity {
			said = e.Entry.Text
		}
	}
	if said != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.said = append(b.said, said)
	}
}

// do runs a step. It fails the test after longest.
func (b *tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%s: %v; the page has:\n%s", what, err, b.text())
	}
}

// eval evaluates an expression in the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// show opens a page of the console.
func (b *tab) show(page string) {
	b.t.Helper()
	b.do("open "+page, chromedp.Navigate("about:blank"), chromedp.Navigate(b.url+page))
}

// turn leads to a page of the console from another one.
func (b *tab) turn(hash string) {
	b.t.Helper()
	eval[any](b, `location.hash = `+quote(hash))
}

func (b *tab) text() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// waits until an expression is true.
func (b *tab) waits(expression string) {
	b.t.Helper()
	for end := time.Now().Add(longest); !eval[bool](b, `Boolean(`+expression+`)`); {
		if time.Now().After(end) {
			b.quiet()
			b.t.Fatalf("not true after %v: %s; the page has:\n%s", longest, expression, b.text())
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-b.ctx.Done():
			b.t.Fatal(b.ctx.Err())
		}
	}
}

// shows waits for a text anywhere in the page.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.waits(`document.body.innerText.includes(` + quote(text) + `)`)
}

// click clicks the first element, with the mouse.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// keys types into the first element.
func (b *tab) keys(selector string, keys ...string) {
	b.t.Helper()
	steps := []chromedp.Action[chromedp.Void]{chromedp.Focus(chromedp.CSS(selector))}
	for _, k := range keys {
		steps = append(steps, chromedp.KeyEvent(k))
	}
	b.do("type into "+selector, steps...)
}

// quiet fails the test if the browser has found an error.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.t.Errorf("the browser's console has:\n%s", strings.Join(b.said, "\n"))
		b.said = nil
	}
}

func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(text) + "'"
}

// serve serves a configuration, "" for none, at an address, "" for any, until stop or the end of the test.
func serve(t testing.TB, st store.Store, addr, config string) (url string, stop func()) {
	t.Helper()
	var cfg settings.Config
	if config != "" {
		path := filepath.Join(t.TempDir(), "firn.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if cfg, err = settings.Read(path); err != nil {
			t.Fatal(err)
		}
	}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- server.Start(ctx, server.Config{Settings: cfg, Base: lease.Config{}, Store: st, Log: slog.New(slog.DiscardHandler)}, server.Listeners{HTTP: listener},
			func(*server.Server) { close(opened) })
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	select {
	case <-opened:
	case err := <-ended:
		ended <- err
		t.Fatal("the server ended")
	}
	return "http://" + listener.Addr().String(), stop
}
