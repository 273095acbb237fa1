package mailbox_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/smtp"
	"net/textproto"
	"os"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/mailbox"
)

func TestEveryLoginIsAccepted(t *testing.T) {
	box := start(t, t.TempDir(), mailbox.Config{})
	t.Run("PLAIN", func(t *testing.T) {
		client := dial(t, box.smtp)
		if err := client.Auth(smtp.PlainAuth("", "anyone", "anything", "127.0.0.1")); err != nil {
			t.Error(err)
		}
	})
	for _, withName := range []bool{false, true} {
		t.Run(fmt.Sprintf("LOGIN, name sent along: %v", withName), func(t *testing.T) {
			client := dial(t, box.smtp)
			if err := client.Auth(login{withName}); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("but no mechanism that was not offered", func(t *testing.T) {
		client := dial(t, box.smtp)
		if err := client.Auth(smtp.CRAMMD5Auth("anyone", "anything")); err == nil {
			t.Error("a mechanism that was not offered returned no error")
		}
	})
}

// login is the client's side of LOGIN.
type login struct{ withName bool }

func (l login) Start(*smtp.ServerInfo) (string, []byte, error) {
	if l.withName {
		return "LOGIN", []byte("anyone"), nil
	}
	return "LOGIN", nil, nil
}

func (l login) Next(challenge []byte, more bool) ([]byte, error) {
	switch {
	case !more:
		return nil, nil
	case string(challenge) == "Username:":
		return []byte("anyone"), nil
	case string(challenge) == "Password:":
		return []byte("anything"), nil
	}
	return nil, fmt.Errorf("the server asked for %q", challenge)
}

func TestMailArrivesAsItWasSent(t *testing.T) {
	box := start(t, t.TempDir(), mailbox.Config{})
	raw := mail("dots", "First\r\n.\r\n..\r\n.hidden\r\n\xff\xfe not UTF-8\r\n"+strings.Repeat("long ", 30_000)+"\r\n")
	box.send(t, raw, "jane@example.com", "hidden@example.com")
	got := box.messages(t, "")[0]
	if got.Raw != strings.ToValidUTF8(raw, "\uFFFD") {
		t.Errorf("raw differs, %d bytes against %d", len(got.Raw), len(raw))
	}
	if _, _, body := box.get(t, "/_mailbox/"+got.ID+"/raw", ""); string(body) != raw {
		t.Errorf("the file differs, %d bytes against %d", len(body), len(raw))
	}
	if got.From != "sender@example.com" || strings.Join(got.To, " ") != "jane@example.com hidden@example.com" {
		t.Errorf("the mail is from %s to %v", got.From, got.To)
	}
}

func TestSMTP(t *testing.T) {
	box := start(t, t.TempDir(), mailbox.Config{})
	t.Run("a bounce has no sender", func(t *testing.T) {
		if err := smtp.SendMail(box.smtp, nil, "", []string{"jane@example.com"}, []byte(mail("bounce", ""))); err != nil {
			t.Fatal(err)
		}
		if got := box.messages(t, "")[0]; got.From != "" || got.Subject != "bounce" {
			t.Errorf("the bounce is %+v", got)
		}
	})
	t.Run("a mail may come in chunks", func(t *testing.T) {
		client := dial(t, box.smtp)
		if err := errors.Join(client.Mail("a@example.com"), client.Rcpt("b@example.com")); err != nil {
			t.Fatal(err)
		}
		for _, chunk := range []string{"BDAT 21\r\nSubject: in pieces\r\n\r", "BDAT 5 LAST\r\n\nDone"} {
			if _, err := client.Text.W.WriteString(chunk); err != nil {
				t.Fatal(err)
			}
			if err := client.Text.W.Flush(); err != nil {
				t.Fatal(err)
			}
			if _, _, err := client.Text.ReadResponse(250); err != nil {
				t.Fatal(err)
			}
		}
		if got := box.messages(t, "")[0]; got.Subject != "in pieces" || got.Text != "Done" {
			t.Errorf("the mail in chunks is %+v", got)
		}
	})
	t.Run("addresses may be in any script", func(t *testing.T) {
		client := dial(t, box.smtp)
		for _, command := range []string{"EHLO here", "MAIL FROM:<jörg@bücher.example> SMTPUTF8 BODY=8BITMIME", "RCPT TO:<用户@例え.example>"} {
			say(t, client.Text, 250, command)
		}
		say(t, client.Text, 354, "DATA")
		say(t, client.Text, 250, "Subject: Grüße\r\n\r\nHallo\r\n.")
		if got := box.messages(t, "")[0]; got.From != "jörg@bücher.example" || got.To[0] != "用户@例え.example" || got.Subject != "Grüße" {
			t.Errorf("the mail with addresses of other scripts is %+v", got)
		}
	})
}

func say(t *testing.T, conn *textproto.Conn, code int, line string) {
	t.Helper()
	id, err := conn.Cmd("%s", line)
	if err != nil {
		t.Fatal(err)
	}
	conn.StartResponse(id)
	defer conn.EndResponse(id)
	if _, _, err := conn.ReadResponse(code); err != nil {
		t.Fatalf("%.60q: %v", line, err)
	}
}

func TestSMTPIsBounded(t *testing.T) {
	box := start(t, t.TempDir(), mailbox.Config{})
	t.Run("a message larger than 25 MiB is refused, and nothing of it stays", func(t *testing.T) {
		client := dial(t, box.smtp)
		if err := errors.Join(client.Mail("a@example.com"), client.Rcpt("b@example.com")); err != nil {
			t.Fatal(err)
		}
		data, err := client.Data()
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Repeat("x", 1022) + "\r\n"
		for range 26 << 10 {
			if _, err := io.WriteString(data, line); err != nil {
				t.Fatal(err)
			}
		}
		if err := data.Close(); err == nil || !strings.HasPrefix(err.Error(), "552") {
			t.Errorf("the large message is answered with %v", err)
		}
		if got := glob(t, box.dir, "*[0-9]*"); len(got) != 0 {
			t.Errorf("the large message left %v", got)
		}
	})
	t.Run("a size said beforehand is refused at once", func(t *testing.T) {
		client := dial(t, box.smtp)
		say(t, client.Text, 250, "EHLO here")
		say(t, client.Text, 552, "MAIL FROM:<a@example.com> SIZE=26214401")
	})
	t.Run("the recipient after the hundredth is refused", func(t *testing.T) {
		client := dial(t, box.smtp)
		if err := client.Mail("a@example.com"); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := client.Rcpt(fmt.Sprintf("b%d@example.com", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Rcpt("b100@example.com"); err == nil || !strings.HasPrefix(err.Error(), "452") {
			t.Errorf("the recipient is answered with %v", err)
		}
	})
	t.Run("an address longer than any that exists is refused", func(t *testing.T) {
		client := dial(t, box.smtp)
		say(t, client.Text, 250, "EHLO here")
		long := strings.Repeat("a", 1_000)
		say(t, client.Text, 501, "MAIL FROM:<"+long+"@example.com>")
		say(t, client.Text, 250, "MAIL FROM:<a@example.com>")
		say(t, client.Text, 501, "RCPT TO:<"+long+"@example.com>")
	})
	t.Run("a client that leaves in the middle leaves nothing and is no news", func(t *testing.T) {
		client := dial(t, box.smtp)
		if err := errors.Join(client.Mail("a@example.com"), client.Rcpt("b@example.com")); err != nil {
			t.Fatal(err)
		}
		data, err := client.Data()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(data, "Subject: half\r\n\r\n"+strings.Repeat("x", 100<<10)); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { return len(glob(t, box.dir, "arriving-*")) == 1 })
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { return len(glob(t, box.dir, "arriving-*")) == 0 })
		if got := box.messages(t, ""); len(got) != 0 {
			t.Errorf("the mailbox kept %v", got)
		}
		if text := box.log.text(); strings.Contains(text, "level=ERROR") {
			t.Errorf("the mailbox logged %s", text)
		}
	})
}

func TestAMailThatCannotBeKeptIsNotAccepted(t *testing.T) {
	box := start(t, t.TempDir(), mailbox.Config{})
	if err := os.RemoveAll(box.dir); err != nil {
		t.Fatal(err)
	}
	err := smtp.SendMail(box.smtp, nil, "a@example.com", []string{"b@example.com"}, []byte(mail("lost", "")))
	if err == nil || !strings.HasPrefix(err.Error(), "451") {
		t.Errorf("the client gets %v", err)
	}
	if strings.Contains(fmt.Sprint(err), box.dir) {
		t.Errorf("the SMTP answer tells a path of the server: %v", err)
	}
	if text := box.log.text(); !strings.Contains(text, "mail not accepted") {
		t.Errorf("the mailbox logged %q", text)
	}
	if _, err := box.AddText("a", []string{"b"}, "c"); err == nil {
		t.Error("a text was accepted")
	}
}

func TestServeSMTPReportsAListenerThatFails(t *testing.T) {
	box, err := mailbox.Open(t.TempDir(), mailbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := box.ServeSMTP(listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("serving a closed listener returned %v", err)
	}
}
