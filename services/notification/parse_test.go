package notification

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
)

// parts reads the bodies of a mail with the standard library alone.
func parts(t *testing.T, m *mail.Message) map[string]string {
	t.Helper()
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{}
	read := func(kind, encoding string, body io.Reader) {
		if strings.EqualFold(encoding, "quoted-printable") {
			body = quotedprintable.NewReader(body)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		bodies[kind] = strings.ReplaceAll(string(text), "\r\n", "\n")
	}
	if !strings.HasPrefix(kind, "multipart/") {
		read(kind, m.Header.Get("Content-Transfer-Encoding"), m.Body)
		return bodies
	}
	for reader := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return bodies
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		read(kind, part.Header.Get("Content-Transfer-Encoding"), part)
	}
}

// A second reader, of other people's making, sees the same mail.
func TestTheStandardLibraryReadsTheMail(t *testing.T) {
	const subject, name = "Bestätigen Sie Ihr Konto\r\nBcc: eve@evil.example", "Größe \"Co\"\r\nBcc: eve@evil.example"
	for kind, want := range map[string]map[string]string{
		"text/plain":            {"text/plain": "Grüße, Jö\n"},
		"text/html":             {"text/html": "<p>Grüße, Jö &amp; &lt;b&gt;</p>"},
		"multipart/alternative": {"text/plain": "Grüße, Jö\n", "text/html": "<p>Grüße, Jö &amp; &lt;b&gt;</p>"},
	} {
		t.Run(kind, func(t *testing.T) {
			l := verification()
			l.Account.GivenName, l.Account.Surname = text("Jö"), text("& <b>")
			l.Template.Subject, l.Template.FromName, l.Template.MimeType = subject, text(name), kind
			l.Template.TextBody, l.Template.HTMLBody = "Grüße, $!{account.givenName}\n",
				"<p>Grüße, $!{account.givenName} $!{account.surname}</p>"
			composed, err := writer().compose(l, writer().deploymentFrom(l), clock)
			if err != nil {
				t.Fatal(err)
			}
			var raw bytes.Buffer
			if _, err := composed.WriteTo(&raw); err != nil {
				t.Fatal(err)
			}
			m, err := mail.ReadMessage(&raw)
			if err != nil {
				t.Fatal(err)
			}
			decoder := &mime.WordDecoder{}
			if got, err := decoder.DecodeHeader(m.Header.Get("Subject")); err != nil ||
				got != strings.ReplaceAll(subject, "\r\n", "  ") {
				t.Errorf("the subject is %q, %v", got, err)
			}
			from, err := m.Header.AddressList("From")
			if err != nil || len(from) != 1 || from[0].Name != strings.ReplaceAll(name, "\r\n", "  ") ||
				from[0].Address != "no-reply@id.example.test" {
				t.Errorf("the mail is from %v, %v", from, err)
			}
			if to, err := m.Header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != "jo@example.test" ||
				m.Header.Get("Bcc") != "" {
				t.Errorf("the mail is to %v and %q, %v", to, m.Header.Get("Bcc"), err)
			}
			bodies := parts(t, m)
			if len(bodies) != len(want) {
				t.Errorf("the mail has %d bodies", len(bodies))
			}
			for kind, body := range want {
				if bodies[kind] != body {
					t.Errorf("the body %s is %q, want %q", kind, bodies[kind], body)
				}
			}
		})
	}
}
