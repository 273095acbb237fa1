package mailbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
)

// post sends a form to an address of the intake.
func post(t *testing.T, handler http.Handler, path string, form url.Values, header http.Header) (status int, answer map[string]any) {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, values := range header {
		request.Header[name] = values
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	body, err := io.ReadAll(recorder.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(body, &answer) // not every refusal is JSON
	return recorder.Code, answer
}

const messages = "/2010-04-01/Accounts/AC1/Messages.json"

func TestATextIsTakenAndFoundByItsNumber(t *testing.T) {
	box := start(t, t.TempDir())
	intake := box.Handler()
	for i, form := range []url.Values{
		{"To": {"+18883910959"}, "From": {"+15005550006"}, "Body": {"Your verification code is 493817"}, "StatusCallback": {"https://id.example.test/x"}},
		{"To": {"+12675555555"}, "MessagingServiceSid": {"MG1"}, "Body": {"<b>493818</b>"}},
	} {
		status, answer := post(t, intake, messages, form, nil)
		if status != http.StatusCreated || answer["status"] != "queued" || answer["sid"] == "" {
			t.Errorf("text %d is answered %d %v", i, status, answer)
		}
	}
	found := box.messages(t, "?to=%2B18883910959")
	if len(found) != 1 || found[0].Kind != "sms" || found[0].Text != "Your verification code is 493817" || found[0].From != "+15005550006" {
		t.Errorf("the messages of the number are %+v", found)
	}
	box.send(t, mail("A mail", "body"))
	if all := box.messages(t, ""); len(all) != 3 || all[0].Kind != "email" || all[1].From != "MG1" || all[1].Text != "<b>493818</b>" {
		t.Errorf("beside the mails there are %+v", all)
	}
	if _, _, page := box.get(t, "/_mailbox", html); !strings.Contains(string(page), "493817") || strings.Contains(string(page), "<b>493818") {
		t.Error("the page does not show the texts as texts")
	}
}

func TestWhatIsNoTextIsRefused(t *testing.T) {
	box := start(t, t.TempDir())
	intake := box.Handler()
	whole := func() url.Values { return url.Values{"To": {"+18883910959"}, "From": {"Doorward"}, "Body": {"x"}} }
	for field, code := range map[string]float64{"To": 21604, "From": 21603, "Body": 21602} {
		form := whole()
		form.Del(field)
		if status, answer := post(t, intake, messages, form, nil); status != http.StatusBadRequest || answer["code"] != code {
			t.Errorf("without %s: %d %v", field, status, answer)
		}
	}
	form := whole()
	form.Set("Body", strings.Repeat("x", 65<<10))
	if status, answer := post(t, intake, messages, form, nil); status != http.StatusBadRequest || answer["code"] != float64(20001) {
		t.Errorf("a large one: %d %v", status, answer)
	}
	if status, _ := post(t, intake, "/2010-04-01/Accounts/AC1/Calls.json", whole(), nil); status != http.StatusNotFound {
		t.Errorf("a call is answered with %d", status)
	}
	if status, _ := post(t, intake, messages, whole(), http.Header{"Sec-Fetch-Site": {"cross-site"}}); status != http.StatusForbidden {
		t.Errorf("a page of another origin: %d", status)
	}
	if found := box.messages(t, ""); len(found) != 0 {
		t.Errorf("the mailbox has %+v", found)
	}
	if err := os.RemoveAll(box.dir); err != nil {
		t.Fatal(err)
	}
	if status, _ := post(t, intake, messages, whole(), nil); status != http.StatusServiceUnavailable {
		t.Errorf("a text that cannot be kept: %d", status)
	}
}
