package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/pages"
)

// renderExpiredLink shows that a mailed link is invalid, has expired or was used, and what the user
// can do about it: next is the key of that text.
func (h *handlers) renderExpiredLink(c *fiber.Ctx, next string) error {
	t := translatorOf(c)
	p := pages.Page{Title: t("deadLinkTitle"), Text: t("deadLinkText") + " " + t(next, "link", t("forgotLink"))}
	if next == "anotherLink" && h.svc.SignUpEnabled() {
		p.Link = &pages.Link{Text: t("signUp"), URL: "/register"}
	}
	return h.renderPage(c, http.StatusNotFound, p)
}

// mailedLinks are the workflows whose links end, with the key of the text for a link of which nothing is known.
var mailedLinks = map[directoryapi.Workflow]string{
	directoryapi.Verification: "anotherVerification", directoryapi.Reset: "anotherReset",
}

// renderEndedLink answers the error of a link. Of a link that has worked once it shows what helps: another mail,
// or the way to the application. It tells nothing of the account but that its email is verified, which whoever
// has the link of the mail knows.
func (h *handlers) renderEndedLink(c *fiber.Ctx, workflow directoryapi.Workflow, token secure.Secret, err error) error {
	if !errors.Is(err, apierr.NotFound) {
		return h.renderLinkError(c, err, mailedLinks[workflow])
	}
	link, err := h.svc.EndedLink(c.UserContext(), workflow, token)
	if err != nil {
		return h.renderLinkError(c, err, mailedLinks[workflow])
	}
	t := translatorOf(c)
	p := pages.Page{Product: link.Site.Name, Title: t("deadLinkTitle"), Link: homeLink(t, link.Site)}
	isSent := link.Rules.VerificationEmail
	if workflow == directoryapi.Reset {
		isSent = link.Rules.ResetEmail
	}
	switch {
	case workflow == directoryapi.Verification && link.Account.EmailVerificationStatus == directoryapi.Verified:
		p.Text = t("usedVerification")
	case isSent && !link.Account.ID.IsZero():
		p.Text = t("deadLinkText") + " " + t("askAnother")
		p.Form = &pages.Form{Button: t("sendMail"), Hidden: map[string]string{"sptoken": token.Reveal(), "send": "again"}}
	default:
		p.Text = t("deadLinkText") + " " + t(mailedLinks[workflow], "link", t("forgotLink"))
	}
	return h.renderPage(c, http.StatusNotFound, p)
}

// sendMailAgain answers the button of renderEndedLink.
func (h *handlers) sendMailAgain(c *fiber.Ctx, workflow directoryapi.Workflow, token secure.Secret) error {
	t := translatorOf(c)
	link, err := h.svc.SendMailAgain(c.UserContext(), workflow, token)
	switch {
	case errors.Is(err, apierr.TooMany):
		return h.renderPage(c, http.StatusOK, pages.Page{
			Product: link.Site.Name, Title: t("signUpSent"), Text: t("mailLimit"), Link: homeLink(t, link.Site),
		})
	case err != nil:
		return h.renderEndedLink(c, workflow, token, err)
	}
	return h.renderPage(c, http.StatusAccepted, pages.Page{
		Product: link.Site.Name, Title: t("signUpSent"), Text: t("anotherMailSent"), Link: homeLink(t, link.Site),
	})
}

// homeLink leads to an application, where its address is known.
func homeLink(t translator, site idsite.Origin) *pages.Link {
	if site.Home == "" {
		return nil
	}
	return &pages.Link{Text: t("toApplication", "name", site.Name), URL: site.Home}
}

// showVerification shows the page of an email verification link, with a button. It does not consume
// the token, because mail scanners and browsers that prefetch follow links too.
func (h *handlers) showVerification(c *fiber.Ctx) error {
	token := secure.Secret(c.Query("sptoken"))
	link, err := h.svc.MailedLink(c.UserContext(), directoryapi.Verification, token)
	if err != nil {
		return h.renderEndedLink(c, directoryapi.Verification, token, err)
	}
	t := translatorOf(c)
	return h.renderPage(c, http.StatusOK, pages.Page{
		Product: link.Site.Name, Title: t("confirmTitle"), Text: t("confirmText"),
		Form: &pages.Form{Button: t("confirm"), Hidden: map[string]string{"sptoken": token.Reveal()}},
	})
}

// submitVerification verifies the email address and consumes the token of the link.
func (h *handlers) submitVerification(c *fiber.Ctx) error {
	form, err := h.readForm(c)
	if err != nil {
		return h.renderError(c, err)
	}
	token := secure.Secret(form.Get("sptoken"))
	if form.Get("send") != "" {
		return h.sendMailAgain(c, directoryapi.Verification, token)
	}
	link, err := h.svc.MailedLink(c.UserContext(), directoryapi.Verification, token)
	if err != nil {
		return h.renderEndedLink(c, directoryapi.Verification, token, err)
	}
	account, err := h.svc.Journey.VerifyEmail(c.UserContext(), id.ID{}, token)
	if err != nil {
		return h.renderEndedLink(c, directoryapi.Verification, token, err)
	}
	t, text := translatorOf(c), "verifiedText"
	if account.Status != directoryapi.Enabled {
		text = "verifiedDisabled"
	}
	return h.renderPage(c, http.StatusOK, pages.Page{
		Product: link.Site.Name, Title: t("verifiedTitle"), Text: t(text, "email", account.Email),
		Link: homeLink(t, link.Site),
	})
}

// showPasswordReset shows the page of a password reset link, which asks for a new password.
func (h *handlers) showPasswordReset(c *fiber.Ctx) error {
	token := secure.Secret(c.Query("sptoken"))
	link, err := h.svc.MailedLink(c.UserContext(), directoryapi.Reset, token)
	if err != nil {
		return h.renderEndedLink(c, directoryapi.Reset, token, err)
	}
	return h.renderPasswordForm(c, http.StatusOK, token, link, "", nil)
}

// renderPasswordForm shows the form of a new password with the password policy and, after a
// refusal, with what the entered password lacks.
func (h *handlers) renderPasswordForm(c *fiber.Ctx, status int, token secure.Secret, link idsite.MailedLink,
	problem string,
	missing []string) error {
	t := translatorOf(c)
	return h.renderPage(c, status, pages.Page{
		Product: link.Site.Name, Title: t("resetTitle"), Text: t("resetText", "email", link.Account.Email), Problem: problem,
		Missing: missing,
		Form: &pages.Form{Button: t("setPassword"), Hidden: map[string]string{"sptoken": token.Reveal()},
			Login: link.Account.Username,
			Fields: []pages.Field{
				{Name: "password", Label: t("newPassword"), Type: "password", Autocomplete: "new-password",
					Rules: passwordRules(t, link.Rules, nil)},
				{Name: "again", Label: t("passwordAgain"), Type: "password", Autocomplete: "new-password"},
			}},
	})
}

// submitPasswordReset sets a new password with the token of a password reset link, which it
// consumes. A password that is refused does not consume the token, and the page says why.
func (h *handlers) submitPasswordReset(c *fiber.Ctx) error {
	form, err := h.readForm(c)
	if err != nil {
		return h.renderError(c, err)
	}
	t := translatorOf(c)
	token, password := secure.Secret(form.Get("sptoken")), form.Get("password")
	if form.Get("send") != "" {
		return h.sendMailAgain(c, directoryapi.Reset, token)
	}
	link, err := h.svc.MailedLink(c.UserContext(), directoryapi.Reset, token)
	if err != nil {
		return h.renderEndedLink(c, directoryapi.Reset, token, err)
	}
	missing := passwordRules(t, link.Rules, &password)
	if password != form.Get("again") {
		return h.renderPasswordForm(c, http.StatusBadRequest, token, link, t("differ"), missing)
	}
	account, err := h.svc.Journey.ResetPasswordByLink(c.UserContext(), token, field.Some(password))
	switch refusal := apierr.From(err); {
	case err == nil:
		text := map[string]string{directoryapi.Enabled: "canSignIn",
			directoryapi.Unverified: "resetUnconfirmed"}[account.Status]
		return h.renderPage(c, http.StatusOK, pages.Page{
			Product: link.Site.Name, Title: t("passwordSetTitle"), Text: t(cmp.Or(text, "resetDisabled")),
			Link: homeLink(t, link.Site),
		})
	case errors.Is(err, apierr.Required):
		return h.renderPasswordForm(c, http.StatusBadRequest, token, link, t("enterPassword"), missing)
	case errors.Is(err, apierr.PasswordReused):
		return h.renderPasswordForm(c, http.StatusBadRequest, token, link, t("reused"), nil)
	case refusal.Status == http.StatusBadRequest && len(missing) > 0:
		return h.renderPasswordForm(c, http.StatusBadRequest, token, link, t("stillNeeds"), missing)
	case refusal.Status == http.StatusBadRequest:
		return h.renderPasswordForm(c, http.StatusBadRequest, token, link, refusalText(c, err, "checkEntries"), nil)
	}
	return h.renderEndedLink(c, directoryapi.Reset, token, err)
}

// passwordRules returns the password policy of a directory in words: all rules, or those that a
// password breaks. The check that counts is in the directory service.
func passwordRules(t translator, rules directoryapi.RegistrationRules, password *string) []string {
	var out []string
	rule := func(broken bool, key string, n int) {
		if password == nil || broken {
			out = append(out, t(key, "n", strconv.Itoa(n)))
		}
	}
	var have secure.Characters
	var length int
	if password != nil {
		have, length = secure.CountCharacters(*password), utf8.RuneCountInString(norm.NFC.String(*password))
	}
	rule(length < rules.MinLength, "needLength", rules.MinLength)
	if password != nil {
		rule(length > rules.MaxLength, "needShorter", rules.MaxLength)
	}
	for _, class := range []struct {
		have, least int
		one, more   string
	}{
		{have.Lower, rules.MinLowerCase, "needLower", "needLowers"},
		{have.Upper, rules.MinUpperCase, "needUpper", "needUppers"},
		{have.Numeric, rules.MinNumeric, "needDigit", "needDigits"},
		{have.Symbol, rules.MinSymbol, "needSymbol", "needSymbols"},
		{have.Diacritic, rules.MinDiacritic, "needDiacritic", "needDiacritics"},
	} {
		key := class.one
		if class.least > 1 {
			key = class.more
		}
		if class.least > 0 {
			rule(class.have < class.least, key, class.least)
		}
	}
	return out
}

// renderLinkError does the work of renderError. next is the key of the text on the page of an
// expired link that says what to do.
func (h *handlers) renderLinkError(c *fiber.Ctx, err error, next string) error {
	refusal := apierr.From(err)
	switch {
	case errors.Is(err, apierr.NotFound):
		return h.renderExpiredLink(c, next)
	case errors.Is(err, context.DeadlineExceeded) || !apierr.IsRefusal(err):
		return err // logged and answered by the error handler
	}
	key := "failed"
	switch {
	case errors.Is(err, apierr.TooMany):
		key = "tooMany"
	case refusal.Status == http.StatusForbidden:
		key = "notAllowed"
	}
	return h.renderPage(c, refusal.Status,
		pages.Page{Title: translatorOf(c)("errorTitle"), Text: refusalText(c, err, key)})
}
