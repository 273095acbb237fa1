package application

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// ApplicationByDNSLabel returns the application whose Client API has the label.
func (s *Service) ApplicationByDNSLabel(ctx context.Context, in applicationapi.DNSLabel) (applicationapi.Application, error) {
	return s.store.ApplicationByDNSLabel(ctx, strings.ToLower(in.Label))
}

// LoginStores returns the stores in which a login is looked for, and the default one
// unless the request is brief.
func (s *Service) LoginStores(ctx context.Context, in applicationapi.Where) (applicationapi.LoginStores, error) {
	application, where := refOf(in), storeName(in)
	order, err := s.store.CachedLoginOrder(ctx, application.Tenant, application.ID)
	if err != nil {
		return applicationapi.LoginStores{}, err
	}
	out := applicationapi.LoginStores{Status: order.Status, HasOrganizations: slices.ContainsFunc(order.Mapped,
		func(mapped store.MappedStore) bool { return !mapped.OrganizationID.IsZero() })}
	order, err = s.searchable(ctx, application, order, where)
	if errors.Is(err, apierr.NoStores) || errors.Is(err, apierr.OrgNoStores) {
		return out, nil
	}
	if err != nil {
		return applicationapi.LoginStores{}, err
	}
	out.Organization = order.Named
	for _, mapped := range order.Mapped {
		if mapped.OrganizationID == order.Named {
			out.NameKey = mapped.NameKey
		}
	}
	for _, at := range order.Open() {
		if at.Kind == directoryapi.Directories && !slices.Contains(out.Directories, at.ID) {
			out.Directories = append(out.Directories, at.ID)
		}
	}
	if in.Brief {
		return out, nil
	}
	owner := application
	kind := applications.accounts
	if !order.Named.IsZero() {
		owner.ID, kind = order.Named, organizations.accounts
	}
	at, err := s.defaultStoreOf(ctx, owner, kind)
	switch refusal := apierr.From(err); {
	case err == nil:
		out.Default = at.directory.ID
	case refusal.Status >= 500:
		return out, err
	}
	return out, nil
}

// Register creates an account for a browser.
func (s *Service) Register(ctx context.Context, in applicationapi.Register) (directoryapi.Account, error) {
	application, where := refOf(in.Where), storeName(in.Where)
	if err := s.wantEnabled(ctx, application); err != nil {
		return directoryapi.Account{}, err
	}
	in.Account.Status, in.Account.EmailVerificationStatus = field.Text{}, field.Text{}
	account := directoryapi.CreateAccount{Application: application.ID, Account: in.Account, Workflow: true}
	if where == (directoryapi.StoreName{}) {
		return s.newAccount(ctx, application, applications.accounts, account)
	}
	order, err := s.loginOrder(ctx, application, where)
	if err != nil {
		return directoryapi.Account{}, err
	}
	if !order.Named.IsZero() {
		return s.newAccount(ctx, id.Ref{Tenant: in.Tenant, ID: order.Named}, organizations.accounts, account)
	}
	at, err := s.accountStore(ctx, in.Tenant, order.Mapped[0].Store())
	if err != nil {
		return directoryapi.Account{}, err
	}
	if !at.enabled {
		return directoryapi.Account{}, apierr.AccountStoreDisabled.Because("the account store is disabled")
	}
	account.Tenant, account.ID, account.Directory, account.Group = in.Tenant, id.New(s.now()), at.directory.ID, at.group()
	return s.directories.CreateAccount(ctx, account)
}

// RequestVerification sends another verification mail.
func (s *Service) RequestVerification(ctx context.Context, in applicationapi.LoginName) (directoryapi.Empty, error) {
	return directoryapi.Empty{}, s.AskVerification(
		ctx, refOf(in.Where), NewVerification{Login: field.Some(in.Login), AccountStore: optional(storeName(in.Where)), Anonymous: true},
	)
}

// RequestReset sends a password reset mail.
func (s *Service) RequestReset(ctx context.Context, in applicationapi.LoginName) (directoryapi.Empty, error) {
	_, err := s.AskReset(ctx, refOf(in.Where), NewReset{
		Email: field.Some(in.Login), AccountStore: optional(storeName(in.Where)), Anonymous: true,
	})
	return directoryapi.Empty{}, err
}

// CheckReset returns the reset of a token.
func (s *Service) CheckReset(ctx context.Context, in applicationapi.ResetToken) (directoryapi.PasswordReset, error) {
	return s.Reset(ctx, id.Ref{Tenant: in.Tenant, ID: in.Application}, in.Token)
}

// ResetPassword sets a new password, once.
func (s *Service) ResetPassword(ctx context.Context, in applicationapi.ResetPassword) (directoryapi.PasswordReset, error) {
	return s.ConsumeReset(
		ctx, id.Ref{Tenant: in.Tenant, ID: in.Application}, in.Token, NewPassword{Password: field.Some(in.Password.Reveal())},
	)
}

// AccountApplications returns the applications that reach an account.
func (s *Service) AccountApplications(ctx context.Context, account directoryapi.Ref) (applicationapi.Applications, error) {
	page, err := s.ListAccountApplications(ctx, account, list.Query{Limit: list.MaxLimit})
	return applicationapi.Applications{Items: page.Items}, err
}

func refOf(in applicationapi.Where) id.Ref { return id.Ref{Tenant: in.Tenant, ID: in.Application} }

func storeName(in applicationapi.Where) directoryapi.StoreName {
	return directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey}
}

func optional(where directoryapi.StoreName) field.Of[directoryapi.StoreName] {
	if where == (directoryapi.StoreName{}) {
		return field.Of[directoryapi.StoreName]{}
	}
	return field.Some(where)
}
