package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/idsite/store"
)

func (h *handlers) sites(c *fiber.Ctx) error {
	named, err := rest.ID(c, "id")
	if err != nil {
		return err
	}
	query, err := rest.Query(c, store.Sites)
	if err != nil {
		return err
	}
	page, err := h.svc.ListSites(c.UserContext(), rest.Caller(c).Tenant, named, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("tenants", named, "idSites"), page, h.view)
}

func (h *handlers) site(c *fiber.Ctx) error {
	at, err := rest.ID(c, "id")
	if err != nil {
		return err
	}
	site, err := h.svc.Site(c.UserContext(), rest.Caller(c).Tenant, at)
	if err != nil {
		return err
	}
	return rest.OK(c, h.view(site))
}

// view is the representation of a site (resolutions, section 16.1).
type view struct {
	Href                    string    `json:"href"`
	CreatedAt               rest.Time `json:"createdAt"`
	ModifiedAt              rest.Time `json:"modifiedAt"`
	DomainName              string    `json:"domainName"`
	TLSPublicCert           *string   `json:"tlsPublicCert"`
	TLSPrivateKey           *string   `json:"tlsPrivateKey"` // never shown
	GitRepoURL              *string   `json:"gitRepoUrl"`
	GitBranch               *string   `json:"gitBranch"`
	AuthorizedOriginURIs    []string  `json:"authorizedOriginUris"`
	AuthorizedRedirectURIs  []string  `json:"authorizedRedirectUris"`
	LogoURL                 *string   `json:"logoUrl"`
	SessionTTI              string    `json:"sessionTti"`
	SessionTTL              string    `json:"sessionTtl"`
	SessionCookiePersistent bool      `json:"sessionCookiePersistent"`
	Tenant                  href.Link `json:"tenant"`
}

func (h *handlers) view(s store.Site) view {
	return view{
		Href: h.base.To("idSites", s.ID), CreatedAt: rest.Time(s.CreatedAt), ModifiedAt: rest.Time(s.ModifiedAt),
		DomainName: s.DomainName, TLSPublicCert: s.TLSPublicCert, GitRepoURL: s.GitRepoURL, GitBranch: s.GitBranch,
		AuthorizedOriginURIs: s.AuthorizedOriginURIs, AuthorizedRedirectURIs: s.AuthorizedRedirectURIs, LogoURL: s.LogoURL,
		SessionTTI: s.SessionTTI, SessionTTL: s.SessionTTL, SessionCookiePersistent: s.SessionCookiePersistent,
		Tenant: h.base.Link("tenants", s.TenantID),
	}
}
