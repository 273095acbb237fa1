package openid

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	// PushedRequestAge is how long an authorization request may begin with a request_uri.
	PushedRequestAge = time.Minute
	// maxLogin is how long the login of a pushed request may take.
	maxLogin = time.Hour

	requestURIPrefix = "urn:ietf:params:oauth:request_uri:"
)

var errPushed = refuse("invalid_request_uri", "the request_uri is unknown, used or expired, or of another client")

// PushedRequest is the answer to a pushed authorization request (RFC 9126, section 2.2).
type PushedRequest struct {
	RequestURI string `json:"request_uri"`
	ExpiresIn  int64  `json:"expires_in"`
}

// Push stores an authorization request of a client, which it has authenticated, after the checks of Authorization.
func (s *Service) Push(ctx context.Context, in Call) (out PushedRequest, err error) {
	defer func() { s.Count(ctx, "openid pushed_authorization_request", err) }()
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return PushedRequest{}, err
	}
	client, err := s.authenticateClient(ctx, i, in)
	if err != nil {
		return PushedRequest{}, err
	}
	r := authorizationRequest{issuer: i, parameters: parameters{}, client: client, pushed: []byte{}}
	if r.jkt, err = s.checkProof(ctx, i, in, ""); err != nil {
		return PushedRequest{}, err
	}
	for _, name := range authorizationParameters {
		if value := in.Form.text(name); value != "" {
			r.parameters[name] = value
		}
	}
	r.parameters["client_id"] = client.ClientID
	if r.parameters["request_uri"] != "" {
		return PushedRequest{}, refuse("invalid_request", "a pushed request has no request_uri")
	}
	if err := checkGrantType(client, relyingparty.GrantCode); err != nil {
		return PushedRequest{}, err
	}
	if err := s.checkPushed(ctx, &r); err != nil {
		return PushedRequest{}, err
	}
	now, text := s.Now(), secure.Token(relyingparty.SecretLength)
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		tx.InsertPushedRequest(store.PushedRequest{
			TenantID: client.TenantID, Digest: secure.Digest(text), ClientID: client.ID,
			Request:   store.PushedParameters{Parameters: r.parameters, Signed: r.signed, JKT: r.jkt},
			CreatedAt: now, ExpiresAt: now.Add(maxLogin),
		})
		return nil
	})
	return PushedRequest{requestURIPrefix + text.Reveal(), int64(PushedRequestAge / time.Second)}, err
}

// checkPushed checks a request that is pushed, and replaces its parameters by those of its request object.
func (s *Service) checkPushed(ctx context.Context, r *authorizationRequest) error {
	if err := r.check(); err != nil {
		return err
	}
	if err := s.resolve(ctx, r); err != nil {
		return err
	}
	out, err := r.addressed()
	if err != nil {
		return err
	}
	return s.checkAuthorization(ctx, *r, &out)
}

// readPushed replaces the parameters of a request by those that its client has pushed.
func (s *Service) readPushed(ctx context.Context, r *authorizationRequest) error {
	text, ours := strings.CutPrefix(r.parameters["request_uri"], requestURIPrefix)
	if !ours {
		return refuse("request_uri_not_supported", "request_uri must be one that was pushed (RFC 9126)")
	}
	pushed, err := s.Store.PushedRequest(ctx, r.app.TenantID, secure.Digest(secure.Secret(text)))
	switch {
	case errors.Is(err, apierr.NotFound):
		return errPushed
	case err != nil:
		return err
	case pushed.ClientID != r.client.ID || !s.Now().Before(pushed.CreatedAt.Add(PushedRequestAge)):
		return errPushed
	}
	r.parameters, r.signed, r.jkt, r.repeated = pushed.Request.Parameters, pushed.Request.Signed, pushed.Request.JKT, nil
	r.pushed = pushed.Digest
	return nil
}

// usedAs returns errPushed for a pushed request that was used.
func usedAs(err error) error {
	if errors.Is(err, apierr.NotFound) {
		return errPushed
	}
	return err
}
