package mailbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/smtp"
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
	log  *lockedBuffer
	stop func()
}

// start opens a mailbox and closes it at the end of the test, or when stop is
// called before.
func start(t *testing.T, dir string, cfg mailbox.Config) *running {
	t.Helper()
	log := &lockedBuffer{}
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	box, err := mailbox.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- box.ServeSMTP(listener) }()
	web := httptest.NewServer(box.Handler())
	stop := sync.OnceFunc(func() {
		web.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := box.Close(ctx); err != nil && !errors.Is(err, mailbox.ErrClosed) {
			t.Errorf("closing the mailbox returned %v", err)
		}
		if err := <-served; err != nil && !errors.Is(err, mailbox.ErrClosed) { // as where the test ends before it serves
			t.Errorf("serving the mailbox returned %v", err)
		}
	})
	t.Cleanup(stop)
	return &running{Mailbox: box, dir: dir, smtp: listener.Addr().String(), http: web.URL, log: log, stop: stop}
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
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
	first := start(t, dir, mailbox.Config{})
	first.send(t, mail("one", "The first.\r\n"))
	if _, err := first.AddText("Doorward", []string{"+15551234567"}, "Your code is 123456"); err != nil {
		t.Fatal(err)
	}
	first.send(t, mail("two", "The second.\r\n"))
	before := first.messages(t, "")
	first.stop()

	second := start(t, dir, mailbox.Config{})
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
	box := start(t, dir, mailbox.Config{Keep: 3})
	for i := range 5 {
		box.send(t, mail(fmt.Sprint(i), ""))
	}
	if got := subjects(box.messages(t, "")); got != "4 3 2" {
		t.Errorf("the mailbox kept %s", got)
	}
	if got := mailFiles(t, dir); got != 3 {
		t.Errorf("%d files are left", got)
	}
	box.stop()

	t.Run("also when reopened with a smaller bound", func(t *testing.T) {
		box := start(t, dir, mailbox.Config{Keep: 1})
		if got := subjects(box.messages(t, "")); got != "4" || mailFiles(t, dir) != 1 {
			t.Errorf("kept %s in %d files", got, mailFiles(t, dir))
		}
		box.stop()
	})
	t.Run("by size too, but never the newest", func(t *testing.T) {
		box := start(t, dir, mailbox.Config{KeepBytes: 10_000})
		box.send(t, mail("large", strings.Repeat("0123456789\r\n", 2_000)))
		if got := subjects(box.messages(t, "")); got != "large" {
			t.Errorf("the mailbox kept %s", got)
		}
		box.send(t, mail("small", ""))
		if got := subjects(box.messages(t, "")); got != "small" {
			t.Errorf("the mailbox kept %s", got)
		}
	})
}

func mailFiles(t *testing.T, dir string) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestOpen(t *testing.T) {
	t.Run("refuses a folder that is in use", func(t *testing.T) {
		box := start(t, t.TempDir(), mailbox.Config{})
		if _, err := mailbox.Open(box.dir, mailbox.Config{}); err == nil || !strings.Contains(err.Error(), "another mailbox uses this folder") {
			t.Errorf("opening a used folder returned %v", err)
		}
	})
	t.Run("refuses to keep nothing", func(t *testing.T) {
		if _, err := mailbox.Open(t.TempDir(), mailbox.Config{Keep: -1}); err == nil {
			t.Error("opening a mailbox that keeps nothing returned no error")
		}
	})
	t.Run("removes what was half written and leaves alone what it does not know", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "arriving-12345", "X-Doorward-Mailbox: {")
		put(t, dir, "notes.txt", "mine")
		box := start(t, dir, mailbox.Config{})
		if got := box.messages(t, ""); len(got) != 0 {
			t.Errorf("the mailbox shows %v", got)
		}
		if _, err := os.Stat(filepath.Join(dir, "arriving-12345")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("half a message is still there: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
			t.Error(err)
		}
	})
	t.Run("shows a mail that someone put there", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "1700000000000000.eml", mail("Found", "Hello"))
		put(t, dir, "1700000000000001.eml", "X-Doorward-Mailbox: {broken\r\n"+mail("Damaged", "Hello"))
		got := start(t, dir, mailbox.Config{}).messages(t, "")
		if subjects(got) != "Damaged Found" || got[1].Raw != mail("Found", "Hello") {
			t.Errorf("the mailbox has %+v", got)
		}
	})
	t.Run("lets only the owner look into the folder", func(t *testing.T) {
		box := start(t, filepath.Join(t.TempDir(), "mailbox"), mailbox.Config{})
		box.send(t, mail("secret", ""))
		for _, path := range append([]string{box.dir}, glob(t, box.dir, "*")...) {
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

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestIdsFollowTheOrderOfArrivalThoughTheClockGoesBack(t *testing.T) {
	at := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	box := start(t, t.TempDir(), mailbox.Config{Now: func() time.Time {
		at = at.Add(-time.Hour)
		return at
	}})
	var last string
	for range 5 {
		id, err := box.AddText("a", []string{"b"}, "c")
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Errorf("%s after %s", id, last)
		}
		last = id
	}
}

func TestManyMessagesAtOnce(t *testing.T) {
	box := start(t, t.TempDir(), mailbox.Config{Keep: 40})
	var senders sync.WaitGroup
	for sender := range 8 {
		senders.Go(func() {
			for i := range 10 {
				if i%2 == 0 {
					if _, err := box.AddText("a", []string{"b"}, fmt.Sprintf("%d-%d", sender, i)); err != nil {
						t.Error(err)
					}
					continue
				}
				if err := smtp.SendMail(box.smtp, nil, "a@example.com", []string{"b@example.com"}, []byte(mail("x", ""))); err != nil {
					t.Error(err)
				}
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

func TestClose(t *testing.T) {
	t.Run("ends idle clients with 421 and lets a message on its way arrive", func(t *testing.T) {
		box := start(t, t.TempDir(), mailbox.Config{})
		idle := dial(t, box.smtp)
		if err := idle.Hello("idle"); err != nil {
			t.Fatal(err)
		}
		busy := dial(t, box.smtp)
		if err := errors.Join(busy.Mail("a@example.com"), busy.Rcpt("b@example.com")); err != nil {
			t.Fatal(err)
		}
		data, err := busy.Data()
		if err != nil {
			t.Fatal(err)
		}
		// Receiving has begun when the file of the message is there.
		if _, err := data.Write([]byte("Subject: on its way\r\n\r\n" + strings.Repeat("x", 100<<10))); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { return len(glob(t, box.dir, "arriving-*")) == 1 })

		closed := make(chan error, 1)
		go func() { closed <- box.Close(t.Context()) }()
		if _, _, err := idle.Text.ReadResponse(250); err == nil || !strings.HasPrefix(err.Error(), "421") {
			t.Errorf("the idle client gets %v", err)
		}
		select {
		case err := <-closed:
			t.Errorf("closed before the message had arrived: %v", err)
		default:
		}
		if err := data.Close(); err != nil {
			t.Errorf("the message on its way: %v", err)
		}
		if err := <-closed; err != nil {
			t.Errorf("closing the mailbox returned %v", err)
		}
		box2, err := mailbox.Open(box.dir, mailbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer box2.Close(t.Context())
		if n := mailFiles(t, box.dir); n != 1 {
			t.Errorf("%d messages were kept", n)
		}
		if err := box.Close(t.Context()); !errors.Is(err, mailbox.ErrClosed) {
			t.Errorf("a second close: %v", err)
		}
		if _, err := box.AddText("a", nil, "c"); !errors.Is(err, mailbox.ErrClosed) {
			t.Errorf("a text after the end: %v", err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := box.ServeSMTP(listener); !errors.Is(err, mailbox.ErrClosed) {
			t.Errorf("serving after the end: %v", err)
		}
	})
	t.Run("cuts what does not come to its end in time", func(t *testing.T) {
		box := start(t, t.TempDir(), mailbox.Config{})
		client := dial(t, box.smtp)
		if err := errors.Join(client.Mail("a@example.com"), client.Rcpt("b@example.com")); err != nil {
			t.Fatal(err)
		}
		data, err := client.Data()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := data.Write([]byte("Subject: never ends\r\n\r\n" + strings.Repeat("x", 100<<10))); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { return len(glob(t, box.dir, "arriving-*")) == 1 })
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := box.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("closing the mailbox returned %v", err)
		}
		if err := data.Close(); err == nil {
			t.Error("the client believes its message was accepted")
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

// BenchmarkOpen opens a full mailbox.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	for i := range mailbox.DefaultKeep {
		content := `X-Doorward-Mailbox: {"from":"a@example.com","to":["b@example.com"],"subject":"Hello"}` + "\r\n" + mail("Hello", strings.Repeat("Hello\r\n", 300))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%016d.eml", i)), []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		box, err := mailbox.Open(dir, mailbox.Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := box.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
