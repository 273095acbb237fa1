package mailbox_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// html is what browsers say they accept.
const html = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestTheJSONIsExactlyAsPromised(t *testing.T) {
	at := time.Date(2026, 11, 20, 20, 25, 0, 999_000, time.UTC)
	box := startWith(t, t.TempDir(), 10, func() time.Time { return at })

	t.Run("empty", func(t *testing.T) {
		if _, _, body := box.get(t, "/_mailbox", "application/json"); strings.TrimSpace(string(body)) != `{"messages":[]}` {
			t.Errorf("the empty mailbox is %s", body)
		}
	})
	box.send(t, "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nHallo\r\n")
	box.text(t, "Doorward", "+15551234567", "Code 123456")
	id := fmt.Sprint(at.UnixMicro() + 1)
	email := fmt.Sprintf(`{"id":"%d","kind":"email","from":"sender@example.com","to":["jane@example.com"],"subject":"Grüße",`+
		`"text":"Hallo\r\n","html":"","raw":"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nHallo\r\n","receivedAt":"2026-11-20T20:25:00.000Z"}`, at.UnixMicro())
	sms := fmt.Sprintf(`{"id":"%s","kind":"sms","from":"Doorward","to":["+15551234567"],"subject":"",`+
		`"text":"Code 123456","html":"","raw":"Code 123456","receivedAt":"2026-11-20T20:25:00.000Z"}`, id)
	t.Run("newest first", func(t *testing.T) {
		_, header, body := box.get(t, "/_mailbox", "application/json")
		if got, want := strings.TrimSpace(string(body)), `{"messages":[`+sms+","+email+`]}`; got != want {
			t.Errorf("the mailbox is %s\nwant %s", got, want)
		}
		if got := header.Get("Content-Type"); got != "application/json" {
			t.Errorf("the Content-Type is %s", got)
		}
	})
	t.Run("one message", func(t *testing.T) {
		if _, _, body := box.get(t, "/_mailbox/"+id, "application/json"); strings.TrimSpace(string(body)) != sms {
			t.Errorf("the message is %s", body)
		}
	})
}

func TestTheListCanBeNarrowed(t *testing.T) {
	box := start(t, t.TempDir())
	for i := range 6 {
		box.send(t, mail(fmt.Sprint(i), "body"), fmt.Sprintf("user%d@example.com", i%2), "all@example.com")
	}
	third := box.messages(t, "")[2]
	for query, want := range map[string]string{
		"?limit=2":                         "5 4",
		"?limit=0":                         "",
		"?limit=100":                       "5 4 3 2 1 0",
		"?before=" + third.ID:              "2 1 0",
		"?to=USER1@example.com":            "5 3 1",
		"?to=user0@example.com&limit=2":    "4 2",
		"?to=nobody@example.com":           "",
		"?summary=true&limit=1":            "5",
		"?before=0000000000000000&limit=1": "",
	} {
		if got := subjects(box.messages(t, query)); got != want {
			t.Errorf("%s returned %q", query, got)
		}
	}
	if got := box.messages(t, "?summary=true")[0]; got.Raw != "" || got.Text != "" {
		t.Errorf("a summary has bodies: %+v", got)
	}
	for _, query := range []string{"?limit=-1", "?limit=many"} {
		if status, _, _ := box.get(t, "/_mailbox"+query, "application/json"); status != http.StatusBadRequest {
			t.Errorf("%s returned %d", query, status)
		}
	}
}

func TestMethods(t *testing.T) {
	box := start(t, t.TempDir())
	box.send(t, mail("one", "body"))
	id := box.messages(t, "")[0].ID

	for _, path := range []string{"/_mailbox"} {
		for _, accept := range []string{html, "application/json"} {
			status, header, body := box.request(t, http.MethodHead, path, http.Header{"Accept": {accept}})
			if status != http.StatusOK || len(body) != 0 || header.Get("Content-Type") == "" {
				t.Errorf("HEAD %s for %s returned %d %v", path, accept, status, header)
			}
		}
		for _, method := range []string{"POST", "PUT", "PATCH", "OPTIONS"} {
			status, header, _ := box.request(t, method, path, nil)
			if status != http.StatusMethodNotAllowed || header.Get("Allow") != "DELETE, GET, HEAD" {
				t.Errorf("%s %s returned %d, allowed %s", method, path, status, header.Get("Allow"))
			}
		}
	}
	for _, path := range []string{"/_mailbox/" + id, "/_mailbox/" + id + "/html"} {
		if status, _, _ := box.request(t, http.MethodHead, path, nil); status != http.StatusOK {
			t.Errorf("HEAD %s returned %d", path, status)
		}
		if status, header, _ := box.request(t, http.MethodDelete, path, nil); status != http.StatusMethodNotAllowed || header.Get("Allow") != "GET, HEAD" {
			t.Errorf("DELETE %s returned %d, allowed %s", path, status, header.Get("Allow"))
		}
	}
	for _, path := range []string{"/", "/_mailboxes", "/_mailbox/1", "/_mailbox/1/html", "/_mailbox/" + id + "/other", "/_mailbox/..%2f" + id, "/_mailbox/..%2f..%2fetc%2fpasswd/html"} {
		for _, accept := range []string{html, "application/json"} {
			if status, _, _ := box.get(t, path, accept); status != http.StatusNotFound {
				t.Errorf("GET %s returned %d", path, status)
			}
		}
	}
	if got := box.messages(t, ""); len(got) != 1 {
		t.Errorf("%d messages are left", len(got))
	}
}

func TestDeleteEmptiesTheMailbox(t *testing.T) {
	dir := t.TempDir()
	box := start(t, dir)
	box.send(t, mail("one", ""))
	id := box.messages(t, "")[0].ID
	if status, _, body := box.request(t, http.MethodDelete, "/_mailbox", nil); status != http.StatusNoContent || len(body) != 0 {
		t.Errorf("status %d, body %q", status, body)
	}
	if got := box.messages(t, ""); len(got) != 0 || len(files(t, dir)) != 0 {
		t.Errorf("the emptied mailbox has %v", got)
	}
	if status, _, _ := box.get(t, "/_mailbox/"+id, html); status != http.StatusNotFound {
		t.Errorf("the message returns %d", status)
	}
	box.send(t, mail("two", ""))
	if got := box.messages(t, ""); subjects(got) != "two" || got[0].ID <= id {
		t.Errorf("after another mail the mailbox has %v", got)
	}
}

func TestOtherOriginsGetNothing(t *testing.T) {
	box := start(t, t.TempDir())
	box.send(t, mail("one", ""))
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.example"}}} {
		if status, _, _ := box.request(t, http.MethodDelete, "/_mailbox", header); status != http.StatusForbidden {
			t.Errorf("DELETE with %v returned %d", header, status)
		}
	}
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"same-origin"}}, {"Origin": {box.http}}, {}} {
		if status, _, _ := box.request(t, http.MethodDelete, "/_mailbox", header); status != http.StatusNoContent {
			t.Errorf("DELETE with %v returned %d", header, status)
		}
	}
	_, header, _ := box.request(t, http.MethodGet, "/_mailbox", http.Header{"Accept": {"application/json"}, "Origin": {"https://evil.example"}})
	for name := range header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("the page has the header %s", name)
		}
	}
	if header.Get("Cross-Origin-Resource-Policy") != "same-origin" || header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the page has the headers %v", header)
	}
}

func TestWhoGetsJSON(t *testing.T) {
	box := start(t, t.TempDir())
	for accept, want := range map[string]string{
		"":                                   "text/html; charset=utf-8",
		"*/*":                                "text/html; charset=utf-8",
		html:                                 "text/html; charset=utf-8",
		"application/json":                   "application/json",
		"application/json, */*":              "application/json",
		"Application/JSON":                   "application/json",
		"text/plain, application/json;q=0.9": "application/json",
	} {
		if _, header, _ := box.get(t, "/_mailbox", accept); header.Get("Content-Type") != want {
			t.Errorf("%q gets %s", accept, header.Get("Content-Type"))
		}
	}
}

func TestTheHTMLBodyIsLockedIn(t *testing.T) {
	box := start(t, t.TempDir())
	box.send(t, "Content-Type: text/html\r\n\r\n<p>Hello</p><script>alert(1)</script>")
	box.send(t, mail("plain", "no HTML"))
	all := box.messages(t, "")
	_, header, body := box.get(t, "/_mailbox/"+all[1].ID+"/html", html)
	policy := header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "sandbox ") || !strings.Contains(policy, "default-src 'none'") ||
		strings.Contains(policy, "allow-scripts") || strings.Contains(policy, "allow-same-origin") || strings.Contains(policy, "script-src") {
		t.Errorf("the policy of the body is %s", policy)
	}
	if !strings.HasSuffix(strings.TrimSpace(string(body)), "<p>Hello</p><script>alert(1)</script>") {
		t.Errorf("the body is %s", body)
	}
	if status, _, _ := box.get(t, "/_mailbox/"+all[0].ID+"/html", html); status != http.StatusOK {
		t.Errorf("a mail without HTML returns %d", status)
	}
}

func TestThePageEscapesEverything(t *testing.T) {
	box := start(t, t.TempDir())
	const attack = `"'><script>alert(1)</script><img src=x onerror=alert(1)>`
	box.send(t, "From: "+attack+"\r\nSubject: "+attack+"\r\n\r\n"+attack+"</pre></template> https://a.example/\"onclick=\"alert(1)\r\n")
	box.text(t, attack, attack, attack)
	for _, m := range box.messages(t, "") {
		for _, path := range []string{"/_mailbox", "/_mailbox/" + m.ID, "/_mailbox?before=%22%3E%3Cscript%3E"} {
			_, header, body := box.get(t, path, html)
			page := string(body)
			if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || strings.Contains(page, `"onclick=`) {
				t.Errorf("%s contains the attack: %s", path, page)
			}
			if policy := header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none'") {
				t.Errorf("the policy of the page is %s", policy)
			}
		}
	}
}

func TestThePage(t *testing.T) {
	box := start(t, t.TempDir())
	if _, _, body := box.get(t, "/_mailbox", html); !strings.Contains(string(body), "No messages yet") {
		t.Errorf("the empty page is %s", body)
	}
	t.Run("leads through more messages than fit", func(t *testing.T) {
		box.send(t, mail("for another", ""), "other@example.com")
		for i := range 203 {
			box.text(t, "a", "b+c", fmt.Sprintf("text %d.", i))
		}
		seen, path := 0, "/_mailbox?to=B%2Bc"
		for path != "" {
			_, _, body := box.get(t, path, html)
			page := string(body)
			seen += strings.Count(page, `<a href="/_mailbox/`)
			if strings.Contains(page, "for another") {
				t.Errorf("the page of one recipient is %s", page)
			}
			path = ""
			if _, rest, found := strings.Cut(page, `<a href="/_mailbox?`); found {
				query, _, _ := strings.Cut(rest, `"`)
				path = "/_mailbox?" + strings.ReplaceAll(query, "&amp;", "&")
			}
		}
		if seen != 203 {
			t.Errorf("the pages have %d messages", seen)
		}
	})
	t.Run("shows a broken message by its source", func(t *testing.T) {
		box.send(t, "no header at all <b>\r\n")
		_, _, body := box.get(t, "/_mailbox/"+box.messages(t, "?limit=1")[0].ID, html)
		if !strings.Contains(string(body), "no header at all &lt;b&gt;") {
			t.Errorf("the page of the broken message is %s", body)
		}
	})
	t.Run("makes the links of a text clickable", func(t *testing.T) {
		box.send(t, mail("link", "Go to https://a.example/v?sptoken=a_b.\r\n"))
		_, _, body := box.get(t, "/_mailbox/"+box.messages(t, "?limit=1")[0].ID, html)
		if !strings.Contains(string(body), `<a href="https://a.example/v?sptoken=a_b" target="_blank"`) {
			t.Errorf("the page of the mail is %s", body)
		}
	})
}

func TestAFileThatIsGone(t *testing.T) {
	box := start(t, t.TempDir())
	box.send(t, mail("one", ""))
	box.send(t, mail("two", ""))
	gone := box.messages(t, "")[0]
	if err := os.Remove(filepath.Join(box.dir, gone.ID+".json")); err != nil {
		t.Fatal(err)
	}
	if got := subjects(box.messages(t, "")); got != "one" {
		t.Errorf("the list has %s", got)
	}
	for _, accept := range []string{html, "application/json"} {
		if status, _, _ := box.get(t, "/_mailbox", accept); status != http.StatusOK {
			t.Errorf("the list returns %d", status)
		}
	}
	if status, _, _ := box.get(t, "/_mailbox/"+gone.ID, "application/json"); status != http.StatusNotFound {
		t.Errorf("the message returns %d", status)
	}
}
