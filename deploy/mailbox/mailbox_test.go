package mailbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/smtp"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/mailbox"
)

// running is a mailbox with its mail and its web address on loopback.
type running struct {
	*mailbox.Mailbox
	dir  string
	smtp string
	http string
	stop func()
}

// start opens a mailbox and ends it at the end of the test, or when stop is called before.
func start(t *testing.T, dir string) *running {
	t.Helper()
	return startWith(t, dir, mailbox.DefaultKeep, time.Now)
}

func startWith(t *testing.T, dir string, keep int, now func() time.Time) *running {
	t.Helper()
	box, err := mailbox.Open(dir, keep, now)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- box.ServeSMTP(ctx, listener) }()
	web := httptest.NewServer(box.Handler())
	stop := sync.OnceFunc(func() {
		web.Close()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serving the mailbox returned %v", err)
		}
	})
	t.Cleanup(stop)
	return &running{Mailbox: box, dir: dir, smtp: listener.Addr().String(), http: web.URL, stop: stop}
}

// send sends one mail and returns when the server has answered 250.
func (r *running) send(t *testing.T, raw string, to ...string) {
	t.Helper()
	if len(to) == 0 {
		to = []string{"jane@example.com"}
	}
	if err := smtp.SendMail(r.smtp, nil, "sender@example.com", to, []byte(raw)); err != nil {
		t.Fatal(err)
	}
}

// text sends one text message.
func (r *running) text(t *testing.T, from, to, text string) {
	t.Helper()
	status, answer := post(t, r.Handler(), messages, url.Values{"From": {from}, "To": {to}, "Body": {text}}, nil)
	if status != http.StatusCreated {
		t.Fatalf("the text is answered with %d %v", status, answer)
	}
}

// messages reads the JSON of the whole mailbox, narrowed by query.
func (r *running) messages(t *testing.T, query string) []mailbox.Message {
	t.Helper()
	status, _, body := r.get(t, "/_mailbox"+query, "application/json")
	if status != http.StatusOK {
		t.Fatalf("the list is answered with %d: %s", status, body)
	}
	var list struct{ Messages []mailbox.Message }
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("the list cannot be read: %v in %s", err, body)
	}
	return list.Messages
}

func (r *running) get(t *testing.T, path, accept string) (int, http.Header, []byte) {
	t.Helper()
	return r.request(t, http.MethodGet, path, http.Header{"Accept": {accept}})
}

func (r *running) request(t *testing.T, method, path string, header http.Header) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.http+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, body.Bytes()
}

func subjects(messages []mailbox.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Subject)
	}
	return strings.Join(out, " ")
}

func mail(subject, body string) string {
	return "From: Doorward <sender@example.com>\r\nTo: jane@example.com\r\nSubject: " + subject + "\r\n\r\n" + body
}

func TestMessagesOutliveTheMailbox(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "mailbox")
	first := start(t, dir)
	first.send(t, mail("one", "The first.\r\n"))
	first.text(t, "Doorward", "+15551234567", "Your code is 123456")
	first.send(t, mail("two", "The second.\r\n"))
	before := first.messages(t, "")
	first.stop()

	second := start(t, dir)
	after := second.messages(t, "")
	if fmt.Sprint(before) != fmt.Sprint(after) || len(after) != 3 {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
	second.send(t, mail("three", ""))
	if got := second.messages(t, ""); got[0].Subject != "three" || got[0].ID <= got[1].ID {
		t.Errorf("a message after reopening is not the newest: %v", got)
	}
}

func TestTheOldestGiveWay(t *testing.T) {
	dir := t.TempDir()
	box := startWith(t, dir, 3, time.Now)
	for i := range 5 {
		box.send(t, mail(fmt.Sprint(i), ""))
	}
	if got := subjects(box.messages(t, "")); got != "4 3 2" {
		t.Errorf("the mailbox kept %s", got)
	}
	if got := files(t, dir); len(got) != 3 {
		t.Errorf("the files %v are left", got)
	}
	box.stop()
	t.Run("also when reopened with a smaller bound", func(t *testing.T) {
		box := startWith(t, dir, 1, time.Now)
		if got := subjects(box.messages(t, "")); got != "4" || len(files(t, dir)) != 1 {
			t.Errorf("kept %s in %v", got, files(t, dir))
		}
	})
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestOpen(t *testing.T) {
	t.Run("refuses to keep nothing", func(t *testing.T) {
		if _, err := mailbox.Open(t.TempDir(), -1, time.Now); err == nil {
			t.Error("opening a mailbox that keeps nothing returned no error")
		}
	})
	t.Run("leaves alone what was half written and what it does not know", func(t *testing.T) {
		dir := t.TempDir()
		for name, content := range map[string]string{"arriving": `{"id`, "notes.txt": "mine"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		box := start(t, dir)
		if got := box.messages(t, ""); len(got) != 0 {
			t.Errorf("the mailbox shows %v", got)
		}
		box.send(t, mail("whole", ""))
		if got := subjects(box.messages(t, "")); got != "whole" || len(files(t, dir)) != 2 {
			t.Errorf("the mailbox shows %s and has %v", got, files(t, dir))
		}
	})
	t.Run("lets only the owner look into the folder", func(t *testing.T) {
		box := start(t, filepath.Join(t.TempDir(), "mailbox"))
		box.send(t, mail("secret", ""))
		for _, path := range append(files(t, box.dir), box.dir) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
		}
	})
}

func TestIdsFollowTheOrderOfArrivalThoughTheClockGoesBack(t *testing.T) {
	at := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	box := startWith(t, t.TempDir(), 10, func() time.Time {
		at = at.Add(-time.Hour)
		return at
	})
	for i := range 5 {
		box.text(t, "a", "b", fmt.Sprint(i))
	}
	all := box.messages(t, "")
	for i, m := range all {
		if m.Text != fmt.Sprint(4-i) || i > 0 && m.ID >= all[i-1].ID {
			t.Errorf("message %d of the list is %+v", i, m)
		}
	}
}

func TestManyMessagesAtOnce(t *testing.T) {
	box := startWith(t, t.TempDir(), 40, time.Now)
	var senders sync.WaitGroup
	for sender := range 8 {
		senders.Go(func() {
			for i := range 10 {
				if i%2 == 0 {
					box.text(t, "a", "b", fmt.Sprintf("%d-%d", sender, i))
					continue
				}
				box.send(t, mail("x", ""))
				box.messages(t, "?limit=2")
			}
		})
	}
	senders.Wait()
	got := box.messages(t, "")
	if len(got) != 40 {
		t.Fatalf("the mailbox has %d messages", len(got))
	}
	for i := range got[1:] {
		if got[i].ID <= got[i+1].ID {
			t.Errorf("%s is not newer than %s", got[i].ID, got[i+1].ID)
		}
	}
}

func TestTheEndOfServeSMTP(t *testing.T) {
	t.Run("cuts idle clients and a message on its way", func(t *testing.T) {
		box := start(t, t.TempDir())
		idle, busy := dial(t, box.smtp), dial(t, box.smtp)
		if err := errors.Join(idle.Hello("idle"), busy.Mail("a@example.com"), busy.Rcpt("b@example.com")); err != nil {
			t.Fatal(err)
		}
		data, err := busy.Data()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := data.Write([]byte("Subject: never ends\r\n\r\n" + strings.Repeat("x", 100<<10))); err != nil {
			t.Fatal(err)
		}
		box.stop()
		if err := data.Close(); err == nil {
			t.Error("the client believes its message was accepted")
		}
		if err := idle.Noop(); err == nil {
			t.Error("the idle client is still served")
		}
		if got := files(t, box.dir); len(got) != 0 {
			t.Errorf("the folder has %v", got)
		}
	})
	t.Run("comes at once when it ends before it begins", func(t *testing.T) {
		box, err := mailbox.Open(t.TempDir(), 1, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := box.ServeSMTP(ctx, listener); err != nil {
			t.Errorf("serving returned %v", err)
		}
	})
	t.Run("reports a listener that fails", func(t *testing.T) {
		box, err := mailbox.Open(t.TempDir(), 1, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		if err := box.ServeSMTP(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
			t.Errorf("serving a closed listener returned %v", err)
		}
	})
}

func dial(t *testing.T, address string) *smtp.Client {
	t.Helper()
	client, err := smtp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
