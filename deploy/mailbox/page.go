package mailbox

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))

	// pagePolicy is the Content-Security-Policy of the page: it runs its own script and
	// style, known by their hashes, sends requests to its own origin, and frames an HTML
	// body. The script may not turn text into markup (trusted types).
	pagePolicy = "default-src 'none'; script-src " + hashOf(pageScript) + "; style-src " + hashOf(pageStyle) +
		"; connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; form-action 'self'" +
		"; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

func hashOf(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

const (
	// rowsPerPage is how many messages the list shows; the others are behind a link.
	rowsPerPage = 100
	// shownBytes is how much of a text the page shows; GET …/raw has the rest.
	shownBytes = 256 << 10
)

// page is the data of the template page/page.html.
type page struct {
	Style   template.CSS
	Script  template.JS
	Path    string
	Sandbox string
	Count   int
	Version string
	Limit   int
	Rows    []row
	Blank   row          // the form of a row, for the script
	To      string       // what the recipients are searched for, or empty
	Part    bool         // whether the list is that of a search, or does not start at the newest message
	Older   template.URL // the query of the page with older messages, or empty
	Query   template.URL // the query of this page of the list, or empty
	Open    *openMessage
	Chosen  bool   // whether the address of the request names Open
	SMTP    string // where to send mail, or empty
	Host    string
	Port    string
}

// row is one line of the list.
type row struct {
	Message
	Query   template.URL
	Current bool
}

// Recipients is To for reading.
func (m Message) Recipients() string { return strings.Join(m.To, ", ") }

// openMessage is the message that the page shows beside the list.
type openMessage struct {
	Message
	Author   string // the From field, or the envelope's sender when there is none
	Segments []segment
	TextCut  bool
	Remote   bool   // whether the HTML loads something from another server
	Source   string // of a mail; a text message has no other source than its text
	RawCut   bool
	View     string // the view shown first: html, text or source
}

// page answers with the list and one message: the chosen one, or else the newest one, which
// the page shows where the screen has room for it.
func (h *handler) page(w http.ResponseWriter, r *http.Request, chosen *entry) {
	query := r.URL.Query()
	p, err := h.compose(query.Get("before"), strings.TrimSpace(query.Get("to")), chosen)
	if err != nil {
		h.failed(r, err)
		http.Error(w, "The mailbox could not be read.", http.StatusInternalServerError)
		return
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		h.failed(r, err)
		http.Error(w, "The page could not be made.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = out.WriteTo(w)
}

func (h *handler) compose(before, to string, chosen *entry) (*page, error) {
	m := h.mailbox
	p := &page{
		Style: template.CSS(pageStyle), Script: template.JS(pageScript), // Our own files, not input.
		Path: Path, Sandbox: bodySandbox, Limit: rowsPerPage, To: to, Part: before != "" || to != "",
		Query: listQuery(before, to), Chosen: chosen != nil, SMTP: m.connections.address(),
	}
	p.Host, p.Port = dialableAddress(p.SMTP)
	p.Count, p.Version = m.index.state()

	limit := rowsPerPage + 1
	if to != "" {
		limit = -1
	}
	for _, e := range m.index.newest(before, limit) {
		env, err := m.summary(e)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if to != "" && !env.isTo(to) {
			continue
		}
		if len(p.Rows) == rowsPerPage {
			p.Older = listQuery(p.Rows[rowsPerPage-1].ID, to)
			break
		}
		if chosen == nil {
			chosen = e
		}
		p.Rows = append(p.Rows, row{Message: env.summaryMessage(e.id), Query: p.Query, Current: e == chosen})
	}
	if chosen == nil {
		return p, nil
	}
	env, raw, err := m.source(chosen)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.Open = newOpenMessage(chosen.id, env, raw)
	return p, nil
}

// listQuery is the query of a page of the list.
func listQuery(before, to string) template.URL {
	values := url.Values{}
	if before != "" {
		values.Set("before", before)
	}
	if to != "" {
		values.Set("to", to)
	}
	if len(values) == 0 {
		return ""
	}
	return template.URL("?" + values.Encode())
}

// isTo reports whether a recipient contains a text, in any case.
func (env *envelope) isTo(text string) bool {
	return slices.ContainsFunc(env.To, func(to string) bool { return strings.Contains(strings.ToLower(to), strings.ToLower(text)) })
}

func newOpenMessage(id string, env *envelope, raw []byte) *openMessage {
	l := &openMessage{Message: env.message(id, raw), Author: env.From}
	if env.Kind == KindEmail {
		l.Source, l.RawCut = truncate(l.Raw)
		if from := readContent(raw).from; from != "" {
			l.Author = from
		}
	}
	text, cut := truncate(l.Text)
	l.Segments, l.TextCut = splitLinks(text), cut
	l.Remote = remoteContent.MatchString(l.HTML)
	switch {
	case l.HTML != "":
		l.View = "html"
	case l.Text != "" || env.Kind == KindSMS:
		l.View = "text"
	default:
		l.View = "source"
	}
	return l
}

// remoteContent matches, roughly, what an HTML body loads from other servers. It decides
// only whether the page shows a hint.
var remoteContent = regexp.MustCompile(
	`(?i)(?:<link\s[^>]*href|src|srcset|background)\s*=\s*["']?\s*(?:https?:)?//|url\(\s*["']?(?:https?:)?//`)

// truncate cuts a text to shownBytes, between two characters, and reports whether it did.
func truncate(text string) (string, bool) {
	if len(text) <= shownBytes {
		return text, false
	}
	end := shownBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end], true
}

// dialableAddress turns the address of a listener into a host and a port to which a program on
// the same machine can connect.
func dialableAddress(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", ""
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		return "localhost", port
	}
	if strings.Contains(host, ":") {
		return fmt.Sprintf("[%s]", host), port
	}
	return host, port
}
