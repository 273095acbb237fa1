package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type providerView struct {
	rest.Head
	ProviderID   string `json:"providerId"`
	ProviderType string `json:"providerType"`
	store.ProviderSettings
	CertificateStatus              string     `json:"certificateStatus,omitempty"`
	ClientSecret                   string     `json:"clientSecret,omitempty"`
	Agent                          *href.Link `json:"agent,omitempty"`
	UserInfoMappingRules           *href.Link `json:"userInfoMappingRules,omitempty"`
	AttributeStatementMappingRules *href.Link `json:"attributeStatementMappingRules,omitempty"`
	ServiceProviderMetadata        *href.Link `json:"serviceProviderMetadata,omitempty"`
}

func (v views) provider(p store.Provider) providerView {
	view := providerView{
		Head:       rest.NewHead(v.Base.To("directories", p.DirectoryID, "provider"), p.CreatedAt, p.ModifiedAt),
		ProviderID: v.ProviderID(p.ProviderID), ProviderType: v.ProviderID(p.ProviderType),
		ProviderSettings: p.Settings, CertificateStatus: p.CertificateStatus, ClientSecret: p.ClientSecret.Reveal(),
		Agent: v.Base.OptionalLink("agents", p.AgentID),
		ServiceProviderMetadata: v.Base.OptionalLink("samlServiceProviderMetadatas",
			p.MetadataID),
	}
	rules := v.Base.OptionalLink(string(p.MappingRulesKind), p.MappingRulesID)
	if p.MappingRulesKind == mappingrule.UserInfo {
		view.UserInfoMappingRules = rules
		return view
	}
	view.AttributeStatementMappingRules = rules
	return view
}
