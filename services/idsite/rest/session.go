package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// sessionView is the representation of a session of single sign-on (docs/interface/openid.md#sessions).
type sessionView struct {
	Href          string      `json:"href"`
	CreatedAt     rest.Time   `json:"createdAt"`
	LastUsedAt    *rest.Time  `json:"lastUsedAt"`
	RemoteAddress *string     `json:"remoteAddress"`
	UserAgent     *string     `json:"userAgent"`
	AMR           []string    `json:"amr"`
	ACR           *string     `json:"acr"`
	Account       href.Link   `json:"account"`
	Clients       []href.Link `json:"clients"`
}

func (h *handlers) sessionView(s journey.ListedSession) sessionView {
	acr, amr := journey.AuthenticationContext(s.ByPassword, s.FactorPassed, s.FactorType)
	v := sessionView{
		Href: h.base.To("sessions", s.SessionID), CreatedAt: rest.Time(s.CreatedAt),
		LastUsedAt: (*rest.Time)(s.LastUsedAt), RemoteAddress: optional(s.RemoteAddress), UserAgent: optional(s.UserAgent),
		AMR: append([]string{}, amr...), ACR: optional(acr), Account: h.base.Link("accounts", s.AccountID),
		Clients: []href.Link{},
	}
	for _, client := range s.Clients {
		v.Clients = append(v.Clients, h.base.Link("openIdClients", client))
	}
	return v
}

// optional is null for a text that is not known.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// consentView is the representation of what an account has allowed a client.
type consentView struct {
	rest.Head
	Scopes  []string  `json:"scopes"`
	Account href.Link `json:"account"`
	Client  href.Link `json:"client"`
}

func (h *handlers) consentView(c store.Consent) consentView {
	return consentView{
		Head: rest.NewHead(h.base.To("consents", c.ID), c.CreatedAt, c.ModifiedAt), Scopes: c.Scopes,
		Account: h.base.Link("accounts", c.AccountID), Client: h.base.Link("openIdClients", c.ClientID),
	}
}
