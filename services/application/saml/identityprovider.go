package saml

import (
	"context"
	"errors"
	"net/url"
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

// IdentityProvider is an application as a SAML identity provider (IdP), to which registered
// service providers send their users to log in.
type IdentityProvider struct {
	store.SAMLIdentityProvider
	LoginURL string // single sign-on address for service providers; empty for the console, which has no Client API
}

// IdentityProviderChange is the body that updates a SAML identity provider.
type IdentityProviderChange struct {
	Status             field.Text `json:"status"`
	SignatureAlgorithm field.Text `json:"signatureAlgorithm"`
}

// SAMLIdentityProvider returns an identity provider, or apierr.NotFound. The first call for an
// application creates the identity provider and its key pair.
func (s *Service) SAMLIdentityProvider(ctx context.Context, at id.Ref) (IdentityProvider, error) {
	a, err := s.core.ApplicationOfSAMLPolicy(ctx, at)
	if err != nil {
		return IdentityProvider{}, err
	}
	p, err := s.store.SAMLIdentityProvider(ctx, at)
	if errors.Is(err, apierr.NotFound) {
		p, err = s.createIdentityProvider(ctx, a)
	}
	return s.withLoginURL(a, p), err
}

// withLoginURL adds the LoginURL.
func (s *Service) withLoginURL(a applicationapi.Application, p store.SAMLIdentityProvider) IdentityProvider {
	if a.Builtin {
		return IdentityProvider{SAMLIdentityProvider: p}
	}
	return IdentityProvider{p, s.core.ClientAPIOrigin(a) + s.basePort() + "/saml/sso"}
}

// basePort returns the port of the deployment's address, with a colon, unless it is 443.
func (s *Service) basePort() string {
	if base, err := url.Parse(s.base.Host()); err == nil && base.Port() != "" && base.Port() != "443" {
		return ":" + base.Port()
	}
	return ""
}

// createIdentityProvider creates the identity provider of an application, unless a concurrent
// request has created it. A key pair costs as much as thousands of reads, so that a process
// creates one at a time. Of several processes that do so at the same time, one stores its key
// pair, and the others read that.
func (s *Service) createIdentityProvider(ctx context.Context,
	a applicationapi.Application) (store.SAMLIdentityProvider, error) {
	release, err := s.acquireKeyPairSlot(ctx)
	if err != nil {
		return store.SAMLIdentityProvider{}, err
	}
	defer release()
	at := id.Ref{Tenant: a.TenantID, ID: a.SAMLPolicyID}
	if p, err := s.store.SAMLIdentityProvider(ctx, at); !errors.Is(err, apierr.NotFound) {
		return p, err
	}
	p := store.SAMLIdentityProvider{
		TenantID: a.TenantID, ID: a.SAMLPolicyID, ApplicationID: a.ID, Status: directoryapi.Enabled,
		SignatureAlgorithm: saml.SHA256, CertificateID: a.SAMLPolicyID, CreatedAt: a.CreatedAt, ModifiedAt: a.CreatedAt,
	}
	if err := s.makeKeyPair(&p); err != nil {
		return p, err
	}
	if a.Builtin {
		p.Status = directoryapi.Disabled
	}
	if err := s.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.InsertSAMLIdentityProviderIfAbsent(ctx,
			p)
	}); err != nil {
		return p, err
	}
	return s.store.SAMLIdentityProvider(ctx, at)
}

// acquireKeyPairSlot waits until no other key pair is being created, or returns
// apierr.Unavailable when the context ends. The caller must call release.
func (s *Service) acquireKeyPairSlot(ctx context.Context) (release func(), err error) {
	select {
	case s.keyPairSlot <- struct{}{}:
		return func() { <-s.keyPairSlot }, nil
	case <-ctx.Done():
		return nil, apierr.Unavailable.Because(
			"too many key pairs are being made at this moment; repeat the request later").
			WithRetryAfter(time.Second)
	}
}

// makeKeyPair creates a new key pair for an identity provider. It must not be called in a
// transaction, because it takes long.
func (s *Service) makeKeyPair(p *store.SAMLIdentityProvider) error {
	pair, err := saml.NewKeyPair(p.ApplicationID.String(), s.now())
	if err != nil {
		return err
	}
	private, err := pair.PrivateKey()
	p.Certificate, p.PrivateKeySealed = pair.Certificate, s.ring.Seal(private, samlKeyPurpose(p.ID))
	return err
}

// samlKeyPurpose binds an encrypted private key to its identity provider.
func samlKeyPurpose(provider id.ID) string { return "application.saml/" + provider.String() }

// UpdateSAMLIdentityProvider changes the members that the body names. A change of the signature
// algorithm also replaces the key pair (key rotation), so that signatures with the former
// algorithm are no longer valid. The identity provider of the console stays disabled: it has no
// Client API to which a service provider could send a browser.
func (s *Service) UpdateSAMLIdentityProvider(ctx context.Context, at id.Ref,
	in IdentityProviderChange) (IdentityProvider, error) {
	p, err := s.SAMLIdentityProvider(ctx, at)
	if err != nil {
		return p, err
	}
	changed, former := p.SAMLIdentityProvider, p.Certificate
	if err := in.apply(&changed, p.LoginURL == ""); err != nil {
		return p, err
	}
	if changed.SignatureAlgorithm != p.SignatureAlgorithm {
		if err := s.replaceKeyPair(ctx, &changed); err != nil {
			return p, err
		}
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if p.SAMLIdentityProvider, err = tx.LockSAMLIdentityProvider(ctx, at); err != nil {
			return err
		}
		was := p.SignatureAlgorithm
		if err := in.apply(&p.SAMLIdentityProvider, p.LoginURL == ""); err != nil {
			return err
		}
		switch {
		case p.SignatureAlgorithm == was: // unchanged, or changed by a concurrent request
		case changed.Certificate == former:
			return apierr.Unavailable.Because("signatureAlgorithm was changed at the same moment; repeat the request").
				WithRetryAfter(time.Second)
		default:
			p.CertificateID, p.Certificate, p.PrivateKeySealed = changed.CertificateID, changed.Certificate,
				changed.PrivateKeySealed
		}
		p.ModifiedAt = s.now()
		return tx.UpdateSAMLIdentityProvider(ctx, p.SAMLIdentityProvider)
	})
	return p, err
}

// apply writes the members of a body into an identity provider and checks them.
func (in IdentityProviderChange) apply(p *store.SAMLIdentityProvider, isConsole bool) (err error) {
	var errs field.Errors
	errs.Enum(&p.Status, in.Status, "status", directoryapi.Enabled, directoryapi.Disabled)
	errs.Enum(&p.SignatureAlgorithm, in.SignatureAlgorithm, "signatureAlgorithm", saml.SHA256, saml.SHA1)
	if isConsole && p.Status == directoryapi.Enabled {
		errs.Add(apierr.BadRequest.Because("the console application has no identity provider that could be enabled"))
	}
	return errs.First()
}

// replaceKeyPair creates another key pair for an identity provider, one at a time in the process.
func (s *Service) replaceKeyPair(ctx context.Context, p *store.SAMLIdentityProvider) error {
	release, err := s.acquireKeyPairSlot(ctx)
	if err != nil {
		return err
	}
	defer release()
	p.CertificateID = id.New(s.now())
	return s.makeKeyPair(p)
}

// SAMLCertificate returns a certificate in PEM, or apierr.NotFound, also for the certificate of
// a key pair that was replaced.
func (s *Service) SAMLCertificate(ctx context.Context, at id.Ref) (string, error) {
	p, err := s.store.SAMLIdentityProviderOfCertificate(ctx, at)
	if !errors.Is(err, apierr.NotFound) {
		return p.Certificate, err
	}
	first, err := s.SAMLIdentityProvider(ctx, at)
	if err == nil && first.CertificateID != at.ID {
		err = apierr.NotFound
	}
	return first.Certificate, err
}

// SAMLRules returns the attribute statement mapping rules of an identity provider, or
// apierr.NotFound.
func (s *Service) SAMLRules(ctx context.Context, at id.Ref) (mappingrule.Rules, error) {
	if _, err := s.SAMLIdentityProvider(ctx, at); err != nil {
		return mappingrule.Rules{}, err
	}
	return s.store.SAMLRules(ctx, at)
}

// UpdateSAMLRules replaces the items of the attribute statement mapping rules.
func (s *Service) UpdateSAMLRules(ctx context.Context, at id.Ref,
	in mappingrule.Change) (rules mappingrule.Rules, err error) {
	if _, err := s.SAMLIdentityProvider(ctx, at); err != nil {
		return rules, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
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
