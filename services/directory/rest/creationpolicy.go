package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type creationPolicyView struct {
	rest.Head
	VerificationEmailStatus           string    `json:"verificationEmailStatus"`
	VerificationSuccessEmailStatus    string    `json:"verificationSuccessEmailStatus"`
	WelcomeEmailStatus                string    `json:"welcomeEmailStatus"`
	EmailDomainWhitelist              []string  `json:"emailDomainWhitelist"`
	EmailDomainBlacklist              []string  `json:"emailDomainBlacklist"`
	RegistrationCustomData            []string  `json:"registrationCustomData"`
	VerificationEmailTemplates        href.Link `json:"verificationEmailTemplates"`
	VerificationSuccessEmailTemplates href.Link `json:"verificationSuccessEmailTemplates"`
	WelcomeEmailTemplates             href.Link `json:"welcomeEmailTemplates"`
	ExistingAccountEmailTemplates     href.Link `json:"existingAccountEmailTemplates"`
	Directory                         href.Link `json:"directory"`
	Tenant                            href.Link `json:"tenant"`
}

func (v views) creationPolicy(p store.CreationPolicy) creationPolicyView {
	link := func(below string) href.Link { return v.Base.Link("accountCreationPolicies", p.DirectoryID, below) }
	return creationPolicyView{
		Head: rest.NewHead(v.Base.To("accountCreationPolicies", p.DirectoryID), p.CreatedAt,
			p.ModifiedAt),
		VerificationEmailStatus:        p.VerificationEmailStatus,
		VerificationSuccessEmailStatus: p.VerificationSuccessEmailStatus,
		WelcomeEmailStatus:             p.WelcomeEmailStatus, EmailDomainWhitelist: p.EmailDomainWhitelist,
		EmailDomainBlacklist:              p.EmailDomainBlacklist,
		RegistrationCustomData:            p.RegistrationCustomData,
		VerificationEmailTemplates:        link("verificationEmailTemplates"),
		VerificationSuccessEmailTemplates: link("verificationSuccessEmailTemplates"),
		WelcomeEmailTemplates:             link("welcomeEmailTemplates"),
		ExistingAccountEmailTemplates:     link("existingAccountEmailTemplates"),
		Directory:                         v.Base.Link("directories", p.DirectoryID),
		Tenant:                            v.Base.Link("tenants", p.TenantID),
	}
}
