package idsite

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// Mailed links: email verification and password reset. A link has its token and nothing else,
// and the token leads to its tenant (docs/interface/mail.md#links). The pages are in rest/link.go,
// those of a sign-up in rest/signup.go, what a link does is in journey/mail.go. How a mail gets its link is in
// services/notification/maillink.go.

// MailedLink is what the page of a mailed link shows.
type MailedLink struct {
	Account directoryapi.Account           // zero: not known any more
	Rules   directoryapi.RegistrationRules // of its directory
	Site    Origin
}

// Origin is where a page belongs: its name stands above the page, and a button leads to its home.
type Origin struct {
	Name string `json:"name"`    // of the application, or else of the tenant
	Home string `json:"homeUrl"` // address of the application; "": not known
}

// OriginOfApplication returns the origin of the pages of an application.
func (s *Service) OriginOfApplication(app applicationapi.Application) Origin {
	return Origin{Name: s.displayName(app.Name, app.Builtin), Home: app.Home()}
}

// MailedLink returns what the page of a mail's link shows, or apierr.NotFound for an invalid token. It does not
// consume the token.
func (s *Service) MailedLink(ctx context.Context, workflow directoryapi.Workflow,
	token secure.Secret) (MailedLink, error) {
	link, err := s.Journey.Link(ctx, workflow, token)
	if err != nil {
		return MailedLink{}, err
	}
	return s.mailedLink(ctx, link)
}

// EndedLink returns what the page of a link shows that was used or has expired, or apierr.NotFound for
// a token that never was.
func (s *Service) EndedLink(ctx context.Context, workflow directoryapi.Workflow,
	token secure.Secret) (MailedLink, error) {
	link, err := s.Journey.EndedLink(ctx, workflow, token)
	if err != nil {
		return MailedLink{}, err
	}
	return s.mailedLink(ctx, link)
}

// SendMailAgain sends another mail in place of one whose link has ended (journey.SendMailAgain).
func (s *Service) SendMailAgain(ctx context.Context, workflow directoryapi.Workflow,
	token secure.Secret) (MailedLink, error) {
	ended, err := s.Journey.EndedLink(ctx, workflow, token)
	if err != nil {
		return MailedLink{}, err
	}
	link, err := s.mailedLink(ctx, ended)
	if err != nil {
		return link, err
	}
	return link, s.Journey.SendMailAgain(ctx, workflow, ended)
}

// PendingSignUp returns the sign-up or the invitation of a mailed token, or apierr.NotFound. The invitation of a
// suspended tenant is apierr.TenantSuspended.
func (s *Service) PendingSignUp(ctx context.Context, token secure.Secret) (directoryapi.PendingSignUp, error) {
	pending, err := s.Tenants.PendingSignUp(ctx, token)
	if err != nil {
		return pending, err
	}
	return pending, s.Journey.CheckTenant(ctx, pending.Tenant)
}

func (s *Service) mailedLink(ctx context.Context, in directoryapi.MailedLink) (link MailedLink, err error) {
	ctx, link.Account = caller.WithTenant(ctx, in.Tenant), in.Account
	if !in.Account.ID.IsZero() {
		link.Rules, err = s.peers.Directory.RegistrationRules(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account.DirectoryID})
		if err != nil {
			return link, err
		}
	}
	link.Site, err = s.mailOrigin(ctx, in)
	return link, err
}

// mailOrigin returns the origin of a mailed link: the application through which the mail was caused, else the
// only one that has the account, else the tenant.
func (s *Service) mailOrigin(ctx context.Context, in directoryapi.MailedLink) (Origin, error) {
	if !in.Application.IsZero() {
		app, err := s.peers.Application.Application(ctx, id.Ref{Tenant: in.Tenant, ID: in.Application})
		if !errors.Is(err, apierr.NotFound) { // deleted meanwhile
			return s.OriginOfApplication(app), err
		}
	}
	if !in.Account.ID.IsZero() {
		reaching, err := s.peers.Application.AccountApplications(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account.ID})
		if err != nil {
			return Origin{}, err
		}
		if len(reaching.Items) == 1 {
			return s.OriginOfApplication(reaching.Items[0]), nil
		}
	}
	tenant, err := s.peers.Directory.Tenant(ctx, id.Ref{Tenant: in.Tenant, ID: in.Tenant})
	if errors.Is(err, apierr.NotFound) {
		err = nil // the product is named
	}
	return Origin{Name: tenant.Name}, err
}

// Homes returns the applications to which the pages of a site lead where they know of no login: those of the tenant
// that have a homeUrl.
func (s *Service) Homes(ctx context.Context, site store.Site) ([]Origin, error) {
	ctx = caller.WithTenant(ctx, site.TenantID)
	found, err := s.peers.Application.Homes(ctx, applicationapi.Homes{Tenant: site.TenantID})
	homes := make([]Origin, 0, len(found.Items))
	for _, app := range found.Items {
		homes = append(homes, s.OriginOfApplication(app))
	}
	return homes, err
}
