package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/services/directory/store"
)

// mirror is what a mirror directory has besides what all directories have.
type mirror struct {
	provider store.Provider
	agent    *store.Agent
	rules    *mappingrule.Rules
	saml     *store.SAMLServiceProvider
}

// newMirror checks the provider of a new directory and makes what belongs to
// it, without storing it. It is nil for a cloud directory: one without provider,
// or with nothing but a link to one, as clients send that post what they read.
func (s *Service) newMirror(d directoryapi.Directory, in field.Of[NewProvider]) (*mirror, error) {
	if !in.Given() || (in.Value.Href.Present && !in.Value.ProviderID.Present) {
		return nil, nil
	}
	now := s.now()
	m := &mirror{provider: store.Provider{TenantID: d.TenantID, DirectoryID: d.ID, CreatedAt: now, ModifiedAt: now}}
	var refused field.Refusals
	var err error
	m.provider.ProviderID, m.provider.ProviderType, err = s.providerType(in.Value)
	if m.provider.ProviderID == "" {
		return nil, err
	}
	refused.Add(err)
	refused.Add(s.apply(&m.provider, in.Value, true))
	kind := typeOf(m.provider.ProviderID)
	switch {
	case m.provider.ProviderID == directoryapi.Native:
		return nil, refused.First()
	case kind.members["agent"] != 0:
		m.agent, err = s.newAgent(m.provider, in.Value.Agent)
	case kind.members["userInfoMappingRules"] != 0:
		m.rules, err = newMappingRules(m.provider, mappingrule.UserInfo, in.Value.UserInfoMappingRules.Value)
	default:
		m.rules, err = newMappingRules(m.provider, mappingrule.AttributeStatement, in.Value.AttributeStatementMappingRules.Value)
	}
	refused.Add(err)
	if err := refused.First(); err != nil || kind.members["ssoLoginUrl"] == 0 {
		return m, err
	}
	m.saml, err = s.newSAMLServiceProvider(m.provider)
	return m, err
}

func (m *mirror) insert(ctx context.Context, tx *store.Tx) error {
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
