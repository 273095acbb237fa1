package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/pages"
	"github.com/doorward/doorward/services/idsite/screens"
)

// textFunc returns a text in the language of a browser.
type textFunc func(key string, values ...string) string

func texter(c *fiber.Ctx) textFunc {
	language := languageOf(c)
	return func(key string, values ...string) string { return pages.Text(language, key, values...) }
}

func languageOf(c *fiber.Ctx) string { return screens.Language(c.Get(fiber.HeaderAcceptLanguage)) }

// refusalText says why the service has refused something: the text of a key or, on an
// English page, the message of the service, which is in English and says more.
func refusalText(c *fiber.Ctx, err error, key string) string {
	if languageOf(c) == "en" {
		return apierr.From(err).Message
	}
	return texter(c)(key)
}

// deadLink shows that a link leads nowhere, and what its user can do: next is the
// key of that text.
func (h *handlers) deadLink(c *fiber.Ctx, next string) error {
	t := texter(c)
	return h.page(c, http.StatusNotFound, pages.Page{
		Title: t("deadLinkTitle"), Text: t("deadLinkText") + " " + t(next, "link", t("forgotLink")),
	})
}

// verification shows what a verification link is for. It does not consume the token: mail
// scanners and browsers that look ahead follow links too.
func (h *handlers) verification(c *fiber.Ctx) error {
	token := secure.Secret(c.Query("sptoken"))
	link, err := h.svc.Verification(c.UserContext(), token)
	if err != nil {
		return h.refusedLink(c, err, "anotherVerification")
	}
	t := texter(c)
	return h.page(c, http.StatusOK, pages.Page{
		Product: link.Name, Title: t("confirmTitle"), Text: t("confirmText"),
		Form: &pages.Form{Button: t("confirm"), Hidden: map[string]string{"sptoken": token.Reveal()}},
	})
}

// verify consumes the token of a verification link.
func (h *handlers) verify(c *fiber.Ctx) error {
	form, err := h.form(c)
	if err != nil {
		return h.refused(c, err)
	}
	token := secure.Secret(form.Get("sptoken"))
	link, err := h.svc.Verification(c.UserContext(), token)
	if err == nil {
		link.Account, err = h.svc.VerifyEmail(c.UserContext(), token)
	}
	if err != nil {
		return h.refusedLink(c, err, "anotherVerification")
	}
	t := texter(c)
	return h.page(c, http.StatusOK, pages.Page{
		Product: link.Name, Title: t("verifiedTitle"), Text: t("verifiedText", "email", link.Account.Email),
	})
}

// reset asks for a new password.
func (h *handlers) reset(c *fiber.Ctx) error {
	token := secure.Secret(c.Query("sptoken"))
	link, err := h.svc.Reset(c.UserContext(), token)
	if err != nil {
		return h.refusedLink(c, err, "anotherReset")
	}
	return h.askPassword(c, http.StatusOK, token, link, "", nil)
}

// askPassword shows the form with what a password needs and, after a refusal, all
// that the last one lacked.
func (h *handlers) askPassword(c *fiber.Ctx, status int, token secure.Secret, link idsite.MailedLink, problem string,
	missing []string) error {
	t := texter(c)
	return h.page(c, status, pages.Page{
		Product: link.Name, Title: t("resetTitle"), Text: t("resetText", "email", link.Account.Email), Problem: problem, Missing: missing,
		Form: &pages.Form{Button: t("setPassword"), Hidden: map[string]string{"sptoken": token.Reveal()}, Login: link.Account.Username,
			Fields: []pages.Field{
				{Name: "password", Label: t("newPassword"), Type: "password", Autocomplete: "new-password", Rules: passwordRules(t, link.Rules, nil)},
				{Name: "again", Label: t("passwordAgain"), Type: "password", Autocomplete: "new-password"},
			}},
	})
}

// setPassword sets a new password with the token of a reset link, which it consumes. One that
// is refused leaves the link good, and the page says why.
func (h *handlers) setPassword(c *fiber.Ctx) error {
	form, err := h.form(c)
	if err != nil {
		return h.refused(c, err)
	}
	t := texter(c)
	token, password := secure.Secret(form.Get("sptoken")), form.Get("password")
	link, err := h.svc.Reset(c.UserContext(), token)
	if err != nil {
		return h.refusedLink(c, err, "anotherReset")
	}
	missing := passwordRules(t, link.Rules, &password)
	if password != form.Get("again") {
		return h.askPassword(c, http.StatusBadRequest, token, link, t("differ"), missing)
	}
	err = h.svc.SetPassword(c.UserContext(), token, field.Some(password))
	switch refusal := apierr.From(err); {
	case err == nil:
		return h.page(c, http.StatusOK, pages.Page{Product: link.Name, Title: t("passwordSetTitle"), Text: t("canSignIn")})
	case errors.Is(err, apierr.Required):
		return h.askPassword(c, http.StatusBadRequest, token, link, t("enterPassword"), missing)
	case errors.Is(err, apierr.PasswordReused):
		return h.askPassword(c, http.StatusBadRequest, token, link, t("reused"), nil)
	case refusal.Status == http.StatusBadRequest && len(missing) > 0:
		return h.askPassword(c, http.StatusBadRequest, token, link, t("stillNeeds"), missing)
	case refusal.Status == http.StatusBadRequest:
		return h.askPassword(c, http.StatusBadRequest, token, link, refusalText(c, err, "checkEntries"), nil)
	}
	return h.refusedLink(c, err, "anotherReset")
}

// passwordRules are the rules of a directory's passwords in words: all, or those
// that a password breaks.
func passwordRules(t textFunc, rules directoryapi.RegistrationRules, password *string) []string {
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

// form reads what a page sent, safe from cross-site request forgery (CSRF): the token
// in it is known to the recipient of the mail alone, and a browser that says that
// another site sent the form is refused all the same.
func (h *handlers) form(c *fiber.Ctx) (url.Values, error) {
	if origin := c.Get(fiber.HeaderOrigin); origin != "" && origin != h.base.Host() {
		return nil, apierr.Forbidden.Because("the form was sent by the page of another site")
	}
	form, err := url.ParseQuery(string(c.Body()))
	if err != nil {
		return nil, apierr.BadRequest.Because("the body is not a form")
	}
	for name, values := range form {
		if slices.ContainsFunc(values, func(value string) bool { return !field.IsText(value) }) {
			return nil, apierr.BadRequest.Because("the form field %q must be UTF-8 without the character NUL", name)
		}
	}
	return form, nil
}

// refused answers an error with a page.
func (h *handlers) refused(c *fiber.Ctx, err error) error {
	return h.refusedLink(c, err, "anotherLink")
}

// refusedLink is refused for a mailed link: next is what to do about a dead one.
func (h *handlers) refusedLink(c *fiber.Ctx, err error, next string) error {
	refusal := apierr.From(err)
	switch {
	case errors.Is(err, apierr.NotFound):
		return h.deadLink(c, next)
	case errors.Is(err, context.DeadlineExceeded) || refusal.Status >= http.StatusInternalServerError:
		return err // logged and answered as everywhere
	}
	key := "failed"
	switch {
	case errors.Is(err, apierr.TooMany):
		key = "tooMany"
	case refusal.Status == http.StatusForbidden:
		key = "notAllowed"
	}
	return h.page(c, refusal.Status, pages.Page{Title: texter(c)("errorTitle"), Text: refusalText(c, err, key)})
}

// page answers with a page that is not stored or framed, and whose address no other
// site learns from a Referer.
func (h *handlers) page(c *fiber.Ctx, status int, p pages.Page) error {
	p.Product, p.Language = cmp.Or(p.Product, h.svc.Product()), languageOf(c)
	body, err := pages.Render(p)
	if err != nil {
		return err
	}
	pageHeaders(c, pages.Policy, "same-origin") // with no-referrer browsers send forms with the origin null
	return c.Status(status).Send(body)
}

// pageHeaders sets the security headers of a page: no frames (clickjacking), no sniffing, no
// caching.
func pageHeaders(c *fiber.Ctx, policy, referrer string) {
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set(fiber.HeaderReferrerPolicy, referrer)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	c.Vary(fiber.HeaderAcceptLanguage)
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
}
