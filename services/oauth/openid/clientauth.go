package openid

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// errClient refuses a client without telling which check has failed.
var errClient = refuse("invalid_client",
	"the client is not accepted: its client_id, its authentication or the method of it is wrong, "+
		"or it is disabled")

// authenticateClient authenticates the client of a call by the method that it is registered with, and by no other.
// It is a client of the application.
func (s *Service) authenticateClient(ctx context.Context, i issuer, in Call) (store.OpenIDClient, error) {
	given, clientID, err := s.givenMethod(in)
	if err != nil {
		return store.OpenIDClient{}, err
	}
	client, err := s.findClient(ctx, i, clientID)
	if err != nil {
		return client, err
	}
	if given != client.Settings.TokenEndpointAuthMethod {
		return client, errClient
	}
	switch given {
	case relyingparty.AuthKey:
		err = s.checkAssertion(ctx, i, client, in.Form["client_assertion"])
	case relyingparty.AuthBasic, relyingparty.AuthPost:
		secret := in.Form["client_secret"]
		if given == relyingparty.AuthBasic {
			secret = in.Basic.Secret
		}
		var ok bool
		if ok, err = s.CheckSecret(ctx, client, secret); err == nil && !ok {
			err = errClient
		}
	}
	if err == nil && given != relyingparty.AuthNone {
		in.authenticated(id.Ref{Tenant: client.TenantID, ID: client.ID})
	}
	return client, err
}

// findClient returns an enabled client of an application that conforms to its profile, or errClient.
func (s *Service) findClient(ctx context.Context, i issuer, clientID string) (store.OpenIDClient, error) {
	if relyingparty.IsDocument(clientID) && i.provider.Settings.ClientIDMetadataDocuments {
		return s.documentClient(ctx, i, clientID)
	}
	v, err := id.Parse(clientID)
	if err != nil || v.IsZero() {
		return store.OpenIDClient{}, errClient
	}
	client, err := s.Store.CachedOpenIDClient(ctx, id.Ref{Tenant: i.app.TenantID, ID: v})
	if errors.Is(err, apierr.NotFound) || err == nil && (!i.accepts(client) || relyingparty.HasEnded(client, s.Now())) {
		return store.OpenIDClient{}, errClient
	}
	return client, err
}

// accepts reports whether a stored client may act at the provider as it is now.
func (i issuer) accepts(client store.OpenIDClient) bool {
	return client.ApplicationID == i.app.ID && client.Status == directoryapi.Enabled &&
		(!i.isFAPI() || relyingparty.CheckFAPI(client.Settings) == nil) &&
		(!relyingparty.IsDocument(client.ClientID) || i.provider.Settings.ClientIDMetadataDocuments)
}

// documentClient returns the client of a client ID metadata document, unless it was disabled here, or errClient with
// the reason.
func (s *Service) documentClient(ctx context.Context, i issuer, address string) (store.OpenIDClient, error) {
	client, err := s.DocumentClient(ctx, i.ref(), address)
	if apierr.IsRefusal(err) {
		return client, refuse("invalid_client", "%s", apierr.From(err).Reason)
	}
	if err != nil {
		return client, err
	}
	stored, err := s.Store.CachedOpenIDClient(ctx, id.Ref{Tenant: client.TenantID, ID: client.ID})
	if errors.Is(err, apierr.NotFound) {
		return client, nil
	}
	if err == nil && !i.accepts(stored) {
		err = errClient
	}
	return client, err
}

// givenMethod returns by which method a call authenticates its client, and the client_id. More than one is
// invalid_request (RFC 6749, section 2.3).
func (s *Service) givenMethod(in Call) (method, clientID string, err error) {
	clientID = in.Form.text("client_id")
	methods := []string{}
	if in.Basic != nil {
		methods = append(methods, relyingparty.AuthBasic)
		if clientID != "" && clientID != in.Basic.ID {
			return "", "", refuse("invalid_request", "client_id differs from that of the header Authorization")
		}
		clientID = in.Basic.ID
	}
	if in.Form["client_secret"] != "" {
		methods = append(methods, relyingparty.AuthPost)
	}
	if in.Form["client_assertion"] != "" || in.Form["client_assertion_type"] != "" {
		methods = append(methods, relyingparty.AuthKey)
		if in.Form.text("client_assertion_type") != assertionType {
			return "", "", refuse("invalid_client", "client_assertion_type must be %s", assertionType)
		}
		claims, err := secure.UnverifiedClaims(in.Form["client_assertion"])
		subject, _ := claims["sub"].(string)
		if err != nil || subject == "" || clientID != "" && clientID != subject {
			return "", "", errClient
		}
		clientID = subject
	}
	switch len(methods) {
	case 0:
		return relyingparty.AuthNone, clientID, nil
	case 1:
		return methods[0], clientID, nil
	}
	return "", "", refuse("invalid_request", "the client authenticates in more than one way")
}

// checkAssertion verifies a client assertion (RFC 7523, section 3): signed by a key of the client, issued by and for
// it, for this issuer or its token endpoint as one string, and used once.
func (s *Service) checkAssertion(ctx context.Context, i issuer, client store.OpenIDClient, text secure.Secret) error {
	claims, err := s.verifyByClient(ctx, i, client, text, client.Settings.TokenEndpointAuthSigningAlg)
	if err != nil {
		return err
	}
	if i.isFAPI() && claims["aud"] != i.url { // FAPI 2.0 Security Profile, section 5.3.2.1
		return errClient
	}
	jti, expires, ok := relyingparty.CheckAssertion(claims, client.ClientID, i.url, s.Now())
	if !ok {
		return refuse("invalid_client", "the client assertion needs iss and sub of the client, aud of the issuer as one "+
			"string, exp at most %s ahead, and jti; its times must not be in the future", relyingparty.MaxAssertionAge)
	}
	return s.useOnce(ctx, client.TenantID, "client assertion "+client.ClientID+" "+jti, expires, errClient)
}

// useOnce records that something with a name was used, until it expires. A name that was used before is again.
func (s *Service) useOnce(ctx context.Context, tenant id.ID, name string, expires time.Time, again error) error {
	err := s.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ConsumeAssertion(ctx, tenant, name, expires) })
	if errors.Is(err, apierr.Exists) {
		return again
	}
	return err
}

// verifyByClient verifies the signature of a JWT of a client.
func (s *Service) verifyByClient(ctx context.Context, i issuer, client store.OpenIDClient, text secure.Secret,
	registered *string) (secure.Claims, error) {
	claims, err := s.VerifySigned(ctx, client, text, registered, i.algorithms())
	if errors.Is(err, relyingparty.ErrSignature) {
		err = errClient
	}
	return claims, err
}
