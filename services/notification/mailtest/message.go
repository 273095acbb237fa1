package mailtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
)

// Message is a mail as a mail program reads it.
type Message struct {
	EnvelopeFrom, EnvelopeTo string
	Helo                     string // with which the client greeted
	Secured                  bool   // it came over TLS
	Raw                      string
	Header                   mail.Header
	Subject                  string // decoded
	FromName, From, To       string // decoded
	ID                       string // Message-ID without its brackets
	Type                     string // MIME type of the whole
	Text, HTML               string // decoded
}

// Parse reads a mail. It is strict: what a mail program might overlook is an error.
func Parse(raw []byte) (m Message, err error) {
	m.Raw = string(raw)
	r, err := mail.CreateReader(bytes.NewReader(raw))
	if err != nil {
		return m, fmt.Errorf("read the mail: %w", err)
	}
	m.Header = r.Header
	var errs [5]error
	m.Subject, errs[0] = r.Header.Subject()
	m.ID, errs[1] = r.Header.MessageID()
	m.Type, _, errs[2] = r.Header.ContentType()
	_, errs[3] = r.Header.Date()
	from, err := r.Header.AddressList("From")
	if err == nil && len(from) == 1 {
		m.From, m.FromName = from[0].Address, from[0].Name
	}
	errs[4] = err
	if to, err := r.Header.AddressList("To"); err == nil && len(to) == 1 {
		m.To = to[0].Address
	}
	if err := errors.Join(errs[:]...); err != nil {
		return m, fmt.Errorf("read the header: %w", err)
	}
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return m, fmt.Errorf("read a part: %w", err)
		}
		body, err := io.ReadAll(part.Body)
		if err != nil {
			return m, fmt.Errorf("read a part: %w", err)
		}
		text := strings.ReplaceAll(string(body), "\r\n", "\n")
		header, ok := part.Header.(*mail.InlineHeader)
		if !ok {
			return m, errors.New("the mail has an attachment")
		}
		kind, params, err := (&message.Header{Header: header.Header.Header}).ContentType()
		if err != nil || !strings.EqualFold(params["charset"], "utf-8") {
			return m, fmt.Errorf("a part has the type %q", header.Get("Content-Type"))
		}
		switch kind {
		case "text/html":
			m.HTML += text
		default:
			m.Text += text
		}
	}
}

var token = regexp.MustCompile(`[?&]sptoken=([^&#\s"<]+)`)

// Token reads the token of the first link of a text.
func Token(text string) string {
	found := token.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	value, _ := url.QueryUnescape(found[1])
	return value
}
