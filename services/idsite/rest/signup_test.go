package rest_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
)

var csrf = regexp.MustCompile(`name="csrf" value="([^"]{32})"`)

// signUpForm opens the form of a sign-up and returns its cookie and what it sends.
func (c client) signUpForm(t *testing.T, email, password string) (cookie string, form url.Values) {
	t.Helper()
	answer, body := c.visit(t, "GET", "/register", nil)
	found := csrf.FindStringSubmatch(body)
	if answer.StatusCode != 200 || found == nil || len(answer.Cookies()) != 1 {
		t.Fatalf("%d: %s", answer.StatusCode, body)
	}
	set := answer.Cookies()[0]
	if !set.Secure || !set.HttpOnly || set.SameSite != http.SameSiteStrictMode || set.Name != "__Host-form" || set.Path != "/" {
		t.Errorf("the cookie is %v", set)
	}
	return set.Name + "=" + set.Value, url.Values{
		"csrf": {found[1]}, "givenName": {"Jo"}, "surname": {"<Doe>"}, "email": {email}, "password": {password},
	}
}

func TestASignUpIsAFormAndAMail(t *testing.T) {
	c := newClient(t)
	cookie, form := c.signUpForm(t, "jo@example.test", "Changeme1")
	answer, body := c.visit(t, "POST", "/register", form, "Cookie", cookie, "Origin", "https://localhost:8443")
	if answer.StatusCode != 202 || !strings.Contains(body, "jo@example.test") {
		t.Fatalf("%d: %s", answer.StatusCode, body)
	}
	again, bodyAgain := c.visit(t, "POST", "/register", form, "Cookie", cookie)
	if again.StatusCode != answer.StatusCode || bodyAgain != body {
		t.Errorf("a known email gets %d: %s", again.StatusCode, bodyAgain)
	}
	token := c.peers.Directories.SignUpTokens(t)["jo@example.test"]
	path := "/register?sptoken=" + token.Reveal()
	for _, method := range []string{"GET", "HEAD", "GET"} {
		if answer, body := c.visit(t, method, path, nil); answer.StatusCode != 200 || len(c.peers.Directories.Tenants(t)) != 0 ||
			method == "GET" && !strings.Contains(body, "jo@example.test") {
			t.Fatalf("%s answers %d: %s", method, answer.StatusCode, body)
		}
	}
	answer, body = c.visit(t, "POST", path, url.Values{"sptoken": {token.Reveal()}})
	tenants := c.peers.Directories.Tenants(t)
	if answer.StatusCode != 200 || len(tenants) != 1 || !strings.Contains(body, tenants[0].Tenant.Key) {
		t.Fatalf("%d: %s", answer.StatusCode, body)
	}
	for keyID, key := range c.peers.OAuth.Keys() {
		if !strings.Contains(body, `download="apiKey-`+keyID+`.properties"`) || !strings.Contains(body, "apiKey.secret = "+key.Secret.Reveal()) {
			t.Errorf("the page does not offer the key: %s", body)
		}
		first := html.EscapeString("curl --location --user '" + keyID + ":" + key.Secret.Reveal() + "' \\\n  " +
			base.String() + "/tenants/current")
		if !strings.Contains(body, ">"+base.String()+"<") || !strings.Contains(body, first) ||
			!strings.Contains(body, `href="`+base.Host()+`/docs"`) {
			t.Errorf("the page does not say how to begin: %s", body)
		}
	}
	for _, method := range []string{"GET", "POST"} {
		if answer, body := c.visit(t, method, path, url.Values{"sptoken": {token.Reveal()}}); answer.StatusCode != 404 ||
			strings.Contains(body, "apiKey.secret") {
			t.Errorf("%s again answers %d: %s", method, answer.StatusCode, body)
		}
	}
}

func TestASignUpThatIsRefusedCanBeCorrected(t *testing.T) {
	c := newClient(t)
	for _, c2 := range []struct {
		email, password string
		refusal         error
		status          int
		problem         string
	}{
		{"", "Changeme1", nil, 400, "Please fill in this field."},
		{"jo@example.test", "changeme", apierr.BadRequest.Because("x").Saying("The password needs a digit."), 400, "The password needs a digit."},
		{"jo@example.test", "Changeme1", apierr.TooMany, 429, "Too many tries. Please wait a little."},
	} {
		c.peers.Directories.Break("RequestSignUp", fault.Before, func() error { return c2.refusal })
		cookie, form := c.signUpForm(t, c2.email, c2.password)
		answer, body := c.visit(t, "POST", "/register", form, "Cookie", cookie)
		if answer.StatusCode != c2.status || !strings.Contains(body, c2.problem) || !strings.Contains(body, `value="&lt;Doe&gt;"`) ||
			strings.Contains(body, c2.password) {
			t.Errorf("%q: %d, %s", c2.email, answer.StatusCode, body)
		}
	}
}

func TestTheSignUpFormIsProtectedAgainstCSRF(t *testing.T) {
	c := newClient(t)
	cookie, form := c.signUpForm(t, "jo@example.test", "Changeme1")
	if answer, _ := c.visit(t, "POST", "/register", form, "Cookie", cookie, "Origin", "https://evil.example"); answer.StatusCode != 403 {
		t.Errorf("a foreign page is answered %d", answer.StatusCode)
	}
	if answer, _ := c.visit(t, "POST", "/register", form); answer.StatusCode != 403 {
		t.Errorf("a form without its cookie is answered %d", answer.StatusCode)
	}
	for _, token := range []string{"", strings.Repeat("x", 32)} {
		form.Set("csrf", token)
		if answer, _ := c.visit(t, "POST", "/register", form, "Cookie", cookie); answer.StatusCode != 403 {
			t.Errorf("a form with the token %q is answered %d", token, answer.StatusCode)
		}
	}
	if len(c.peers.Directories.SignUpTokens(t)) != 0 {
		t.Error("a sign-up is made")
	}
}

func TestAFormHoldsTextAlone(t *testing.T) {
	c := newClient(t)
	cookie, form := c.signUpForm(t, "jo@example.test", "Changeme1")
	for _, name := range []string{"Jo\x00", "J\xf6"} {
		form.Set("surname", name)
		if answer, body := c.visit(t, "POST", "/register", form, "Cookie", cookie); answer.StatusCode != 400 {
			t.Errorf("%q answers %d: %s", name, answer.StatusCode, body)
		}
	}
	form.Set("surname", "J\u00f6")
	if answer, body := c.visit(t, "POST", "/register", form, "Cookie", cookie); answer.StatusCode != 202 {
		t.Errorf("%d: %s", answer.StatusCode, body)
	}
}

func TestSignUpIsOff(t *testing.T) {
	c := newClient(t)
	for _, method := range []string{"GET", "POST"} {
		if answer, body := c.visit(t, method, "/register", url.Values{"email": {"jo@example.test"}}); answer.StatusCode != 404 ||
			strings.Contains(body, "<form") {
			t.Errorf("%s answers %d: %s", method, answer.StatusCode, body)
		}
	}
	token := c.peers.Directories.Invite(t, c.peers.Directories.NewTenant().Tenant.ID, "new@example.test").Reveal()
	if answer, _ := c.visit(t, "GET", "/register?sptoken="+token, nil); answer.StatusCode != 200 {
		t.Errorf("an invitation is answered %d", answer.StatusCode)
	}
}

func TestAnInvitationIsAcceptedWithItsEmail(t *testing.T) {
	c := newClient(t)
	tenant, _ := c.tenant(t, "K1")
	token := c.peers.Directories.Invite(t, tenant, "new@example.test").Reveal()
	path := "/register?sptoken=" + token
	if answer, body := c.visit(t, "GET", path, nil); answer.StatusCode != 200 || !strings.Contains(body, `value="new@example.test"`) {
		t.Fatalf("%d: %s", answer.StatusCode, body)
	}
	form := url.Values{"sptoken": {token}, "givenName": {"Jo"}, "surname": {"Doe"}, "email": {"other@example.test"}, "password": {"Changeme1"}}
	if answer, body := c.visit(t, "POST", path, form); answer.StatusCode != 400 || !strings.Contains(body,
		"The email differs from that of the invitation.") {
		t.Errorf("%d: %s", answer.StatusCode, body)
	}
	form.Set("email", "\u2003NEW@example.test\n")
	if answer, body := c.visit(t, "POST", path, form); answer.StatusCode != 200 || !strings.Contains(body, "NEW@example.test") {
		t.Errorf("%d: %s", answer.StatusCode, body)
	}
	if answer, _ := c.visit(t, "POST", path, form); answer.StatusCode != 404 {
		t.Errorf("again it is answered %d", answer.StatusCode)
	}
}

func TestPagesSpeakTheLanguageOfTheBrowser(t *testing.T) {
	c := newClient(t)
	for language, title := range map[string]string{"de": "Neues Passwort wählen", "es": "Elige una contraseña nueva",
		"fr": "Choisir un nouveau mot de passe", "ja": "新しいパスワードを設定"} {
		token, _ := c.mail(t, "/passwordReset", "jo@example.test", "")
		answer, body := c.visit(t, "GET", link("/passwordReset", token), nil, "Accept-Language", language)
		if !strings.Contains(body, `<html lang="`+language+`"`) || !strings.Contains(body, "<h1>"+title+"</h1>") ||
			!strings.Contains(answer.Header.Get("Vary"), "Accept-Language") {
			t.Errorf("%s gets %s", language, body)
		}
	}
}

// The messages of the service are in English: a page in another language has its own texts.
func TestRefusalsSpeakTheLanguageOfTheBrowser(t *testing.T) {
	c := newClient(t)
	tenant, _ := c.tenant(t, "K1")
	const english = "What the service says."
	var refusal error
	refuse := func(method string) {
		c.peers.Directories.Break(method, fault.Before, func() error { return refusal })
	}
	shows := func(path string, status int, text string, form url.Values, headers ...string) {
		t.Helper()
		answer, body := c.visit(t, "POST", path, form, append(headers, "Accept-Language", "de")...)
		if answer.StatusCode != status || !strings.Contains(body, text) || strings.Contains(body, english) {
			t.Errorf("%s: %d: %s; want %d, %q", path, answer.StatusCode, body, status, text)
		}
	}

	cookie, form := c.signUpForm(t, "jo@example.test", "Changeme1")
	refuse("RequestSignUp")
	for _, refused := range []struct {
		with *apierr.Error
		text string
	}{
		{apierr.BadRequest, "Das Passwort ist nicht stark genug."}, {apierr.Exists, "Diese E-Mail-Adresse ist schon vergeben."},
		{apierr.Format, "Bitte geben Sie eine E-Mail-Adresse ein."}, {apierr.Invalid, "Eine der Eingaben ist ungültig."},
		{apierr.DomainBlacklisted, "E-Mail-Adressen dieser Domain werden nicht angenommen."},
		{apierr.DomainNotWhitelisted, "E-Mail-Adressen dieser Domain werden nicht angenommen."},
	} {
		refusal = refused.with.Because("x").Saying(english)
		shows("/register", refused.with.Status, refused.text, form, "Cookie", cookie)
	}

	token := c.peers.Directories.Invite(t, tenant, "new@example.test").Reveal()
	form = url.Values{"sptoken": {token}, "givenName": {"Jo"}, "surname": {"Doe"}, "email": {"other@example.test"}, "password": {"Changeme1"}}
	shows("/register", 400, `id="problem">Verwenden Sie die E-Mail-Adresse, die eingeladen wurde.`, form)
	refuse("PendingSignUp")
	for text, with := range map[string]*apierr.Error{
		"Zu viele Versuche.": apierr.TooMany, "Das ist nicht erlaubt.": apierr.Forbidden, "Das hat nicht geklappt.": apierr.Invalid,
	} {
		refusal = with.Because("x").Saying(english)
		shows("/register", with.Status, text, form)
	}

	reset, _ := c.mail(t, "/passwordReset", "jo@example.test", "")
	refuse("ResetPassword")
	refusal = apierr.Format.Because("x").Saying(english)
	shows("/passwordReset", 400, "Eine der Eingaben ist ungültig.",
		url.Values{"sptoken": {reset.Reveal()}, "password": {"Different1!"}, "again": {"Different1!"}})
}
