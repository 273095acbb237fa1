// Package mailbox is a mail server for development (mail sink), which also receives text messages
// (SMS): it accepts every message, delivers none, and shows them on a page and as JSON.
//
// Open returns a Mailbox. ServeSMTP receives mail (smtp.go), Handler has the pages and their JSON
// (page.go) and receives text messages (sms.go). A message is one file; its summary is in memory.
package mailbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The kinds of message.
const (
	KindEmail = "email"
	KindSMS   = "sms"
)

// DefaultKeep is how many messages a mailbox keeps.
const DefaultKeep = 10_000

// Message is one message, as the JSON of Handler and the file of the message have it.
type Message struct {
	// ID names the message under /_mailbox/{id}; a later message has a greater one.
	ID   string `json:"id"`
	Kind string `json:"kind"` // KindEmail or KindSMS
	// From and To are the envelope: the addresses of MAIL FROM and RCPT TO, or phone numbers.
	From string   `json:"from"`
	To   []string `json:"to"`
	// Subject is decoded (RFC 2047); a text message has none.
	Subject string `json:"subject"`
	// Text and HTML are the first bodies of their type, decoded to UTF-8, empty when there is none.
	Text string `json:"text"`
	HTML string `json:"html"`
	// Raw is the message as it was received; bytes that are not UTF-8 show as U+FFFD.
	Raw string `json:"raw"`
	// ReceivedAt is in UTC with milliseconds, like 2026-11-20T20:25:00.000Z.
	ReceivedAt string `json:"receivedAt"`
}

// timeLayout is the layout of ReceivedAt.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Mailbox keeps messages in one folder. All its methods may be called from several goroutines.
type Mailbox struct {
	dir  string
	keep int
	now  func() time.Time

	mu       sync.Mutex
	messages []Message // without bodies, oldest first
	last     int64     // the number of the newest id
}

// Open opens the mailbox in the folder dir, which it creates when absent. It keeps the newest
// messages, as many as keep says. Only one mailbox may use a folder at a time.
func Open(dir string, keep int, now func() time.Time) (*Mailbox, error) {
	if keep < 1 {
		return nil, fmt.Errorf("mailbox: must keep at least 1 message, not %d", keep)
	}
	m := &Mailbox{dir: dir, keep: keep, now: now}
	if err := os.MkdirAll(dir, 0o700); err != nil { // Mails have tokens: they are their owner's alone.
		return nil, fmt.Errorf("mailbox: %w", err)
	}
	files, err := os.ReadDir(dir) // sorted by name, hence by id
	if err != nil {
		return nil, fmt.Errorf("mailbox: %w", err)
	}
	for _, file := range files {
		id, isMessage := strings.CutSuffix(file.Name(), suffix)
		if !isMessage {
			continue
		}
		summary, err := m.read(id, 1)
		if err != nil {
			return nil, err
		}
		m.messages = append(m.messages, summary)
		if m.last, err = strconv.ParseInt(id, 10, 64); err != nil {
			return nil, fmt.Errorf("mailbox: %s is not the name of a message: %w", file.Name(), err)
		}
	}
	return m, m.removeOldest(m.keep)
}

// suffix ends the name of a message's file, which starts with its id.
const suffix = ".json"

func (m *Mailbox) file(id string) string { return filepath.Join(m.dir, id+suffix) }

// add keeps a message that has arrived now. When it returns, the message is in its file: a
// process that is killed loses nothing that was added, and leaves no halves.
func (m *Mailbox) add(message Message) (id string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.now().UTC()
	m.last = max(m.last+1, at.UnixMicro()) // The clock may go back; ids do not.
	message.ID, message.ReceivedAt = fmt.Sprintf("%016d", m.last), at.Format(timeLayout)
	summary := message
	summary.Text, summary.HTML, summary.Raw = "", "", ""
	if message.Kind == KindSMS {
		summary.Text = message.Text
	}
	var content bytes.Buffer
	if err := errors.Join(json.NewEncoder(&content).Encode(summary), json.NewEncoder(&content).Encode(message)); err != nil {
		return "", err
	}
	arriving := filepath.Join(m.dir, "arriving")
	if err := os.WriteFile(arriving, content.Bytes(), 0o600); err != nil {
		return "", err
	}
	if err := os.Rename(arriving, m.file(message.ID)); err != nil {
		return "", err
	}
	m.messages = append(m.messages, summary)
	return message.ID, m.removeOldest(m.keep)
}

// removeOldest removes the oldest messages beyond the number that is kept.
func (m *Mailbox) removeOldest(keep int) error {
	for len(m.messages) > keep {
		if err := os.Remove(m.file(m.messages[0].ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		m.messages = m.messages[1:]
	}
	return nil
}

// empty removes all messages.
func (m *Mailbox) empty() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removeOldest(0)
}

// newest returns the messages without their bodies, newest first.
func (m *Mailbox) newest() []Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.messages)
	slices.Reverse(all)
	return all
}

// message returns one message, or an error that is fs.ErrNotExist.
func (m *Mailbox) message(id string) (Message, error) {
	isID := func(message Message) bool { return message.ID == id }
	if !slices.ContainsFunc(m.newest(), isID) {
		return Message{}, fs.ErrNotExist
	}
	return m.read(id, 2)
}

// read reads a message's file, which has the message without its bodies and then with them: as
// many of the two as count says.
func (m *Mailbox) read(id string, count int) (message Message, err error) {
	file, err := os.Open(m.file(id))
	if err != nil {
		return message, err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	for range count {
		if err := decoder.Decode(&message); err != nil {
			return message, fmt.Errorf("mailbox: read message %s: %w", id, err)
		}
	}
	return message, nil
}
