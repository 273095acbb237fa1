package saml

import (
	"context"
	"errors"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// Limits of a registered SAML service provider, in characters. That of the
// entity id is SAML's own (SAML 2.0 core, section 8.3.6); the interface names
// none for the others.
const (
	maxServiceProviderName        = 255
	maxServiceProviderDescription = 1000
	maxConsumerURL                = 2000
	maxEntityID                   = 1024
	maxCertificate                = 20_000
)

// NewServiceProvider is the body that creates or updates a registered SAML service provider
// (docs/interface/applications.md#saml-identity-provider). ConsumerURLAlias is the
// assertionConsumerServiceUrl of clients that write URL in capital letters.
type NewServiceProvider struct {
	Name                        field.Text `json:"name"`
	Description                 field.Text `json:"description"`
	AssertionConsumerServiceURL field.Text `json:"assertionConsumerServiceUrl"`
	ConsumerURLAlias            field.Text `json:"assertionConsumerServiceURL"`
	EntityID                    field.Text `json:"entityId"`
	NameIDFormat                field.Text `json:"nameIdFormat"`
	EncodedX509Certificate      field.Text `json:"encodedX509Certificate"`
	RequestsMustBeSigned        field.Bool `json:"requestsMustBeSigned"`
}

// SAMLServiceProvider returns a registered service provider, or apierr.NotFound.
func (s *Service) SAMLServiceProvider(ctx context.Context, at id.Ref) (store.SAMLServiceProvider, error) {
	return s.store.SAMLServiceProvider(ctx, at.Tenant, at.ID)
}

// ListSAMLServiceProviders returns a page of the registered service providers of a tenant. Any
// tenant but the caller's own is apierr.NotFound.
func (s *Service) ListSAMLServiceProviders(
	ctx context.Context, tenant id.Ref, query list.Query,
) (list.Page[store.SAMLServiceProvider], error) {
	return list.PageOf(ctx, s.directories.Tenant, s.store.ListSAMLServiceProviders, tenant, query)
}

// CreateSAMLServiceProvider creates a registered service provider from a client's body. An
// entity id that the tenant has already is apierr.SAMLEntityTaken.
func (s *Service) CreateSAMLServiceProvider(
	ctx context.Context, tenant id.ID, in NewServiceProvider,
) (store.SAMLServiceProvider, error) {
	now := s.now()
	p := store.SAMLServiceProvider{TenantID: tenant, ID: id.New(now), NameIDFormat: store.EmailNameID, CreatedAt: now,
		ModifiedAt: now}
	if err := applyServiceProvider(&p, in, true); err != nil {
		return p, err
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertSAMLServiceProvider(ctx, p) })
	return p, explainEntityTaken(p, err)
}

// UpdateSAMLServiceProvider changes the members that the body names.
func (s *Service) UpdateSAMLServiceProvider(
	ctx context.Context, at id.Ref, in NewServiceProvider,
) (store.SAMLServiceProvider, error) {
	var p store.SAMLServiceProvider
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if p, err = tx.LockSAMLServiceProvider(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		if err := applyServiceProvider(&p, in, false); err != nil {
			return err
		}
		p.ModifiedAt = s.now()
		return tx.UpdateSAMLServiceProvider(ctx, p)
	})
	return p, explainEntityTaken(p, err)
}

// DeleteSAMLServiceProvider deletes a registered service provider with its registrations.
func (s *Service) DeleteSAMLServiceProvider(ctx context.Context, at id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteSAMLServiceProvider(ctx, at) })
}

// explainEntityTaken makes apierr.Exists the error of an entity id that is registered already.
func explainEntityTaken(p store.SAMLServiceProvider, err error) error {
	if !errors.Is(err, apierr.Exists) {
		return err
	}
	return apierr.SAMLEntityTaken.Because("a service provider with the entityId %q is registered", p.EntityID)
}

// applyServiceProvider checks the members of a body and writes them into a service provider:
// first the members that are required, then values, then formats.
func applyServiceProvider(p *store.SAMLServiceProvider, in NewServiceProvider, isNew bool) (err error) {
	var errs field.Errors
	const consumerURL = "assertionConsumerServiceUrl"
	consumer := in.AssertionConsumerServiceURL
	if !consumer.Present {
		consumer = in.ConsumerURLAlias
	}
	unchecked := p.AssertionConsumerServiceURL
	errs.Required(&p.AssertionConsumerServiceURL, consumer, consumerURL, maxConsumerURL, isNew)
	errs.Required(&p.EntityID, in.EntityID, "entityId", maxEntityID, isNew)
	errs.SetOptional(&p.Name, in.Name, func(in field.Text) (*string, error) {
		return field.Nonempty(in, "name", maxServiceProviderName)
	})
	errs.Optional(&p.Description, in.Description, "description", maxServiceProviderDescription)
	if in.NameIDFormat.Present {
		p.NameIDFormat, err = nameIDFormat(in.NameIDFormat)
		errs.Add(err)
	}
	if isNew || p.AssertionConsumerServiceURL != unchecked {
		_, err = field.URL("https", "http")(consumerURL, p.AssertionConsumerServiceURL)
		errs.Add(err)
	}
	errs.SetOptional(&p.EncodedX509Certificate, in.EncodedX509Certificate, certificate)
	if in.RequestsMustBeSigned.Present {
		p.RequestsMustBeSigned = nil
		if in.RequestsMustBeSigned.Given() {
			p.RequestsMustBeSigned = &in.RequestsMustBeSigned.Value
		}
	}
	return errs.First()
}

// nameIDFormat parses the name of a NameID format, or its URN, whose last part is the name. null
// and an unknown name are apierr.Invalid.
func nameIDFormat(in field.Text) (string, error) {
	named := in.Or("")
	switch strings.ToUpper(strings.TrimSpace(named[strings.LastIndexByte(named, ':')+1:])) {
	case "EMAIL", "EMAILADDRESS":
		return store.EmailNameID, nil
	case "PERSISTENT":
		return store.PersistentNameID, nil
	case "TRANSIENT":
		return store.TransientNameID, nil
	}
	return "", apierr.Invalid.Because(
		"nameIdFormat must be %s, %s or %s", store.EmailNameID, store.PersistentNameID, store.TransientNameID,
	)
}

// certificate checks a certificate in PEM; nil for null.
func certificate(in field.Text) (*string, error) {
	text, err := field.Optional(in, "encodedX509Certificate", maxCertificate)
	if err != nil || text == nil {
		return text, err
	}
	_, err = field.Certificate("encodedX509Certificate", *text)
	return text, err
}
