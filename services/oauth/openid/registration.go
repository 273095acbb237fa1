package openid

import (
	"context"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// Registration is a call of a registration endpoint.
type Registration struct {
	Application id.ID
	Client      id.ID         // zero: of a new client
	Token       secure.Secret // of the header Authorization
	Body        []byte
}

// registrar returns the provider of a registration endpoint; one at which no client registers itself is
// apierr.NotFound.
func (s *Service) registrar(ctx context.Context, application id.ID) (issuer, error) {
	i, err := s.issuer(ctx, application)
	if err == nil && i.provider.Settings.ClientRegistration == relyingparty.RegistrationNone {
		err = apierr.NotFound
	}
	return i, err
}

// metadata is what the client of a registration is answered.
func (i issuer) metadata(c relyingparty.Registered, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	return c.Metadata(i.url + "/register/" + c.ID.String())
}

// RegisterClient registers a client that brings itself along (RFC 7591, section 3).
func (s *Service) RegisterClient(ctx context.Context, in Registration) (map[string]any, error) {
	i, err := s.registrar(ctx, in.Application)
	if err != nil {
		return nil, err
	}
	var initial *secure.Secret
	if i.provider.Settings.ClientRegistration == relyingparty.RegistrationToken {
		initial = &in.Token
	}
	c, err := s.Register(ctx, i.ref(), initial, in.Body)
	return i.metadata(c, err)
}

// RegisteredClient returns the metadata of a client that has registered itself (RFC 7592, section 2.1).
func (s *Service) RegisteredClient(ctx context.Context, in Registration) (map[string]any, error) {
	i, err := s.registrar(ctx, in.Application)
	if err != nil {
		return nil, err
	}
	c, err := s.Registration(ctx, i.ref(), in.Client, in.Token)
	return i.metadata(c, err)
}

// UpdateRegisteredClient replaces the metadata of a client that has registered itself (RFC 7592, section 2.2).
func (s *Service) UpdateRegisteredClient(ctx context.Context, in Registration) (map[string]any, error) {
	i, err := s.registrar(ctx, in.Application)
	if err != nil {
		return nil, err
	}
	c, err := s.UpdateRegistration(ctx, i.ref(), in.Client, in.Token, in.Body)
	return i.metadata(c, err)
}

// DeleteRegisteredClient deletes a client that has registered itself (RFC 7592, section 2.3).
func (s *Service) DeleteRegisteredClient(ctx context.Context, in Registration) error {
	i, err := s.registrar(ctx, in.Application)
	if err != nil {
		return err
	}
	return s.DeleteRegistration(ctx, i.ref(), in.Client, in.Token)
}
