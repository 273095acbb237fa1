package mailbox

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Path is where Handler serves the mailbox.
const Path = "/_mailbox"

// Handler serves the mailbox under Path, as a page or, to a client that
// accepts application/json, as JSON:
//
//	GET    /_mailbox            all messages, newest first; in JSON filtered by
//	                            limit, before (an id), to (an address) and summary=true
//	DELETE /_mailbox            empties the mailbox
//	GET    /_mailbox/{id}       one message
//	GET    /_mailbox/{id}/html  its HTML body, sandboxed
//	GET    /_mailbox/{id}/raw   its source, byte for byte
//
// It is for the same origin only: no answer carries a CORS header, and a
// browser's DELETE from another origin is refused.
func (m *Mailbox) Handler() http.Handler {
	h := &handler{mailbox: m}
	mux := http.NewServeMux()
	for _, path := range []string{Path, Path + "/{$}"} {
		mux.HandleFunc("GET "+path, h.list)
		mux.HandleFunc("DELETE "+path, h.empty)
	}
	mux.HandleFunc("GET "+Path+"/{id}", h.message)
	mux.HandleFunc("GET "+Path+"/{id}/html", h.html)
	mux.HandleFunc("GET "+Path+"/{id}/raw", h.raw)
	return withSecurityHeaders(http.NewCrossOriginProtection().Handler(mux))
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
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		next.ServeHTTP(w, r)
	})
}

type handler struct{ mailbox *Mailbox }

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if !wantsJSON(r) {
		h.page(w, r, nil)
		return
	}
	q, err := readQuery(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	count, version := h.mailbox.index.state()
	tag := `"` + version + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("X-Total-Count", strconv.Itoa(count))
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodHead {
		return
	}
	if err := h.writeList(w, r, q); err != nil {
		panic(http.ErrAbortHandler) // A list cut short must not look complete.
	}
}

// writeList has one message in memory at a time. It leaves out a message that was evicted
// meanwhile.
func (h *handler) writeList(w io.Writer, r *http.Request, q query) error {
	if _, err := io.WriteString(w, `{"messages":[`); err != nil {
		return err
	}
	separator, written := "", 0
	for _, e := range h.mailbox.index.newest(q.before, -1) {
		if written == q.limit {
			break
		}
		out, err := h.matching(e, q)
		if err != nil {
			h.failed(r, err)
			return err
		}
		if out == nil {
			continue
		}
		line, err := json.Marshal(out)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		separator = ",\n"
		written++
	}
	_, err := io.WriteString(w, "]}\n")
	return err
}

// matching returns the message if the query matches it, else nil.
func (h *handler) matching(e *entry, q query) (*Message, error) {
	env, err := h.mailbox.summary(e)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !q.matches(env) {
		return nil, nil
	}
	if q.summary {
		out := env.summaryMessage(e.id)
		return &out, nil
	}
	env, raw, err := h.mailbox.source(e)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := env.message(e.id, raw)
	return &out, nil
}

func (h *handler) empty(w http.ResponseWriter, _ *http.Request) {
	h.mailbox.discard(h.mailbox.index.clear())
	w.WriteHeader(http.StatusNoContent)
}

func (h *handler) message(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if !wantsJSON(r) {
		e := h.mailbox.index.find(r.PathValue("id"))
		if e == nil {
			h.missing(w, r)
			return
		}
		h.page(w, r, e)
		return
	}
	id, env, raw, found := h.source(w, r)
	if !found {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(env.message(id, raw))
}

// bodyPolicy is the Content-Security-Policy of the HTML body of a mail: no script, no
// form, nothing loaded from elsewhere. Its links open in a page of their own.
const (
	bodySandbox = "allow-popups allow-popups-to-escape-sandbox"
	bodyPolicy  = "sandbox " + bodySandbox + "; default-src 'none'; style-src 'unsafe-inline'; " +
		"img-src data:; font-src data:; form-action 'none'; frame-ancestors 'self'"
	// bodyStart comes before the body, so that its base is the one that counts.
	bodyStart = `<!doctype html><meta charset="utf-8"><base target="_blank">` + "\n"
)

func (h *handler) html(w http.ResponseWriter, r *http.Request) {
	id, env, raw, found := h.source(w, r)
	if !found {
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", bodyPolicy)
	header.Set("X-Frame-Options", "SAMEORIGIN")
	header.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, bodyStart+env.message(id, raw).HTML)
}

func (h *handler) raw(w http.ResponseWriter, r *http.Request) {
	id, env, raw, found := h.source(w, r)
	if !found {
		return
	}
	mediaType := "message/rfc822"
	if env.Kind == KindSMS {
		mediaType = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment",
		map[string]string{"filename": id + "." + suffixes[env.Kind]}))
	_, _ = w.Write(raw)
}

// source finds the message that the path names, or answers that it is not there.
func (h *handler) source(w http.ResponseWriter, r *http.Request) (id string, env *envelope, raw []byte, found bool) {
	id = r.PathValue("id")
	e := h.mailbox.index.find(id)
	if e == nil {
		h.missing(w, r)
		return id, nil, nil, false
	}
	env, raw, err := h.mailbox.source(e)
	if errors.Is(err, os.ErrNotExist) {
		h.missing(w, r)
		return id, nil, nil, false
	}
	if err != nil {
		h.failed(r, err)
		http.Error(w, "The message could not be read.", http.StatusInternalServerError)
		return id, nil, nil, false
	}
	return id, env, raw, true
}

func (h *handler) missing(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "There is no such message.", http.StatusNotFound)
}

func (h *handler) failed(r *http.Request, err error) {
	h.mailbox.log.Error("mailbox: answer request", "path", r.URL.Path, "error", err)
}

// query filters the list.
type query struct {
	before  string
	limit   int // negative: all
	to      string
	summary bool
}

func readQuery(r *http.Request) (query, error) {
	values := r.URL.Query()
	q := query{before: values.Get("before"), to: values.Get("to"), limit: -1, summary: values.Get("summary") == "true"}
	if text := values.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 0 {
			return q, errors.New("limit must be a whole number, 0 or more")
		}
		q.limit = limit
	}
	return q, nil
}

func (q query) matches(env *envelope) bool {
	return q.to == "" || slices.ContainsFunc(env.To, func(to string) bool { return strings.EqualFold(to, q.to) })
}

// wantsJSON reports whether the client accepts JSON by name and does not prefer HTML
// (content negotiation). A client that accepts everything gets the page.
func wantsJSON(r *http.Request) bool {
	asJSON, asHTML := 0.0, 0.0
	for accepted := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		mediaType, params, err := mime.ParseMediaType(accepted)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			weight = q
		}
		switch mediaType {
		case "application/json":
			asJSON = weight
		case "text/html":
			asHTML = weight
		}
	}
	return asJSON > 0 && asJSON >= asHTML
}
