package application

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/application/store"
)

// SAMLIdentityProvider is an application as an identity provider.
type SAMLIdentityProvider struct {
	store.SAMLIdentityProvider
	LoginURL string // where service providers send browsers; empty for the console, which has no Client API
}

// IdentityProviderChange is the body that updates a SAML identity provider.
type IdentityProviderChange struct {
	Status field.Text `json:"status"`
}

// SAMLPolicy returns the application whose SAML policy has that id, or
// apierr.NotFound. The policy and the application's own SAML service provider are
// nothing but links (docs/interface/applications.md#saml-policy): what they say is
// the application's.
func (s *Service) SAMLPolicy(ctx context.Context, at id.Ref) (applicationapi.Application, error) {
	a, err := s.store.ApplicationOfSAMLPolicy(ctx, at.Tenant, at.ID)
	return s.labelled(ctx, a, err)
}

// SAMLIdentityProvider returns an identity provider, or apierr.NotFound. One that
// was not asked for yet gets its key pair.
func (s *Service) SAMLIdentityProvider(ctx context.Context, at id.Ref) (SAMLIdentityProvider, error) {
	a, err := s.SAMLPolicy(ctx, at)
	if err != nil {
		return SAMLIdentityProvider{}, err
	}
	p, err := s.store.SAMLIdentityProvider(ctx, at)
	if errors.Is(err, apierr.NotFound) {
		p, err = s.beginIdentityProvider(ctx, a)
	}
	return s.reachable(a, p), err
}

// reachable adds where service providers send browsers.
func (s *Service) reachable(a applicationapi.Application, p store.SAMLIdentityProvider) SAMLIdentityProvider {
	if a.Builtin {
		return SAMLIdentityProvider{SAMLIdentityProvider: p}
	}
	return SAMLIdentityProvider{p, s.origin(a) + "/saml/sso"}
}

// beginIdentityProvider makes the identity provider of an application. A key
// pair costs as much as thousands of reads, so the process makes one at a time:
// of parallel requests the first makes it, and the others find it. Of several
// processes one keeps its own.
func (s *Service) beginIdentityProvider(ctx context.Context, a applicationapi.Application) (store.SAMLIdentityProvider, error) {
	select {
	case s.keyPairs <- struct{}{}:
		defer func() { <-s.keyPairs }()
	case <-ctx.Done():
		return store.SAMLIdentityProvider{}, apierr.Unavailable.Because("too many key pairs are being made at this moment; repeat the request later").
			After(time.Second)
	}
	at := id.Ref{Tenant: a.TenantID, ID: a.SAMLPolicyID}
	if p, err := s.store.SAMLIdentityProvider(ctx, at); !errors.Is(err, apierr.NotFound) {
		return p, err
	}
	pair, err := saml.NewKeyPair(a.ID.String(), s.now())
	if err != nil {
		return store.SAMLIdentityProvider{}, err
	}
	p := store.SAMLIdentityProvider{
		TenantID: a.TenantID, ID: a.SAMLPolicyID, ApplicationID: a.ID, Status: directoryapi.Enabled, Certificate: pair.Certificate,
		PrivateKeySealed: s.ring.Seal(pair.PrivateKey, samlKeyPurpose(a.SAMLPolicyID)), CreatedAt: a.CreatedAt, ModifiedAt: a.CreatedAt,
	}
	if a.Builtin {
		p.Status = directoryapi.Disabled
	}
	if err := s.tx(ctx, func(tx *store.Tx) error { return tx.KeepSAMLIdentityProvider(ctx, p) }); err != nil {
		return p, err
	}
	return s.store.SAMLIdentityProvider(ctx, at)
}

func samlKeyPurpose(provider id.ID) string { return "application.saml/" + provider.String() }

// UpdateSAMLIdentityProvider changes what the body names. That of the console
// stays off: it has no Client API that a service provider could send anybody to.
func (s *Service) UpdateSAMLIdentityProvider(ctx context.Context, at id.Ref, in IdentityProviderChange) (SAMLIdentityProvider, error) {
	p, err := s.SAMLIdentityProvider(ctx, at)
	if err != nil {
		return p, err
	}
	err = s.tx(ctx, func(tx *store.Tx) (err error) {
		if p.SAMLIdentityProvider, err = tx.LockSAMLIdentityProvider(ctx, at); err != nil {
			return err
		}
		if p.Status, err = field.Enum(in.Status, "status", p.Status, directoryapi.Enabled, directoryapi.Disabled); err != nil {
			return err
		}
		if p.LoginURL == "" && p.Status == directoryapi.Enabled {
			return apierr.BadRequest.Because("the console application has no identity provider that could be enabled")
		}
		p.ModifiedAt = s.now()
		return tx.UpdateSAMLIdentityProvider(ctx, p.SAMLIdentityProvider)
	})
	return p, err
}

// SAMLCertificate returns the certificate of an identity provider in PEM, or
// apierr.NotFound.
func (s *Service) SAMLCertificate(ctx context.Context, at id.Ref) (string, error) {
	p, err := s.SAMLIdentityProvider(ctx, at)
	return p.Certificate, err
}

// SAMLRules returns the rules for the assertions of an identity provider, or
// apierr.NotFound.
func (s *Service) SAMLRules(ctx context.Context, at id.Ref) (mappingrule.Rules, error) {
	if _, err := s.SAMLIdentityProvider(ctx, at); err != nil {
		return mappingrule.Rules{}, err
	}
	return s.store.SAMLRules(ctx, at)
}

// UpdateSAMLRules replaces the items of those rules.
func (s *Service) UpdateSAMLRules(ctx context.Context, at id.Ref, in mappingrule.Change) (rules mappingrule.Rules, err error) {
	if _, err := s.SAMLIdentityProvider(ctx, at); err != nil {
		return rules, err
	}
	err = s.tx(ctx, func(tx *store.Tx) error {
		if rules, err = tx.LockSAMLRules(ctx, at); err != nil {
			return err
		}
		if err := rules.Apply(in); err != nil {
			return err
		}
		rules.ModifiedAt = s.now()
		return tx.UpdateSAMLRules(ctx, rules)
	})
	return rules, err
}
