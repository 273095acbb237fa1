package provider

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/store"
)

// SAMLEntityID is the entity id of a SAML directory as a service provider.
func SAMLEntityID(name alias.Alias, directory id.ID) string {
	return name.Spell("urn:service:directory:") + directory.String() + ":provider:sp"
}

// samlConsumerURL is the assertion consumer service (ACS) of a directory: where its identity
// provider sends responses.
func (s *Service) samlConsumerURL(directory id.ID) string {
	return s.base.To("directories", directory, "saml", "sso", "post")
}

// SAMLTenant returns the tenant of a SAML directory.
func (s *Service) SAMLTenant(ctx context.Context, in directoryapi.SAMLDirectory) (directoryapi.SAMLTenant, error) {
	tenant, err := s.store.SAMLTenant(ctx, in.Directory)
	return directoryapi.SAMLTenant{Tenant: tenant}, err
}

// samlProvider returns the provider of a SAML directory, or apierr.NotSAML.
func (s *Service) samlProvider(ctx context.Context, tenant, directory id.ID) (store.AccountProvider, error) {
	p, err := s.store.AccountProvider(ctx, tenant, directory)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return p, err
	}
	if p.ProviderID != "saml" {
		return p, apierr.NotSAML.Because("the directory %q is not a SAML directory",
			s.base.To("directories", directory))
	}
	return p, nil
}

const (
	maxKeyPairs   = 1_000
	keyPairMaxAge = time.Minute
)

// samlKeyPair returns the key pair of a SAML directory, cached, as it never changes.
func (s *Service) samlKeyPair(ctx context.Context, sp store.SAMLServiceProvider) (saml.KeyPair, error) {
	return s.keyPairs.Get(ctx, sp.CertificateID, func(context.Context) (saml.KeyPair, error) {
		private, err := s.ring.Open(sp.PrivateKeySealed, samlKeyPurpose(sp.ID))
		if err != nil {
			return saml.KeyPair{}, err
		}
		return saml.ReadKeyPair(sp.Certificate, private)
	})
}

// BeginSAMLLogin returns the URL of the identity provider with a signed authentication request
// (SP-initiated login).
func (s *Service) BeginSAMLLogin(ctx context.Context,
	in directoryapi.BeginSAMLLogin) (out directoryapi.SAMLRedirect, err error) {
	p, err := s.samlProvider(ctx, in.Tenant, in.Directory)
	if err != nil {
		return out, err
	}
	if p.DirectoryStatus != directoryapi.Enabled {
		return out, apierr.DirectoryDisabled.Because("the directory is disabled")
	}
	pair, err := s.samlKeyPair(ctx, p.SAML)
	if err != nil {
		return out, err
	}
	out.Location, err = saml.LoginRequest{
		ID: in.RequestID, Issuer: SAMLEntityID(s.core.Alias(), p.DirectoryID), Destination: *p.Settings.SSOLoginURL,
		ConsumerURL: s.samlConsumerURL(p.DirectoryID), ForceAuthn: valueOf(p.Settings.ForceAuthn), Now: s.now(),
	}.Redirect(pair, *p.Settings.RequestSignatureAlgorithm, in.RelayState.Reveal())
	return out, err
}

// SAMLLogout returns the URL of the identity provider with a signed logout request (single logout,
// SLO), or an empty one where the identity provider has none.
func (s *Service) SAMLLogout(ctx context.Context,
	in directoryapi.SAMLLogout) (out directoryapi.SAMLRedirect, err error) {
	p, err := s.samlProvider(ctx, in.Tenant, in.Session.Directory)
	if err != nil {
		return out, err
	}
	if p.Settings.SSOLogoutURL == nil { // its metadata state none
		return out, nil
	}
	pair, err := s.samlKeyPair(ctx, p.SAML)
	if err != nil {
		return out, err
	}
	out.Location, err = saml.LogoutRequest{
		Issuer: SAMLEntityID(s.core.Alias(), p.DirectoryID), Destination: *p.Settings.SSOLogoutURL,
		NameID:       in.Session.NameID,
		NameIDFormat: in.Session.NameIDFormat, SessionIndex: in.Session.Index, Now: s.now(),
	}.Redirect(pair, *p.Settings.RequestSignatureAlgorithm, in.RelayState.Reveal())
	return out, err
}

// FinishSAMLLogin verifies a SAML response (pkg/saml/verifyresponse.go) and returns the account of its
// user, which it creates at the first login (just-in-time provisioning, account.go).
func (s *Service) FinishSAMLLogin(ctx context.Context,
	in directoryapi.FinishSAMLLogin) (out directoryapi.SAMLLogin, err error) {
	p, err := s.samlProvider(ctx, in.Tenant, in.Directory)
	if err != nil {
		return out, err
	}
	expected := saml.ServiceProvider{
		EntityID: SAMLEntityID(s.core.Alias(), p.DirectoryID), ConsumerURL: s.samlConsumerURL(p.DirectoryID),
		RequestID:    in.RequestID,
		Certificates: p.Settings.SigningCertificates(), AllowSHA1: *p.Settings.RequestSignatureAlgorithm == saml.SHA1,
		KeyPair:   func() (saml.KeyPair, error) { return s.samlKeyPair(ctx, p.SAML) },
		ClockSkew: defaultClockSkew * time.Second, Now: s.now(),
	}
	if skew := p.Settings.ClockSkew; skew != nil {
		expected.ClockSkew = time.Duration(*skew) * time.Second
	}
	if p.Settings.EntityID != nil {
		expected.Issuer = *p.Settings.EntityID
	}
	login, err := expected.VerifyResponse(in.Response.Reveal())
	if err != nil {
		return out, err
	}
	user := samlUser(p, login)
	user.Application = in.Application
	provided, err := s.samlAccount(ctx, p, user, login)
	return directoryapi.SAMLLogin{
		Account: provided.Account, IsNew: provided.IsNew, ResponseID: login.ResponseID,
		Session: directoryapi.SAMLSession{
			Directory: p.DirectoryID, NameID: login.NameID, NameIDFormat: login.NameIDFormat, Index: login.SessionIndex,
		},
	}, err
}

// samlAccount consumes an assertion and returns the account of its user. The assertion counts as
// used also where the account may not log in. Most logins change nothing of the account and take
// one round trip to the database.
func (s *Service) samlAccount(
	ctx context.Context, p store.AccountProvider, in directoryapi.ProviderUser, login saml.Login,
) (out directoryapi.ProviderAccountResult, err error) {
	claims, mapErr := mapClaims(p, in)
	var found *[]store.AccountOfUser
	if err := s.useAssertion(ctx, p.Provider, login, func(tx *store.Tx) {
		if mapErr == nil {
			found = tx.QueueAccountByExternalID(ctx, in.Tenant, in.Directory, claims.externalID, claims.providerData)
		}
	}); err != nil {
		return out, err
	}
	if mapErr != nil {
		return out, mapErr
	}
	if len(*found) == 0 || !s.isUnchanged((*found)[0], claims) {
		return s.accountOfClaims(ctx, p, in, claims)
	}
	user := (*found)[0]
	if err := checkUserLoginAllowed(user); err != nil {
		return out, err
	}
	out.Account, err = s.core.WithVerificationToken(user.Account)
	return out, err
}

// useAssertion prevents the replay of an assertion: an assertion that was used before is
// apierr.SAMLMalformed. Statements that queueMore queues are sent in the same round trip.
func (s *Service) useAssertion(ctx context.Context, p store.Provider, login saml.Login,
	queueMore func(*store.Tx)) error {
	digest := sha256.Sum256([]byte(login.AssertionID))
	var used *[]store.SAMLAssertion
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		used = tx.UseSAMLAssertion(ctx, p.TenantID, p.DirectoryID, store.SAMLAssertion{Digest: digest[:]},
			login.ExpiresAt)
		queueMore(tx)
		return nil
	})
	if err != nil {
		return err
	}
	if len(*used) == 0 {
		return apierr.SAMLMalformed.Because("the SAML response cannot be used: its assertion was used already")
	}
	return nil
}

// samlUser returns the profile of the user of an assertion. Attributes that no mapping rule reads
// are mapped by their well-known names; without an email attribute, the NameID is the email
// (docs/interface/directories.md#mapping-rules).
func samlUser(p store.AccountProvider, login saml.Login) directoryapi.ProviderUser {
	user := directoryapi.ProviderUser{Tenant: p.TenantID, Directory: p.DirectoryID, EmailVerified: true}
	if login.NameIDFormat == saml.PersistentNameID {
		user.ExternalID = persistentID + login.NameID
	}
	var unmapped []saml.Attribute
	for _, a := range login.Attributes {
		user.Attributes = append(user.Attributes,
			directoryapi.ProviderAttribute{Name: a.Name, NameFormat: a.NameFormat, Values: a.Values})
		if len(a.Values) > 0 && !slices.ContainsFunc(p.Rules, func(r mappingrule.Rule) bool { return isMapped(r, a) }) {
			unmapped = append(unmapped, a)
		}
	}
	user.Email = wellKnown(unmapped, "emailaddress", "email", "mail")
	user.GivenName = wellKnown(unmapped, "givenname", "firstname")
	user.Surname = wellKnown(unmapped, "surname", "lastname", "sn")
	if user.Email == "" && strings.Contains(login.NameID, "@") {
		user.Email = login.NameID
	}
	return user
}

// persistentID begins the external id of a user whom a persistent NameID names, which stays the same when
// the email changes (SAML 2.0 core, section 8.3.7). The external id of every other user is the email, which
// has no space.
const persistentID = "persistent "

// wellKnown returns the value of the first attribute with one of the names, in any case: first of those that
// are named so, or in a namespace (User.email, http://…/emailaddress), then of those whose name ends so.
func wellKnown(attributes []saml.Attribute, names ...string) string {
	for _, isNamed := range []func(attribute, name string) bool{
		func(attribute, name string) bool {
			return attribute[strings.LastIndexAny(attribute, "/.:#")+1:] == name
		}, strings.HasSuffix,
	} {
		for _, a := range attributes {
			if slices.ContainsFunc(names, func(name string) bool {
				return isNamed(field.Fold(a.Name), name) || isNamed(field.Fold(a.FriendlyName), name)
			}) {
				return a.Values[0]
			}
		}
	}
	return ""
}

// isMapped reports whether a rule reads an attribute.
func isMapped(rule mappingrule.Rule, a saml.Attribute) bool {
	return (rule.Name == nil || *rule.Name == a.Name) && (rule.NameFormat == nil || *rule.NameFormat == a.NameFormat)
}
