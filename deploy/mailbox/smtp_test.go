package mailbox_test

import (
	"errors"
	"fmt"
	"io"
	"net/smtp"
	"net/textproto"
	"os"
	"strings"
	"testing"
)

func TestMailArrivesAsItWasSent(t *testing.T) {
	box := start(t, t.TempDir())
	raw := mail("dots", "First\r\n.\r\n..\r\n.hidden\r\n\xff\xfe not UTF-8\r\n"+strings.Repeat("long ", 30_000)+"\r\n")
	box.send(t, raw, "jane@example.com", "hidden@example.com")
	got := box.messages(t, "")[0]
	if got.Raw != strings.ToValidUTF8(raw, "\uFFFD") {
		t.Errorf("raw differs, %d bytes against %d", len(got.Raw), len(raw))
	}
	if got.From != "sender@example.com" || strings.Join(got.To, " ") != "jane@example.com hidden@example.com" {
		t.Errorf("the mail is from %s to %v", got.From, got.To)
	}
}

func TestSMTP(t *testing.T) {
	box := start(t, t.TempDir())
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
	box := start(t, t.TempDir())
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
		if got := files(t, box.dir); len(got) != 0 {
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
	t.Run("a client that leaves in the middle leaves nothing", func(t *testing.T) {
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
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		box.send(t, mail("whole", ""))
		if got := subjects(box.messages(t, "")); got != "whole" {
			t.Errorf("the mailbox kept %v", got)
		}
	})
}

func TestAMailThatCannotBeKeptIsNotAccepted(t *testing.T) {
	box := start(t, t.TempDir())
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
}
