package application

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

// SAMLIdentityProvider is an application as an identity provider.
type SAMLIdentityProvider struct {
	store.SAMLIdentityProvider
	LoginURL string // where service providers send browsers; empty for the console, which has no Client API
}

// IdentityProviderChange is the body that updates a SAML identity provider.
type IdentityProviderChange struct {
	Status             field.Text `json:"status"`
	SignatureAlgorithm field.Text `json:"signatureAlgorithm"`
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
	return SAMLIdentityProvider{p, s.origin(a) + s.port() + "/saml/sso"}
}

// port is that of the deployment's address where it is not the usual one: browsers
// follow it.
func (s *Service) port() string {
	if base, err := url.Parse(s.base.Host()); err == nil && base.Port() != "" && base.Port() != "443" {
		return ":" + base.Port()
	}
	return ""
}

// beginIdentityProvider makes the identity provider of an application. A key
// pair costs as much as thousands of reads, so the process makes one at a time:
// of parallel requests the first makes it, and the others find it. Of several
// processes one keeps its own.
func (s *Service) beginIdentityProvider(ctx context.Context, a applicationapi.Application) (store.SAMLIdentityProvider, error) {
	release, err := s.acquireKeyPairs(ctx)
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
	if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.KeepSAMLIdentityProvider(ctx, p) }); err != nil {
		return p, err
	}
	return s.store.SAMLIdentityProvider(ctx, at)
}

// acquireKeyPairs waits until no other key pair is being made.
func (s *Service) acquireKeyPairs(ctx context.Context) (release func(), err error) {
	select {
	case s.keyPairs <- struct{}{}:
		return func() { <-s.keyPairs }, nil
	case <-ctx.Done():
		return nil, apierr.Unavailable.Because("too many key pairs are being made at this moment; repeat the request later").After(time.Second)
	}
}

// makeKeyPair makes a new key pair for an identity provider. No transaction may be
// open.
func (s *Service) makeKeyPair(p *store.SAMLIdentityProvider) error {
	pair, err := saml.NewKeyPair(p.ApplicationID.String(), s.now())
	if err != nil {
		return err
	}
	private, err := pair.PrivateKey()
	p.Certificate, p.PrivateKeySealed = pair.Certificate, s.ring.Seal(private, samlKeyPurpose(p.ID))
	return err
}

func samlKeyPurpose(provider id.ID) string { return "application.saml/" + provider.String() }

// UpdateSAMLIdentityProvider changes what the body names. Another signature
// algorithm comes with a new key pair, so that no signature of the former one is
// good for it. That of the console stays disabled: it has no Client API that a
// service provider could send a browser to.
func (s *Service) UpdateSAMLIdentityProvider(ctx context.Context, at id.Ref, in IdentityProviderChange) (SAMLIdentityProvider, error) {
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
		case p.SignatureAlgorithm == was: // as it was, or as a parallel request made it
		case changed.Certificate == former:
			return apierr.Unavailable.Because("signatureAlgorithm was changed at the same moment; repeat the request").After(time.Second)
		default:
			p.CertificateID, p.Certificate, p.PrivateKeySealed = changed.CertificateID, changed.Certificate, changed.PrivateKeySealed
		}
		p.ModifiedAt = s.now()
		return tx.UpdateSAMLIdentityProvider(ctx, p.SAMLIdentityProvider)
	})
	return p, err
}

// apply writes the members of a body into an identity provider and checks them.
func (in IdentityProviderChange) apply(p *store.SAMLIdentityProvider, isConsole bool) (err error) {
	var refused field.Refusals
	refused.Enum(&p.Status, in.Status, "status", directoryapi.Enabled, directoryapi.Disabled)
	refused.Enum(&p.SignatureAlgorithm, in.SignatureAlgorithm, "signatureAlgorithm", saml.SHA256, saml.SHA1)
	if isConsole && p.Status == directoryapi.Enabled {
		refused.Add(apierr.BadRequest.Because("the console application has no identity provider that could be enabled"))
	}
	return refused.First()
}

// replaceKeyPair makes another key pair, one at a time in the process.
func (s *Service) replaceKeyPair(ctx context.Context, p *store.SAMLIdentityProvider) error {
	release, err := s.acquireKeyPairs(ctx)
	if err != nil {
		return err
	}
	defer release()
	p.CertificateID = id.New(s.now())
	return s.makeKeyPair(p)
}

// SAMLCertificate returns a certificate in PEM, or apierr.NotFound: a former
// certificate is gone with its key.
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
