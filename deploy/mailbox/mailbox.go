// Package mailbox is a mail server for development (mail sink, mail catcher), which also
// receives text messages (SMS): it accepts every message, delivers none, stores them in a
// folder, and shows them on a page.
//
// Open returns a Mailbox. ServeSMTP receives mail (smtp.go, connection.go), SMSHandler
// receives text messages (sms.go), and Handler is the page and its JSON
// (handler.go, page.go). A message is one file (message.go, folder.go); index.go has in
// memory what the list shows of the messages.
package mailbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
)

// ErrClosed is returned by the methods of a Mailbox after Close.
var ErrClosed = errors.New("mailbox: closed")

// Defaults of a Config.
const (
	DefaultKeep      = 10_000
	DefaultKeepBytes = 1 << 30
)

// Mailbox keeps messages in one folder. All its methods may be called from
// several goroutines.
type Mailbox struct {
	folder *folder
	index  *index
	now    func() time.Time
	log    *slog.Logger

	server      *smtp.Server
	connections *connections
	closed      atomic.Bool
}

// Config changes the defaults of a mailbox. A zero field leaves its default.
type Config struct {
	Keep      int              // how many messages are kept, DefaultKeep; the oldest are removed
	KeepBytes int64            // how many bytes of messages, DefaultKeepBytes; never the newest one is removed
	Now       func() time.Time // where the time of arrival comes from, time.Now
	Log       *slog.Logger     // of unexpected failures, slog.Default; never of addresses or contents of messages
}

// Open opens the mailbox in the folder dir, which it creates when absent and
// locks until Close: a second Open of the same folder fails, also from another
// process. It reads names and sizes only, so that a full mailbox opens in
// milliseconds.
func Open(dir string, cfg Config) (*Mailbox, error) {
	cfg.Keep, cfg.KeepBytes, cfg.Log = cmp.Or(cfg.Keep, DefaultKeep), cmp.Or(cfg.KeepBytes, DefaultKeepBytes), cmp.Or(cfg.Log, slog.Default())
	if cfg.Keep < 1 {
		return nil, fmt.Errorf("mailbox: must keep at least 1 message, not %d", cfg.Keep)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	folder, entries, err := openFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("mailbox: open %s: %w", dir, err)
	}
	m := &Mailbox{
		folder:      folder,
		index:       newIndex(cfg.Keep, cfg.KeepBytes, cfg.Now().UnixMicro()),
		now:         cfg.Now,
		log:         cfg.Log,
		connections: &connections{open: map[*connection]struct{}{}},
	}
	m.server = m.smtpServer()
	for _, e := range entries {
		m.discard(m.index.insert(e))
	}
	return m, nil
}

// AddText stores a text message (SMS) as if it had arrived now and returns its
// id. When it returns, the message is on disk.
func (m *Mailbox) AddText(from string, to []string, text string) (string, error) {
	return m.store(envelope{Kind: KindSMS, From: from, To: to}, strings.NewReader(text))
}

// Close shuts down gracefully: idle SMTP clients are told to retry later, and a message that
// is being received is received to its end. When ctx ends first, open connections are
// closed, which a client sees as a message that was not accepted. At the end the lock of
// the folder is released.
func (m *Mailbox) Close(ctx context.Context) error {
	if m.closed.Swap(true) {
		return ErrClosed
	}
	m.connections.drain()
	err := m.server.Shutdown(ctx)
	if err != nil {
		m.connections.closeAll()
	}
	return errors.Join(err, m.folder.close())
}

// store writes the message to disk, then adds it to the index, then removes the oldest
// messages beyond the limits.
func (m *Mailbox) store(env envelope, body io.Reader) (string, error) {
	if m.closed.Load() {
		return "", ErrClosed
	}
	// The head of the message is parsed before anything is written, because the
	// first line of the file has the summary that the list shows.
	reader := bufio.NewReaderSize(body, peekBytes)
	head, _ := reader.Peek(peekBytes) // A failure comes back when the rest is read.
	env.ReceivedAt = m.now().UTC()
	env.setSummary(head)

	e := &entry{id: m.index.nextID(env.ReceivedAt), kind: env.Kind}
	size, err := m.folder.write(e.fileName(), func(w io.Writer) error {
		if err := env.writeTo(w); err != nil {
			return err
		}
		_, err := io.Copy(w, reader)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("mailbox: keep message: %w", err)
	}
	e.size = size
	e.envelope.Store(&env)
	m.discard(m.index.insert(e))
	return e.id, nil
}

// discard deletes the files of entries that were removed from the index. A file that
// cannot be deleted now is in the index again after the next Open.
func (m *Mailbox) discard(removed []*entry) {
	if len(removed) == 0 {
		return
	}
	names := make([]string, len(removed))
	for i, e := range removed {
		names[i] = e.fileName()
	}
	if err := m.folder.remove(names); err != nil {
		m.log.Error("mailbox: delete messages", "error", err)
	}
}

// summary returns what the list shows of a message. It reads the first line of the
// message's file at the first call.
func (m *Mailbox) summary(e *entry) (*envelope, error) {
	if env := e.envelope.Load(); env != nil {
		return env, nil
	}
	file, err := m.folder.open(e.fileName())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	env, err := readEnvelope(e.kind, file, bufio.NewReader(file))
	if err != nil {
		return nil, err
	}
	e.envelope.Store(env)
	return env, nil
}

// source returns the envelope and the message as it was received.
func (m *Mailbox) source(e *entry) (*envelope, []byte, error) {
	file, err := m.folder.open(e.fileName())
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	reader := bufio.NewReader(file)
	env, err := readEnvelope(e.kind, file, reader)
	if err != nil {
		return nil, nil, err
	}
	raw, err := io.ReadAll(reader)
	if err != nil {
		return nil, nil, fmt.Errorf("mailbox: read message %s: %w", e.id, err)
	}
	return env, raw, nil
}
