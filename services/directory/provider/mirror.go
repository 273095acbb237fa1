package provider

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/services/directory/agentconfig"
	"github.com/doorward/doorward/services/directory/store"
)

// mirrorResources are the resources that belong to a mirror directory, besides those that belong
// to every directory.
type mirrorResources struct {
	provider store.Provider
	agent    *store.Agent
	rules    *mappingrule.Rules
	saml     *store.SAMLServiceProvider
}

// newMirrorResources validates the provider of a new directory and makes the resources that belong
// to it, without storing them. It returns nil for a cloud directory: one without a provider, or
// with only a link to one, as clients send it that post what they have read.
func (s *Service) newMirrorResources(d directoryapi.Directory,
	in field.Nullable[NewProvider]) (*mirrorResources, error) {
	if !in.Given() || (in.Value.Href.Present && !in.Value.ProviderID.Present) {
		return nil, nil
	}
	now := s.now()
	m := &mirrorResources{provider: store.Provider{
		TenantID: d.TenantID, DirectoryID: d.ID, CreatedAt: now, ModifiedAt: now,
	}}
	var errs field.Errors
	var err error
	m.provider.ProviderID, m.provider.ProviderType, err = s.readProviderType(in.Value)
	if m.provider.ProviderID == "" {
		return nil, err
	}
	errs.Add(err)
	errs.Add(s.applyProvider(&m.provider, in.Value, true))
	kind := typeOf(m.provider.ProviderID)
	switch {
	case m.provider.ProviderID == directoryapi.Native:
		return nil, errs.First()
	case kind.members["agent"] != 0:
		m.agent, err = agentconfig.New(s.ring, m.provider, in.Value.Agent)
	case kind.members["userInfoMappingRules"] != 0:
		m.rules, err = newMappingRules(m.provider, mappingrule.UserInfo, in.Value.UserInfoMappingRules.Value)
	default:
		m.rules, err = newMappingRules(m.provider, mappingrule.AttributeStatement,
			in.Value.AttributeStatementMappingRules.Value)
	}
	errs.Add(err)
	if err := errs.First(); err != nil || kind.members["ssoLoginUrl"] == 0 {
		return m, err
	}
	m.saml, err = s.newSAMLServiceProvider(m.provider)
	return m, err
}

// insert stores the resources of a new mirror directory.
func (m *mirrorResources) insert(ctx context.Context, tx *store.Tx) error {
	if err := tx.InsertProvider(ctx, m.provider); err != nil {
		return err
	}
	if m.agent != nil {
		if err := tx.InsertAgent(ctx, *m.agent); err != nil {
			return err
		}
	}
	if m.rules != nil {
		if err := tx.InsertMappingRules(ctx, m.provider.DirectoryID, *m.rules); err != nil {
			return err
		}
	}
	if m.saml != nil {
		return tx.InsertSAMLServiceProvider(ctx, *m.saml)
	}
	return nil
}
