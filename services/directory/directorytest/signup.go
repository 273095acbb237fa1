package directorytest

import (
	"context"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
)

// Tenants returns the tenants, the oldest first.
func (s *Service) Tenants(t testing.TB) (all []directoryapi.SignedUp) {
	t.Helper()
	ids, err := pg.Values[id.ID](context.Background(), s.DB,
		`SELECT tenant_id FROM tenants ORDER BY created_at, tenant_id`)
	check(t, err)
	for _, tenant := range ids {
		at := id.Ref{Tenant: tenant, ID: tenant}
		var made directoryapi.SignedUp
		made.Tenant, err = s.Rules.Tenant(context.Background(), at)
		check(t, err)
		made.Owner, err = s.Rules.Owner(context.Background(), at)
		check(t, err)
		made.Directory, err = s.Rules.Directory(context.Background(),
			id.Ref{Tenant: tenant, ID: made.Owner.DirectoryID})
		check(t, err)
		all = append(all, made)
	}
	return all
}

// SignUpTokens returns the mailed tokens of pending sign-ups and invitations, by email.
func (s *Service) SignUpTokens(t testing.TB) map[string]secure.Secret {
	t.Helper()
	tokens := map[string]secure.Secret{}
	for _, e := range Events[events.SignUpRequested](t, s, "SignUpRequested") {
		token, err := s.Ring.Open(e.Token, events.MailTokenPurpose(e.Account))
		check(t, err)
		if pending, err := s.Rules.PendingSignUp(context.Background(),
			directoryapi.SignUpToken{Token: token}); err == nil {
			tokens[pending.Email] = token
		}
	}
	return tokens
}

// Invite invites an administrator to a tenant, and returns the mailed token.
func (s *Service) Invite(t testing.TB, tenant id.ID, email string) secure.Secret {
	t.Helper()
	_, err := s.Rules.Invite(context.Background(), id.Ref{Tenant: tenant, ID: tenant},
		directory.NewInvitation{Email: field.Some(email)})
	check(t, err)
	return s.SignUpTokens(t)[email]
}

// VerificationToken sends the verification mail of an account, and returns its token.
func (s *Service) VerificationToken(t testing.TB, account directoryapi.Account) secure.Secret {
	t.Helper()
	_, err := s.Rules.RequestVerification(context.Background(), directoryapi.RequestVerification{
		Tenant: account.TenantID, Login: account.Email,
		Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: account.DirectoryID}},
	})
	check(t, err)
	sent := Events[events.VerificationRequested](t, s, "VerificationRequested")
	token, err := s.Ring.Open(sent[len(sent)-1].Token, events.MailTokenPurpose(account.ID))
	return must(t, token, err)
}

// SetStrength changes what a directory requires of passwords.
func (s *Service) SetStrength(t testing.TB, at id.Ref, in directory.StrengthChange) {
	t.Helper()
	_, err := s.Rules.UpdateStrength(context.Background(), at, in)
	check(t, err)
}
