package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/pages"
	"github.com/doorward/doorward/services/idsite/screens"
)

// textFunc returns a text in the language of a browser.
type textFunc func(key string, values ...string) string

func texter(c *fiber.Ctx) textFunc {
	language := screens.Language(c.Get(fiber.HeaderAcceptLanguage))
	return func(key string, values ...string) string { return pages.Text(language, key, values...) }
}

// deadLink shows that a link leads nowhere.
func (h *handlers) deadLink(c *fiber.Ctx) error {
	t := texter(c)
	return h.page(c, http.StatusNotFound, pages.Page{Title: t("deadLinkTitle"), Text: t("deadLinkText")})
}

// verification shows what a verification link is for. It spends nothing: mail
// scanners and browsers that look ahead follow links too.
func (h *handlers) verification(c *fiber.Ctx) error {
	token := c.Query("sptoken")
	if token == "" {
		return h.deadLink(c)
	}
	t := texter(c)
	return h.page(c, http.StatusOK, pages.Page{
		Title: t("confirmTitle"), Text: t("confirmText"), Form: &pages.Form{Button: t("confirm"), Hidden: map[string]string{"sptoken": token}},
	})
}

// verify spends the token of a verification link.
func (h *handlers) verify(c *fiber.Ctx) error {
	form, err := h.form(c)
	if err != nil {
		return h.refused(c, err)
	}
	account, err := h.svc.VerifyEmail(c.UserContext(), secure.Secret(form.Get("sptoken")))
	if err != nil {
		return h.refused(c, err)
	}
	t := texter(c)
	return h.page(c, http.StatusOK, pages.Page{Title: t("verifiedTitle"), Text: t("verifiedText", "email", account.Email)})
}

// reset asks for a new password.
func (h *handlers) reset(c *fiber.Ctx) error {
	return h.askPassword(c, http.StatusOK, secure.Secret(c.Query("sptoken")), "")
}

func (h *handlers) askPassword(c *fiber.Ctx, status int, token secure.Secret, problem string) error {
	account, err := h.svc.Reset(c.UserContext(), token)
	if err != nil {
		return h.refused(c, err)
	}
	t := texter(c)
	return h.page(c, status, pages.Page{
		Title: t("resetTitle"), Text: t("resetText", "email", account.Email), Problem: problem,
		Form: &pages.Form{Button: t("setPassword"), Hidden: map[string]string{"sptoken": token.Reveal()}, Login: account.Username,
			Fields: []pages.Field{
				{Name: "password", Label: t("newPassword"), Type: "password", Autocomplete: "new-password"},
				{Name: "again", Label: t("passwordAgain"), Type: "password", Autocomplete: "new-password"},
			}},
	})
}

// setPassword spends the token of a reset link on a new password. One that is
// refused leaves the link good, and the page says why.
func (h *handlers) setPassword(c *fiber.Ctx) error {
	form, err := h.form(c)
	if err != nil {
		return h.refused(c, err)
	}
	t := texter(c)
	token, password := secure.Secret(form.Get("sptoken")), form.Get("password")
	if password != form.Get("again") {
		return h.askPassword(c, http.StatusBadRequest, token, t("differ"))
	}
	err = h.svc.SetPassword(c.UserContext(), token, field.Some(password))
	if errors.Is(err, apierr.Required) {
		return h.askPassword(c, http.StatusBadRequest, token, t("tooShort"))
	}
	if problem, asked := problemOf(t, err); asked && apierr.From(err).Status == http.StatusBadRequest {
		return h.askPassword(c, http.StatusBadRequest, token, problem)
	}
	if err != nil {
		return h.refused(c, err)
	}
	return h.page(c, http.StatusOK, pages.Page{Title: t("passwordSet"), Text: t("canSignIn")})
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
	return form, nil
}

// refused answers an error with a page.
func (h *handlers) refused(c *fiber.Ctx, err error) error {
	refusal := apierr.From(err)
	switch {
	case errors.Is(err, apierr.NotFound):
		return h.deadLink(c)
	case errors.Is(err, context.DeadlineExceeded) || refusal.Status >= http.StatusInternalServerError:
		return err // logged and answered as everywhere
	}
	return h.page(c, refusal.Status, pages.Page{Title: texter(c)("errorTitle"), Text: refusal.Message})
}

// page answers with a page that is not stored or framed, and whose address no other
// site learns from a Referer.
func (h *handlers) page(c *fiber.Ctx, status int, p pages.Page) error {
	p.Product, p.Language = h.product, screens.Language(c.Get(fiber.HeaderAcceptLanguage))
	body, err := pages.Render(p)
	if err != nil {
		return err
	}
	pageHeaders(c, pages.Policy, "same-origin") // with no-referrer browsers send forms with the origin null
	return c.Status(status).Send(body)
}

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
