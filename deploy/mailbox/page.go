package mailbox

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Path is where Handler shows the mailbox.
const Path = "/_mailbox"

// Handler shows the mailbox under Path, as pages or, to a client that accepts application/json,
// as JSON, and receives text messages:
//
//	GET    /_mailbox            all messages, newest first; narrowed by limit, before (an id),
//	                            to (an address) and summary=true (without bodies)
//	DELETE /_mailbox            empties the mailbox
//	GET    /_mailbox/{id}       one message
//	GET    /_mailbox/{id}/html  its HTML body, sandboxed
//	POST   /2010-04-01/Accounts/{account}/Messages.json   form: To, Body, From or MessagingServiceSid
//
// It is for the same origin only: no answer carries a CORS header, and a browser's DELETE or POST
// from another origin is refused.
func (m *Mailbox) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, m.list)
	mux.HandleFunc("DELETE "+Path, m.deleteAll)
	mux.HandleFunc("GET "+Path+"/{id}", m.one)
	mux.HandleFunc("GET "+Path+"/{id}/html", m.html)
	mux.HandleFunc("POST /2010-04-01/Accounts/{account}/Messages.json", m.receiveText)
	return withSecurityHeaders(http.NewCrossOriginProtection().Handler(mux))
}

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageStyle string

	pageTemplate = template.Must(template.New("").Funcs(template.FuncMap{
		"style":      func() template.CSS { return template.CSS(pageStyle) },
		"recipients": func(m Message) string { return strings.Join(m.To, ", ") },
		"linked":     linked,
	}).Parse(pageHTML))

	// pagePolicy is the Content-Security-Policy of the pages: no script, their own style, and the
	// frame of an HTML body.
	pagePolicy = "default-src 'none'; style-src " + hashOf(pageStyle) + "; frame-src 'self'; img-src data:; base-uri 'none'; " +
		"form-action 'none'; frame-ancestors 'none'"
)

// The policy of the HTML body of a mail: no script, no form, nothing loaded from elsewhere. Its links
// open in a page of their own.
const (
	bodyPolicy = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; " +
		"style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; frame-ancestors 'self'"
	// bodyStart comes before the body, so that its base is the one that counts.
	bodyStart = `<!doctype html><meta charset="utf-8"><base target="_blank">` + "\n"
)

func hashOf(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// withSecurityHeaders sets the security headers of every answer, because the content of
// messages is not trusted. Browsers store nothing, because mails have tokens.
func withSecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Vary", "Accept")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		next.ServeHTTP(w, r)
	})
}

// rowsPerPage is how many messages the page lists; the others are behind a link.
const rowsPerPage = 100

func (m *Mailbox) list(w http.ResponseWriter, r *http.Request) {
	query, limit := r.URL.Query(), -1
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			http.Error(w, "limit must be a whole number, 0 or more", http.StatusBadRequest)
			return
		}
	}
	found := m.find(query)
	if wantsJSON(r) {
		m.listJSON(w, found, limit, query.Get("summary") == "true")
		return
	}
	older := ""
	if len(found) > rowsPerPage {
		found = found[:rowsPerPage]
		query.Set("before", found[rowsPerPage-1].ID)
		older = "?" + query.Encode()
	}
	show(w, "list", map[string]any{"Messages": found, "Older": older})
}

// find returns the messages that the query asks for, without their bodies, newest first.
func (m *Mailbox) find(query url.Values) []Message {
	before, address := query.Get("before"), query.Get("to")
	return slices.DeleteFunc(m.newest(), func(message Message) bool {
		isTo := func(to string) bool { return strings.EqualFold(to, address) }
		return before != "" && message.ID >= before || address != "" && !slices.ContainsFunc(message.To, isTo)
	})
}

func (m *Mailbox) listJSON(w http.ResponseWriter, found []Message, limit int, summary bool) {
	if limit >= 0 {
		found = found[:min(limit, len(found))]
	}
	if summary {
		writeJSON(w, http.StatusOK, map[string]any{"messages": found})
		return
	}
	whole := make([]Message, 0, len(found))
	for _, each := range found {
		message, err := m.message(each.ID)
		if errors.Is(err, fs.ErrNotExist) { // It has been removed in the meantime.
			continue
		}
		if err != nil {
			fail(w, err)
			return
		}
		whole = append(whole, message)
	}
	writeJSON(w, http.StatusOK, map[string]any{"messages": whole})
}

func (m *Mailbox) deleteAll(w http.ResponseWriter, _ *http.Request) {
	if err := m.empty(); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (m *Mailbox) one(w http.ResponseWriter, r *http.Request) {
	message, err := m.message(r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	if wantsJSON(r) {
		writeJSON(w, http.StatusOK, message)
		return
	}
	show(w, "message", message)
}

func (m *Mailbox) html(w http.ResponseWriter, r *http.Request) {
	message, err := m.message(r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", bodyPolicy)
	header.Set("X-Frame-Options", "SAMEORIGIN")
	header.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, bodyStart+message.HTML)
}

// wantsJSON reports whether a client accepts JSON by name, which no browser does for a page.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Accept")), "application/json")
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func show(w http.ResponseWriter, name string, data any) {
	var out bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&out, name, data); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Security-Policy", pagePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = out.WriteTo(w)
}

func fail(w http.ResponseWriter, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "There is no such message.", http.StatusNotFound)
		return
	}
	slog.Error("mailbox: answer request", "error", err)
	http.Error(w, "The mailbox could not be read.", http.StatusInternalServerError)
}

// webAddress matches an http or https address, without the punctuation of the sentence around it.
var webAddress = regexp.MustCompile(`\bhttps?://[^\s<>"]*[^\s<>".,;:!?')\]}]`)

// linked is a text as HTML whose web addresses are links.
func linked(text string) template.HTML {
	var out strings.Builder
	done := 0
	for _, at := range webAddress.FindAllStringIndex(text, -1) {
		address := template.HTMLEscapeString(text[at[0]:at[1]])
		out.WriteString(template.HTMLEscapeString(text[done:at[0]]))
		out.WriteString(`<a href="` + address + `" target="_blank" rel="noopener noreferrer">` + address + `</a>`)
		done = at[1]
	}
	out.WriteString(template.HTMLEscapeString(text[done:]))
	return template.HTML(out.String())
}
