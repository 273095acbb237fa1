package mailbox

import (
	"log/slog"
	"net/http"
	"strings"
)

// maxTextBytes bounds the form of a text message.
const maxTextBytes = 64 << 10

// receiveText receives a text message (SMS) as Twilio's Messages API does, so that a client of that
// API can send texts to the mailbox. 201 means that the text is in its file. No delivery receipts
// (status callbacks) are sent.
func (m *Mailbox) receiveText(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxTextBytes)
	if err := r.ParseForm(); err != nil {
		refuseText(w, http.StatusBadRequest, 20001, "The body is not a form, or it is too large.")
		return
	}
	field := func(name string) string { return strings.ToValidUTF8(r.PostForm.Get(name), "\uFFFD") }
	from := field("From")
	if from == "" {
		from = field("MessagingServiceSid")
	}
	to, text := field("To"), field("Body")
	switch {
	case to == "":
		refuseText(w, http.StatusBadRequest, 21604, "To is required.")
		return
	case from == "":
		refuseText(w, http.StatusBadRequest, 21603, "From or MessagingServiceSid is required.")
		return
	case text == "":
		refuseText(w, http.StatusBadRequest, 21602, "Body is required.")
		return
	}
	id, err := m.add(Message{Kind: KindSMS, From: from, To: []string{to}, Text: text, Raw: text})
	if err != nil {
		slog.Error("mailbox: text not accepted", "error", err)
		refuseText(w, http.StatusServiceUnavailable, 20503, "The text could not be kept, try again later.")
		return
	}
	writeJSON(w, http.StatusCreated, map[string]any{"sid": "SM" + id, "status": "queued", "to": to, "from": from})
}

// refuseText answers with an error as Twilio does, with the codes that clients compare.
func refuseText(w http.ResponseWriter, status, code int, message string) {
	writeJSON(w, status, map[string]any{"status": status, "code": code, "message": message})
}
