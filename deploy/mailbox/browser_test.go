package mailbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// browser is one tab of Chromium and what happened in it.
type browser struct {
	context.Context
	mu      sync.Mutex
	console []string
	dialogs []string
}

// openBrowser starts Chromium. Its absence is a failure: a page that shows
// hostile content is not to be trusted untested.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("the browser tests need Chromium; install it with: apt-get install -y chromium")
	}
	limited, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	// CI runs as root, where Chromium's own sandbox does not start.
	ctx, closeBrowser := chromedp.NewContext(limited, chromedp.WithAllocatorOptions(chromedp.ExecPath(path), chromedp.NoSandbox))
	t.Cleanup(func() { closeBrowser(); cancel() })
	b := &browser{Context: ctx}
	b.do(t) // starts it
	if err := chromedp.Listen(ctx, func(event any) {
		if dialog, ok := event.(*page.EventJavascriptDialogOpening); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.dialogs = append(b.dialogs, dialog.Message)
		}
	}); err != nil {
		t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.console = append(b.console, message.Text)
			b.mu.Unlock()
		}
	}()
	return b
}

func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b, steps...); err != nil {
		t.Fatal(err)
	}
}

// value evaluates a JavaScript expression in the page.
func value[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until a JavaScript expression is true, on this page or on the one
// that the browser is about to show. An error is the moment between the two.
func (b *browser) until(t *testing.T, expression string) {
	t.Helper()
	t.Log("until", expression)
	await(t, func() bool {
		so, err := chromedp.Run(b, chromedp.Evaluate[bool](expression))
		return err == nil && so
	})
}

func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.console)
}

// canary is a server that nothing but a click may reach.
type canary struct {
	*httptest.Server
	mu   sync.Mutex
	hits []string
}

func startCanary(t *testing.T) *canary {
	c := &canary{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/favicon.ico" { // The browser asks for it by itself where a click led.
			c.mu.Lock()
			c.hits = append(c.hits, r.URL.Path+" from "+r.Referer())
			c.mu.Unlock()
		}
		_, _ = fmt.Fprint(w, "<title>canary</title>")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *canary) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.hits)
}

// attacks tries what a hostile message can contain. Each sets window.attacked
// somewhere, renames the page, opens a dialog or asks the canary.
func attacks(canary string) (short, markup string) {
	code := `top.attacked=window.attacked=1;document.title='attacked';fetch('` + canary + `/fetch');alert('attacked')`
	short = `"'></title></script><script>` + code + `</script><img src=x onerror="` + code + `">`
	markup = strings.NewReplacer("CODE", code, "CANARY", canary).Replace(`
<base href="CANARY/" target="_top"><meta http-equiv="refresh" content="0;url=CANARY/refresh">
<meta http-equiv="Content-Security-Policy" content="default-src * 'unsafe-inline'">
<link rel="stylesheet" href="CANARY/style.css"><link rel="preload" as="image" href="CANARY/preload"><link rel="dns-prefetch" href="CANARY">
<style>@import "CANARY/import.css"; body { background: url(CANARY/background) } @font-face { font-family: f; src: url(CANARY/font) } p { font-family: f }</style>
<script>CODE</script><script src="CANARY/script.js"></script>
<img src="CANARY/image" onerror="CODE"><svg onload="CODE"><image href="CANARY/svg"/></svg>
<video src="CANARY/video" autoplay poster="CANARY/poster"></video><object data="CANARY/object"></object><embed src="CANARY/embed">
<iframe src="CANARY/frame"></iframe><iframe srcdoc="<script>CODE</script>"></iframe><iframe src="javascript:CODE"></iframe>
<form id="form" action="CANARY/form"><input name="a" autofocus onfocus="CODE"><button id="submit">Submit</button></form>
<p>text</p><a id="script" target="_self" href="javascript:CODE">script</a></iframe></body></html><script>CODE</script>`)
	return short, markup
}

func TestHostileMessagesDoNothing(t *testing.T) {
	t.Parallel()
	box := start(t, t.TempDir())
	canary := startCanary(t)
	short, markup := attacks(canary.URL)
	header := "From: " + short + "\r\nTo: " + short + "\r\nSubject: " + short + "\r\nX-Other: " + short + "\r\n"
	box.send(t, header+"Content-Type: text/html\r\n\r\n"+markup)
	box.send(t, header+"\r\n"+short+"\r\njavascript:alert(1) https://a.example/\"onmouseover=\"alert(1)\r\n"+markup)
	box.send(t, header+"Content-Type: multipart/alternative; boundary=x\r\n\r\n--x\r\n\r\n"+short+"\r\n--x\r\nContent-Type: text/html\r\n\r\n"+short+markup+"\r\n--x--\r\n")
	box.send(t, short+"\r\n")
	box.text(t, short, short, short+markup)

	b := openBrowser(t)
	unharmed := func(t *testing.T) {
		t.Helper()
		if value[bool](t, b, "Boolean(window.attacked)") || value[string](t, b, "document.title") == "attacked" {
			t.Error("a script of the message ran")
		}
		if at := value[string](t, b, "location.href"); !strings.HasPrefix(at, box.http) {
			t.Errorf("the page went to %s", at)
		}
		if n := value[int](t, b, "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length"); n != 0 {
			t.Errorf("%d elements of the page have event handlers", n)
		}
	}
	t.Run("on the page", func(t *testing.T) {
		paths := []string{"/_mailbox"}
		for _, m := range box.messages(t, "") {
			paths = append(paths, "/_mailbox/"+m.ID)
		}
		for _, path := range paths {
			b.do(t, chromedp.Navigate(box.http+path))
			unharmed(t)
			value[bool](t, b, `(document.querySelector("details")?.setAttribute("open", ""), true)`)
			unharmed(t)
		}
	})
	t.Run("in the HTML body opened by itself", func(t *testing.T) {
		for _, m := range box.messages(t, "") {
			if m.HTML == "" {
				continue
			}
			b.do(t, chromedp.Navigate(box.http+"/_mailbox/"+m.ID+"/html"))
			value[bool](t, b, "document.getElementById('submit').click(), document.getElementById('script').click(), true")
			if value[bool](t, b, "Boolean(window.attacked)") || value[string](t, b, "document.title") == "attacked" {
				t.Error("a script of the message ran")
			}
			if origin := value[string](t, b, "self.origin"); origin != "null" {
				t.Errorf("the body has the origin %s", origin)
			}
		}
	})
	if hits := canary.seen(); len(hits) != 0 {
		t.Errorf("the messages reached another server: %q", hits)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.dialogs) != 0 {
		t.Errorf("the messages opened dialogs: %q", b.dialogs)
	}
}

func TestTheAttacksWorkWhereNothingStopsThem(t *testing.T) {
	t.Parallel()
	canary := startCanary(t)
	short, _ := attacks(canary.URL)
	naive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<title>", strings.ReplaceAll(short, "alert('attacked')", ""))
	}))
	defer naive.Close()
	b := openBrowser(t)
	b.do(t, chromedp.Navigate(naive.URL))
	b.until(t, "window.attacked === 1 && document.title === 'attacked'")
	await(t, func() bool { return len(canary.seen()) > 0 })
}

func TestThePageInABrowser(t *testing.T) {
	t.Parallel()
	box := start(t, t.TempDir())
	canary := startCanary(t)
	b := openBrowser(t)
	t.Run("opens a link of an HTML body in a page of its own", func(t *testing.T) {
		box.send(t, "Subject: one\r\nContent-Type: text/html\r\n\r\n<p><a id=link href='"+canary.URL+"/html'>Confirm</a></p>")
		b.do(t, chromedp.Navigate(box.http+"/_mailbox"), chromedp.Click(chromedp.CSS("td a")))
		b.until(t, "document.querySelector('iframe') !== null")
		opened := chromedp.WaitNewTarget(b, func(info *target.Info) bool { return strings.HasPrefix(info.URL, canary.URL) })
		at := value[[]float64](t, b, "(() => { const r = document.querySelector('iframe').getBoundingClientRect(); return [r.x, r.y] })()")
		// The body has the margin of the browser, and the link is its first word.
		await(t, func() bool {
			b.do(t, chromedp.MouseClickXY(at[0]+20, at[1]+26))
			return slices.Contains(canary.seen(), "/html from ")
		})
		<-opened
	})
	t.Run("breaks none of its own rules", func(t *testing.T) {
		for _, text := range b.complaints() {
			t.Errorf("the browser says: %s", text)
		}
	})
}

// await looks until something is so that no message tells of.
func await(t *testing.T, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("timeout")
		}
	}
}
