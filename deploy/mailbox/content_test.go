package mailbox

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

const related = `From: =?utf-8?q?J=C3=B6rg?= <joerg@example.com>
Subject: =?utf-8?q?Verify_your?= =?utf-8?b?IGFjY291bnQg4pyT?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=outer

--outer
Content-Type: multipart/alternative; boundary="in ner"

--in ner
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Gr=FC=DFe, click https://example.com/verify?sptoken=3Da=
bc
--in ner
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: base64

PHA+R3LDvMOfZTwvcD4=
--in ner--
--outer
Content-Type: text/plain
Content-Disposition: attachment; filename=notes.txt

not the body
--outer--
`

func TestReadContent(t *testing.T) {
	for name, test := range map[string]struct{ raw, subject, text, html string }{
		"two bodies and an attachment": {
			raw: related, subject: "Verify your account ✓",
			text: "Grüße, click https://example.com/verify?sptoken=abc", html: "<p>Grüße</p>",
		},
		"no type":                      {raw: "Subject: a\n\nb", subject: "a", text: "b"},
		"HTML alone":                   {raw: "Content-Type: TEXT/HTML\n\n<b>", html: "<b>"},
		"an attachment alone":          {raw: "Content-Disposition: attachment\n\nb"},
		"a folded subject":             {raw: "Subject: a\n b\n\tc\n\n", subject: "a b c"},
		"a subject in Shift JIS":       {raw: "Subject: =?shift_jis?b?k/qWew==?=\n\n", subject: "日本"},
		"a subject of unknown charset": {raw: "Subject: =?klingon?q?a?=\n\n", subject: "=?klingon?q?a?="},
		"a subject of raw bytes":       {raw: "Subject: a\xffb\n\n", subject: "a\uFFFDb"},
		"an unknown charset":           {raw: "Content-Type: text/plain; charset=klingon\n\na\xff", text: "a\uFFFD"},
		"an unknown encoding":          {raw: "Content-Transfer-Encoding: klingon\n\nabc", text: "abc"},
		"base64 that breaks off":       {raw: "Content-Transfer-Encoding: base64\n\nYWJj!!!", text: "abc"},
		"parameters that are broken":   {raw: "Content-Type: text/html; charset\n\n<b>", html: "<b>"},
		"no header at all":             {raw: "just a line\nand another"},
		"a header that breaks off":     {raw: "Subject: a\nnonsense\n\nb"},
		"a header without a body":      {raw: "Subject: a\n\n", subject: "a"},
		"a boundary that is missing":   {raw: "Subject: a\nContent-Type: multipart/mixed\n\n--x\n\nb\n--x--", subject: "a"},
		"a multipart that breaks off":  {raw: "Content-Type: multipart/mixed; boundary=x\n\n--x\n\nb", text: "b"},
		"nothing":                      {},
	} {
		t.Run(name, func(t *testing.T) {
			got := readContent([]byte(strings.ReplaceAll(test.raw, "\n", "\r\n")))
			if got.subject != test.subject || got.text != test.text || got.html != test.html {
				t.Errorf("subject %q, text %q, html %q", got.subject, got.text, got.html)
			}
		})
	}
}

func TestExpensiveMessagesAreReadInBoundedTime(t *testing.T) {
	var nested bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&nested, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	wide := "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\n\r\n", 1_000_000)
	fields := strings.Repeat("A: b\r\n", 2_000_000)
	encoded := "Subject: " + strings.Repeat("=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte("a"))+"?= ", 500_000) + "\r\n\r\n"
	for name, raw := range map[string]string{"nested": nested.String(), "wide": wide, "fields": fields, "encoded": encoded} {
		t.Run(name, func(t *testing.T) {
			// Ten seconds are far from both: linear work takes a fraction of one
			// second, also under the race detector, and quadratic work takes hours.
			done := make(chan struct{})
			go func() { readContent([]byte(raw)); close(done) }()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the message is still being read")
			}
		})
	}
}

func FuzzReadContent(f *testing.F) {
	f.Add([]byte(related))
	f.Add([]byte(strings.ReplaceAll(related, "\n", "\r\n")))
	f.Add([]byte("Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n--\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := readContent(raw)
		for _, s := range []string{got.subject, got.text, got.html} {
			if strings.ToValidUTF8(s, "") != s {
				t.Errorf("%q is not UTF-8", s)
			}
		}
	})
}

func TestLinked(t *testing.T) {
	link := func(address string) string {
		return `<a href="` + address + `" target="_blank" rel="noopener noreferrer">` + address + `</a>`
	}
	for text, want := range map[string]string{
		"no <link>":                               "no &lt;link&gt;",
		"":                                        "",
		"https://a.example/v?t=x_y-z_":            link("https://a.example/v?t=x_y-z_"),
		"Go to https://a.example/b. Then":         "Go to " + link("https://a.example/b") + ". Then",
		"(see http://a.example/b), or":            "(see " + link("http://a.example/b") + "), or",
		"<https://a.example/?a=1&b=2>":            "&lt;" + link("https://a.example/?a=1&amp;b=2") + "&gt;",
		"javascript://a.example/%0aalert(1)":      "javascript://a.example/%0aalert(1)",
		"xhttps://a.example":                      "xhttps://a.example",
		"https://a.example/\"onclick=alert(1)":    link("https://a.example/") + "&#34;onclick=alert(1)",
		"https://a.example/'onclick=x":            link("https://a.example/&#39;onclick=x"),
		"two https://a.example https://b.example": "two " + link("https://a.example") + " " + link("https://b.example"),
	} {
		if got := string(linked(text)); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}
