package rest

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
)

// The sessions and consents of the user of a Client API (docs/interface/client-api.md#sessions). They are those of the
// management API, with ids in place of links.

// maxOwn is how many sessions or consents a user is shown.
const maxOwn = 100

type ownSessionView struct {
	ID            id.ID      `json:"id"`
	CreatedAt     rest.Time  `json:"createdAt"`
	LastUsedAt    *rest.Time `json:"lastUsedAt"`
	RemoteAddress *string    `json:"remoteAddress"`
	UserAgent     *string    `json:"userAgent"`
	AMR           []string   `json:"amr"`
	ACR           *string    `json:"acr"`
	Clients       []id.ID    `json:"clients"`
	Current       bool       `json:"current"` // it is that of this browser, or of the token
}

type ownConsentView struct {
	ID         id.ID     `json:"id"`
	CreatedAt  rest.Time `json:"createdAt"`
	ModifiedAt rest.Time `json:"modifiedAt"`
	Client     id.ID     `json:"client"`
	Scopes     []string  `json:"scopes"`
}

// mySessions answers with the sessions of the account of an access token.
func (c *clientCall) mySessions(f *fiber.Ctx) error {
	return c.withAccount(f, func(account id.Ref) error {
		page, err := c.svc.Journey.ListSessions(f.UserContext(), account, list.Query{Limit: maxOwn})
		if err != nil {
			return err
		}
		current, err := c.svc.OpenID.Session(f.UserContext(), account.Tenant, readCookie(f, sessionCookie))
		if err != nil {
			return err
		}
		items := []ownSessionView{}
		for _, s := range page.Items {
			v := c.sessionView(s)
			items = append(items, ownSessionView{ID: s.SessionID, CreatedAt: v.CreatedAt, LastUsedAt: v.LastUsedAt,
				RemoteAddress: v.RemoteAddress, UserAgent: v.UserAgent, AMR: v.AMR, ACR: v.ACR, Clients: s.Clients,
				Current: s.SessionID == current.SessionID})
		}
		return f.JSON(fiber.Map{"items": items})
	})
}

// myConsents answers with what the account of an access token has allowed clients.
func (c *clientCall) myConsents(f *fiber.Ctx) error {
	return c.withAccount(f, func(account id.Ref) error {
		page, err := c.svc.Journey.ListConsents(f.UserContext(), account, list.Query{Limit: maxOwn})
		if err != nil {
			return err
		}
		items := []ownConsentView{}
		for _, each := range page.Items {
			items = append(items, ownConsentView{ID: each.ID, CreatedAt: rest.Time(each.CreatedAt),
				ModifiedAt: rest.Time(each.ModifiedAt), Client: each.ClientID, Scopes: each.Scopes})
		}
		return f.JSON(fiber.Map{"items": items})
	})
}

// endMySessions ends all sessions of the account of an access token.
func (c *clientCall) endMySessions(f *fiber.Ctx) error {
	return c.withAccount(f, func(account id.Ref) error {
		return rest.Deleted(f, c.svc.Journey.DeleteSessions(f.UserContext(), account))
	})
}

// endMySession ends a session. One of another account stays, and the answer is the same.
func (c *clientCall) endMySession(f *fiber.Ctx) error {
	return c.withOwn(f, func(account, session id.Ref) error {
		s, err := c.svc.Journey.Session(f.UserContext(), session)
		if err == nil && s.AccountID != account.ID {
			err = apierr.NotFound
		}
		if err != nil {
			return err
		}
		return c.svc.Journey.DeleteSession(f.UserContext(), session)
	})
}

// endMyConsent takes a consent back. One of another account stays, and the answer is the same.
func (c *clientCall) endMyConsent(f *fiber.Ctx) error {
	return c.withOwn(f, func(account, consent id.Ref) error {
		found, err := c.svc.Journey.Consent(f.UserContext(), consent)
		if err == nil && found.AccountID != account.ID {
			err = apierr.NotFound
		}
		if err != nil {
			return err
		}
		return c.svc.Journey.DeleteConsent(f.UserContext(), consent)
	})
}

// withOwn runs a rule with the account of an access token and the resource of that tenant that the path names last.
func (c *clientCall) withOwn(f *fiber.Ctx, rule func(account, resource id.Ref) error) error {
	return c.withAccount(f, func(account id.Ref) error {
		resource, err := id.Parse(f.Path()[strings.LastIndexByte(f.Path(), '/')+1:])
		if err != nil {
			return rest.NoContent(f)
		}
		return rest.Deleted(f, rule(account, id.Ref{Tenant: account.Tenant, ID: resource}))
	})
}
