package rest

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/pages"
)

// formCookie holds the CSRF token of the sign-up form (double submit): the form has the same token
// in a hidden field. The prefix __Host- keeps subdomains from setting the cookie.
const formCookie = "__Host-form"

// formTokenLength is the length of the CSRF token.
const formTokenLength = 32

// setFormCookie returns the CSRF token of a form, which the browser keeps as a cookie.
func setFormCookie(c *fiber.Ctx) string {
	token := readCookie(c, formCookie).Reveal()
	if len(token) != formTokenLength {
		token = secure.Token(formTokenLength).Reveal()
		c.Cookie(&fiber.Cookie{
			Name: formCookie, Value: token, Path: "/", HTTPOnly: true, Secure: true, SameSite: fiber.CookieSameSiteStrictMode,
			SessionOnly: true,
		})
	}
	return token
}

// hasFormCookie reports whether the CSRF token of a form is that of the browser.
func hasFormCookie(c *fiber.Ctx, form url.Values) bool {
	cookie := readCookie(c, formCookie).Reveal()
	return len(cookie) == formTokenLength && subtle.ConstantTimeCompare([]byte(cookie), []byte(form.Get("csrf"))) == 1
}

// showRegister shows the form of a sign-up or, with a token of its mail, the page that completes the
// sign-up or accepts an invitation (docs/interface/authentication.md#sign-up). It does not consume
// the token.
func (h *handlers) showRegister(c *fiber.Ctx) error {
	token := secure.Secret(c.Query("sptoken"))
	if token == "" {
		return h.renderSignUpForm(c, http.StatusOK, url.Values{}, "")
	}
	pending, err := h.svc.PendingSignUp(c.UserContext(), token)
	if err != nil {
		return h.renderError(c, err)
	}
	if pending.Invitation {
		return h.renderInvitationForm(c, http.StatusOK, token, url.Values{"email": {pending.Email}}, "")
	}
	t := translatorOf(c)
	return h.renderPage(c, http.StatusOK, pages.Page{
		Title: t("completeTitle"), Text: t("completeText", "email", pending.Email),
		Form: &pages.Form{Button: t("complete"), Hidden: map[string]string{"sptoken": token.Reveal()}},
	})
}

// renderSignUpForm shows the sign-up form with what was entered before, and sets the CSRF cookie.
func (h *handlers) renderSignUpForm(c *fiber.Ctx, status int, entered url.Values, problem string) error {
	t := translatorOf(c)
	if !h.svc.SignUpEnabled() {
		return h.renderPage(c, http.StatusNotFound, pages.Page{Title: t("offTitle"), Text: t("offText")})
	}
	token := setFormCookie(c)
	return h.renderPage(c, status, pages.Page{
		Title: t("signUpTitle"), Text: t("signUpText"), Problem: problem,
		Form: &pages.Form{Button: t("signUp"), Hidden: map[string]string{"csrf": token}, Fields: ownerFields(t, entered)},
	})
}

// renderInvitationForm shows the form of an invited administrator.
func (h *handlers) renderInvitationForm(c *fiber.Ctx, status int, token secure.Secret, entered url.Values,
	problem string) error {
	t := translatorOf(c)
	return h.renderPage(c, status, pages.Page{
		Title: t("invitedTitle"), Text: t("invitedText"), Problem: problem,
		Form: &pages.Form{Button: t("invited"), Hidden: map[string]string{"sptoken": token.Reveal()},
			Fields: ownerFields(t, entered)},
	})
}

// ownerFields are the fields of the account of an administrator.
func ownerFields(t translator, entered url.Values) []pages.Field {
	return []pages.Field{
		{Name: "givenName", Label: t("givenName"), Type: "text", Autocomplete: "given-name", Value: entered.Get("givenName")},
		{Name: "surname", Label: t("surname"), Type: "text", Autocomplete: "family-name", Value: entered.Get("surname")},
		{Name: "email", Label: t("email"), Type: "email", Autocomplete: "email", Value: entered.Get("email")},
		{Name: "password", Label: t("password"), Type: "password", Autocomplete: "new-password", Hint: t("policy")},
	}
}

// submitRegister answers the form of a sign-up or of an invitation, and the button that completes a
// sign-up.
func (h *handlers) submitRegister(c *fiber.Ctx) error {
	form, err := h.readForm(c)
	if err != nil {
		return h.renderError(c, err)
	}
	token := secure.Secret(form.Get("sptoken"))
	if token == "" {
		return h.requestSignUp(c, form)
	}
	pending, err := h.svc.PendingSignUp(c.UserContext(), token)
	if err != nil {
		return h.renderError(c, err)
	}
	if pending.Invitation {
		return h.acceptInvitation(c, token, form)
	}
	return h.completeSignUp(c, token)
}

// requestSignUp verifies the CSRF token of the sign-up form and sends the mail of the sign-up.
func (h *handlers) requestSignUp(c *fiber.Ctx, form url.Values) error {
	t := translatorOf(c)
	if !h.svc.SignUpEnabled() {
		return h.renderSignUpForm(c, http.StatusNotFound, nil, "")
	}
	if !hasFormCookie(c, form) {
		return h.renderSignUpForm(c, http.StatusForbidden, form, t("stale"))
	}
	err := h.svc.RequestSignUp(c.UserContext(), newAccountOf(form))
	if refusal := apierr.From(err); err != nil && refusal.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(refusal.RetryAfter.Seconds())))
	}
	if problem, asked := formProblem(c, err); asked {
		return h.renderSignUpForm(c, apierr.From(err).Status, form, problem)
	}
	if err != nil {
		return h.renderError(c, err)
	}
	return h.renderPage(c, http.StatusAccepted,
		pages.Page{Title: t("signUpSent"), Text: t("signUpSentText", "email", form.Get("email"))})
}

// completeSignUp creates the tenant and shows its API key once.
func (h *handlers) completeSignUp(c *fiber.Ctx, token secure.Secret) error {
	tenant, key, err := h.svc.CompleteSignUp(c.UserContext(), token)
	if err != nil {
		return h.renderError(c, err)
	}
	t := translatorOf(c)
	return h.renderPage(c, http.StatusOK, pages.Page{
		Title: t("readyTitle"), Text: t("readyText", "key", tenant.Key), Download: keyFile(t, key),
		Samples: []pages.Sample{{Title: t("readyBase"), Text: h.base.String()},
			{Title: t("readyFirst"), Text: firstCall(h.base, key)}},
		Link: &pages.Link{Text: t("readyDocs"), URL: h.base.Host() + "/docs"},
	})
}

// firstCall is a command that calls the management API with a new key: it shows the tenant.
func firstCall(base href.Base, key oauthapi.EnsureKey) string {
	return "curl --location --user '" + key.ID + ":" + key.Secret.Reveal() + "' \\\n  " + base.String() + "/tenants/current"
}

// keyFile is an API key as the properties file that client libraries read.
func keyFile(t translator, key oauthapi.EnsureKey) *pages.Download {
	return &pages.Download{
		Text: t("keyLink"), Name: "apiKey-" + key.ID + ".properties",
		Content: "apiKey.id = " + key.ID + "\napiKey.secret = " + key.Secret.Reveal() + "\n",
	}
}

func (h *handlers) acceptInvitation(c *fiber.Ctx, token secure.Secret, form url.Values) error {
	made, err := h.svc.AcceptInvitation(c.UserContext(), token, newAccountOf(form))
	if problem, asked := formProblem(c, err); asked {
		return h.renderInvitationForm(c, apierr.From(err).Status, token, form, problem)
	}
	if err != nil {
		return h.renderError(c, err)
	}
	t := translatorOf(c)
	return h.renderPage(c, http.StatusOK,
		pages.Page{Title: t("acceptedTitle"), Text: t("acceptedText", "email", made.Email)})
}

// newAccountOf returns the new account that a form describes.
func newAccountOf(form url.Values) directoryapi.NewAccount {
	return directoryapi.NewAccount{
		Email: field.Some(form.Get("email")), GivenName: field.Some(form.Get("givenName")),
		Surname:  field.Some(form.Get("surname")),
		Password: field.Some(form.Get("password")),
	}
}

// formProblem returns the text that tells a user why an entry is refused. asked is true if the form
// is to be shown again, and false for an error that no other entry resolves.
func formProblem(c *fiber.Ctx, err error) (problem string, asked bool) {
	t, refusal := translatorOf(c), apierr.From(err)
	switch {
	case err == nil:
		return "", false
	case errors.Is(err, apierr.TooMany):
		return t("tooMany"), true
	case errors.Is(err, apierr.Required):
		return t("required"), true
	case errors.Is(err, apierr.TooShort):
		return t("tooShort") + " " + t("policy"), true
	case errors.Is(err, apierr.TooLong):
		return t("tooLong"), true
	case refusal.Status != http.StatusBadRequest && refusal.Status != http.StatusConflict:
		return "", false
	case errors.Is(err, apierr.BadRequest):
		return refusalText(c, err, "weakPassword"), true
	case errors.Is(err, apierr.Exists):
		return refusalText(c, err, "taken"), true
	case errors.Is(err, apierr.Format):
		return refusalText(c, err, "invalidEmail"), true // the email is the only field with a format
	case errors.Is(err, apierr.OtherInvitee):
		return refusalText(c, err, "invitedText"), true
	case errors.Is(err, apierr.DomainBlacklisted), errors.Is(err, apierr.DomainNotWhitelisted):
		return refusalText(c, err, "emailRefused"), true
	}
	return refusalText(c, err, "checkEntries"), true
}
