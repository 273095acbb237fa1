package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/store"
)

// siteView is the representation of the settings of a site (docs/interface/id-site.md#settings).
type siteView struct {
	rest.Head
	DomainName              string               `json:"domainName"`
	DomainStatus            string               `json:"domainStatus"`
	DomainVerification      *idsite.DomainRecord `json:"domainVerification"`
	TLSPublicCert           *string              `json:"tlsPublicCert"`
	TLSPrivateKey           *string              `json:"tlsPrivateKey"`
	TLSStatus               string               `json:"tlsStatus"`
	GitRepoURL              *string              `json:"gitRepoUrl"`
	GitBranch               *string              `json:"gitBranch"`
	GitStatus               string               `json:"gitStatus"`
	GitMessage              *string              `json:"gitMessage"`
	AuthorizedOriginURIs    []string             `json:"authorizedOriginUris"`
	AuthorizedRedirectURIs  []string             `json:"authorizedRedirectUris"`
	LogoURL                 *string              `json:"logoUrl"`
	AccentColor             *string              `json:"accentColor"`
	SessionTTI              string               `json:"sessionTti"`
	SessionTTL              string               `json:"sessionTtl"`
	SessionCookiePersistent bool                 `json:"sessionCookiePersistent"`
	Tenant                  href.Link            `json:"tenant"`
}

func (h *handlers) siteView(s store.Site) siteView {
	key := s.TLSPrivateKey
	if s.TLSPrivateKeySealed != nil {
		sealed := idsite.SealedKey
		key = &sealed
	}
	return siteView{
		Head:       rest.NewHead(h.base.To("idSites", s.ID), s.CreatedAt, s.ModifiedAt),
		DomainName: s.DomainName, DomainStatus: idsite.DomainStatus(s), DomainVerification: idsite.DomainVerification(s),
		TLSPublicCert: s.TLSPublicCert, TLSPrivateKey: key, TLSStatus: h.svc.TLSStatus(s),
		GitRepoURL: s.GitRepoURL, GitBranch: s.GitBranch, GitStatus: s.GitStatus, GitMessage: s.GitMessage,
		AuthorizedOriginURIs: s.AuthorizedOriginURIs, AuthorizedRedirectURIs: s.AuthorizedRedirectURIs, LogoURL: s.LogoURL,
		AccentColor: s.AccentColor,
		SessionTTI:  s.SessionTTI, SessionTTL: s.SessionTTL, SessionCookiePersistent: s.SessionCookiePersistent,
		Tenant: h.base.Link("tenants", s.TenantID),
	}
}
