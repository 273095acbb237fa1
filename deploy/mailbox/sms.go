package mailbox

import (
	"encoding/json"
	"errors"
	"net/http"
)

// SMSPath is the prefix of the addresses of SMSHandler.
const SMSPath = "/2010-04-01/"

// maxTextBytes bounds the form of a text message.
const maxTextBytes = 64 << 10

// SMSHandler receives text messages (SMS) as Twilio's Messages API does, so that a
// client of that API can send texts to the mailbox:
//
//	POST /2010-04-01/Accounts/{account}/Messages.json   form: To, Body, From or MessagingServiceSid
//
// Any account and any password are accepted. 201 means that the text is on
// disk. No delivery receipts (status callbacks) are sent.
func (m *Mailbox) SMSHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+SMSPath+"Accounts/{account}/Messages.json", m.receiveText)
	return withSecurityHeaders(http.NewCrossOriginProtection().Handler(mux))
}

func (m *Mailbox) receiveText(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxTextBytes)
	if err := r.ParseForm(); err != nil {
		refuseText(w, http.StatusBadRequest, 20001, "The body is not a form, or it is too large.")
		return
	}
	from := r.PostForm.Get("From")
	if from == "" {
		from = r.PostForm.Get("MessagingServiceSid")
	}
	to, text := r.PostForm.Get("To"), r.PostForm.Get("Body")
	switch {
	case to == "" || len(to) > maxAddressBytes:
		refuseText(w, http.StatusBadRequest, 21604, "To is required.")
		return
	case from == "" || len(from) > maxAddressBytes:
		refuseText(w, http.StatusBadRequest, 21603, "From or MessagingServiceSid is required.")
		return
	case text == "":
		refuseText(w, http.StatusBadRequest, 21602, "Body is required.")
		return
	}
	id, err := m.AddText(from, []string{to}, text)
	if err != nil {
		if !errors.Is(err, ErrClosed) {
			m.log.Error("mailbox: text not accepted", "error", err)
		}
		refuseText(w, http.StatusServiceUnavailable, 20503, "The text could not be kept, try again later.")
		return
	}
	answerText(w, http.StatusCreated, map[string]any{"sid": "SM" + id, "status": "queued", "to": to, "from": from})
}

// refuseText answers with an error as Twilio does, with the codes that clients compare.
func refuseText(w http.ResponseWriter, status, code int, message string) {
	answerText(w, status, map[string]any{"status": status, "code": code, "message": message})
}

func answerText(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
