package rest

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/idsite/pages"
	"github.com/doorward/doorward/services/idsite/screens"
	"github.com/doorward/doorward/services/idsite/store"
)

// HostHeader is the header in which the gateway forwards the host that a browser has requested.
const HostHeader = "X-Doorward-Host"

// serveHostedPages serves the hosted login page and its files at the domain of a tenant: custom pages
// from its Git repository, else the built-in pages (../screens). No page can be framed (clickjacking).
func (h *handlers) serveHostedPages(c *fiber.Ctx) error {
	site, err := h.svc.SiteOfHost(c.UserContext(), c.Get(HostHeader))
	if errors.Is(err, apierr.NotFound) {
		return h.renderUnknownPage(c, nil)
	}
	if err != nil {
		return err
	}
	rest.SetTenant(c, site.TenantID)
	if err := h.svc.Journey.CheckTenant(c.UserContext(), site.TenantID); err != nil {
		return h.renderLoginError(c, err)
	}
	api := h.base.Host()
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	requested := strings.TrimPrefix(c.Path(), "/site")
	if site.GitRepoURL != nil {
		if served, err := h.customPage(c, site, requested); served || err != nil {
			return err
		}
	}
	if requested == "/homes.json" {
		return h.serveHomes(c, site)
	}
	c.Set(fiber.HeaderContentSecurityPolicy, screens.Policy(api))
	if name, static := strings.CutPrefix(requested, "/static/"); static {
		file, found := h.screens.File(name)
		if !found {
			return h.renderUnknownPage(c, toSignIn(c))
		}
		c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
		return sendAsset(c, file)
	}
	if requested != "" && requested != "/" && requested != "/index.html" { // its pages are behind the #
		return h.renderUnknownPage(c, toSignIn(c))
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Vary(fiber.HeaderAcceptLanguage)
	return sendAsset(c, h.screens.Index(screens.Language(c.Get(fiber.HeaderAcceptLanguage))))
}

// serveHomes answers with the applications that a page leads to whose browser has no login and remembers none.
func (h *handlers) serveHomes(c *fiber.Ctx, site store.Site) error {
	homes, err := h.svc.Homes(c.UserContext(), site)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age=60")
	return c.JSON(fiber.Map{"items": homes})
}

// toSignIn is the button of an error page at a domain of hosted pages.
func toSignIn(c *fiber.Ctx) *pages.Link {
	return &pages.Link{URL: "/", Text: translatorOf(c)("signIn")}
}

// renderUnknownPage answers a path or a domain that has no page: with an error page for a browser, and
// JSON for a program.
func (h *handlers) renderUnknownPage(c *fiber.Ctx, link *pages.Link) error {
	if !acceptsPage(c) {
		return apierr.NotFound.Because("there is no page at this address")
	}
	t := translatorOf(c)
	return h.renderPage(c, http.StatusNotFound, pages.Page{Title: t("notFoundTitle"), Text: t("notFoundText"), Link: link})
}

// sendAsset answers with a built-in file, compressed with gzip where the client accepts that.
func sendAsset(c *fiber.Ctx, file screens.Asset) error {
	c.Set(fiber.HeaderContentType, file.Type)
	c.Vary(fiber.HeaderAcceptEncoding)
	if strings.Contains(c.Get(fiber.HeaderAcceptEncoding), "gzip") {
		c.Set(fiber.HeaderContentEncoding, "gzip")
		return c.Send(file.Zipped)
	}
	return c.Send(file.Plain)
}

// customPage answers with a file of the custom pages, if there is such a file. For a directory that is
// its index.html, and for a path without an extension, which a script of the pages may read, that of
// the repository. A file that is missing, such as a script, is not answered with a page.
func (h *handlers) customPage(c *fiber.Ctx, site store.Site, requested string) (served bool, err error) {
	name, err := url.PathUnescape(strings.TrimPrefix(requested, "/"))
	if err != nil || !utf8.ValidString(name) { // no file has such a name
		return false, nil
	}
	file, err := h.svc.SiteFile(c.UserContext(), site.TenantID, name)
	if errors.Is(err, apierr.NotFound) {
		file, err = h.svc.SiteFile(c.UserContext(), site.TenantID, path.Join(name, "index.html"))
	}
	if errors.Is(err, apierr.NotFound) && path.Ext(name) == "" {
		file, err = h.svc.SiteFile(c.UserContext(), site.TenantID, "index.html")
	}
	if errors.Is(err, apierr.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	kind := mime.TypeByExtension(path.Ext(file.Path))
	if kind == "" {
		kind = fiber.MIMEOctetStream
	}
	c.Set(fiber.HeaderContentType, kind)
	c.Set("Cross-Origin-Opener-Policy", "same-origin-allow-popups") // the scripts of social providers open a window for the login
	c.Set(fiber.HeaderCacheControl, "public, max-age=60")
	c.Set(fiber.HeaderETag, file.ETag())
	if c.Get(fiber.HeaderIfNoneMatch) == file.ETag() {
		c.Status(http.StatusNotModified)
		return true, nil
	}
	return true, c.Send(file.Content)
}
