package mailbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// The kinds of message.
const (
	KindEmail = "email"
	KindSMS   = "sms"
)

// Message is one message as the JSON of Handler shows it, field by field.
type Message struct {
	// ID names the message under /_mailbox/{id}; a later message has a greater one.
	ID string `json:"id"`
	// Kind is KindEmail or KindSMS.
	Kind string `json:"kind"`
	// From and To are the envelope: the addresses of MAIL FROM and RCPT TO, or
	// phone numbers. What the message itself claims is in Raw.
	From string   `json:"from"`
	To   []string `json:"to"`
	// Subject is decoded (RFC 2047); a text message has none.
	Subject string `json:"subject"`
	// Text and HTML are the first bodies of their type, decoded to UTF-8, empty
	// when there is none or when the message is too broken to find it.
	Text string `json:"text"`
	HTML string `json:"html"`
	// Raw is the message as it was received. Bytes that are not UTF-8 cannot be
	// said in JSON and show as U+FFFD; /_mailbox/{id}/raw has them as they came.
	Raw string `json:"raw"`
	// ReceivedAt is in UTC with milliseconds, like 2026-11-20T20:25:00.000Z.
	ReceivedAt string `json:"receivedAt"`
}

const (
	// peekBytes is how much of a message is searched for its subject.
	peekBytes = 64 << 10
	// previewRunes bounds how much of a subject or a text is in memory for the list.
	previewRunes = 200
	// timeLayout is the layout of ReceivedAt.
	timeLayout = "2006-01-02T15:04:05.000Z"
	// envelopeField starts the first line of every file. It is a header field,
	// so that a kept mail is still a mail that any mail program opens.
	envelopeField = "X-Doorward-Mailbox: "
)

// envelope is the first line of a message's file, which is in memory for the list too.
type envelope struct {
	Kind       string    `json:"-"` // The file's name says it.
	From       string    `json:"from"`
	To         []string  `json:"to"`
	Subject    string    `json:"subject,omitempty"` // shortened
	Text       string    `json:"text,omitempty"`    // shortened, of a text message only
	ReceivedAt time.Time `json:"receivedAt"`
}

// setSummary sets, from the beginning of the message, the fields that the list shows.
func (env *envelope) setSummary(head []byte) {
	env.From = strings.ToValidUTF8(env.From, "\uFFFD")
	to := make([]string, len(env.To))
	for i, address := range env.To {
		to[i] = strings.ToValidUTF8(address, "\uFFFD")
	}
	env.To = to
	if env.Kind == KindSMS {
		env.Text = shorten(string(head))
		return
	}
	header, _ := readHeader(bufio.NewReader(bytes.NewReader(head)))
	env.Subject = shorten(decodedField(header, "Subject"))
}

// shorten cuts s to previewRunes and makes it valid UTF-8.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	count := 0
	for i := range s {
		if count == previewRunes {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

func (env *envelope) writeTo(w io.Writer) error {
	line, err := json.Marshal(env)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\r\n", envelopeField, line)
	return err
}

// readEnvelope reads the first line of a message's file and leaves reader at
// the message. A file without a readable envelope, which another program has
// written, is a message that was received when the file was written.
func readEnvelope(kind string, file *os.File, reader *bufio.Reader) (*envelope, error) {
	env := &envelope{Kind: kind, To: []string{}}
	if start, _ := reader.Peek(len(envelopeField)); string(start) == envelopeField {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("mailbox: read envelope of %s: %w", file.Name(), err)
		}
		if json.Unmarshal(line[len(envelopeField):], env) == nil {
			return env, nil
		}
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	env.ReceivedAt = info.ModTime().UTC()
	return env, nil
}

// message renders a message for the JSON.
func (env *envelope) message(id string, raw []byte) Message {
	out := env.summaryMessage(id)
	out.Raw = strings.ToValidUTF8(string(raw), "\uFFFD")
	if env.Kind == KindSMS {
		out.Text = out.Raw
		return out
	}
	content := readContent(raw)
	out.Subject, out.Text, out.HTML = content.subject, content.text, content.html
	return out
}

// summaryMessage renders a message without its bodies. Subject and, for a text message,
// Text are shortened.
func (env *envelope) summaryMessage(id string) Message {
	return Message{
		ID:         id,
		Kind:       env.Kind,
		From:       env.From,
		To:         env.To,
		Subject:    env.Subject,
		Text:       env.Text,
		ReceivedAt: env.ReceivedAt.Format(timeLayout),
	}
}
