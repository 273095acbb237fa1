// Package directoryview has what the REST APIs of the directory service and of the application
// service have in common: the representations of accounts and groups, and the body that
// creates an account.
package directoryview

import (
	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
)

// AccountAttributes are the plain attributes of an account, without its links.
type AccountAttributes struct {
	rest.Head
	PasswordModifiedAt      *rest.Time `json:"passwordModifiedAt"`
	Username                string     `json:"username"`
	Email                   string     `json:"email"`
	GivenName               *string    `json:"givenName"`
	MiddleName              *string    `json:"middleName"`
	Surname                 *string    `json:"surname"`
	FullName                string     `json:"fullName"`
	Status                  string     `json:"status"`
	EmailVerificationStatus string     `json:"emailVerificationStatus"`
	Locale                  *string    `json:"locale"`
	AbsentSince             *rest.Time `json:"absentSince,omitempty"` // only of an absent account of a mirror
}

// Attributes renders the plain attributes of an account.
func Attributes(base href.Base, a directoryapi.Account) AccountAttributes {
	return AccountAttributes{
		Head:               rest.NewHead(base.To("accounts", a.ID), a.CreatedAt, a.ModifiedAt),
		PasswordModifiedAt: (*rest.Time)(a.PasswordModifiedAt),
		Username:           a.Username, Email: a.Email, GivenName: a.GivenName, MiddleName: a.MiddleName,
		Surname:  a.Surname,
		FullName: a.FullName(), Status: a.Status, EmailVerificationStatus: a.EmailVerificationStatus, Locale: a.Locale,
		AbsentSince: (*rest.Time)(a.AbsentSince),
	}
}

// AccountView is the representation of an account
// (docs/interface/accounts.md#fields).
type AccountView struct {
	AccountAttributes
	EmailVerificationToken *href.Link `json:"emailVerificationToken"`
	Directory              href.Link  `json:"directory"`
	Tenant                 href.Link  `json:"tenant"`
	CustomData             href.Link  `json:"customData"`
	ProviderData           href.Link  `json:"providerData"`
	Groups                 href.Link  `json:"groups"`
	GroupMemberships       href.Link  `json:"groupMemberships"`
	Applications           href.Link  `json:"applications"`
	APIKeys                href.Link  `json:"apiKeys"`
	AccessTokens           href.Link  `json:"accessTokens"`
	RefreshTokens          href.Link  `json:"refreshTokens"`
	LinkedAccounts         href.Link  `json:"linkedAccounts"`
	AccountLinks           href.Link  `json:"accountLinks"`
	Phones                 href.Link  `json:"phones"`
	Factors                href.Link  `json:"factors"`
}

// Views renders accounts and groups; the views of both services embed it.
type Views struct {
	Base  href.Base
	Alias alias.Alias
}

// ProviderID returns a providerId as clients of this deployment know it: that of cloud
// directories is the alias of the deployment, if it has one (docs/interface/conventions.md#the-alias).
func (v Views) ProviderID(providerID string) string {
	if providerID == directoryapi.Native && v.Alias != alias.Neutral {
		return string(v.Alias)
	}
	return providerID
}

// Account renders an account.
func (v Views) Account(a directoryapi.Account) AccountView {
	self := v.Base.To("accounts", a.ID)
	link := func(below string) href.Link { return href.Link{Href: self + "/" + below} }
	view := AccountView{
		AccountAttributes: Attributes(v.Base, a),
		Directory:         v.Base.Link("directories", a.DirectoryID), Tenant: v.Base.Link("tenants", a.TenantID),
		CustomData: link("customData"), ProviderData: link("providerData"), Groups: link("groups"),
		GroupMemberships: link("groupMemberships"), Applications: link("applications"), APIKeys: link("apiKeys"),
		AccessTokens: link("accessTokens"), RefreshTokens: link("refreshTokens"),
		LinkedAccounts: link("linkedAccounts"),
		AccountLinks:   link("accountLinks"), Phones: link("phones"), Factors: link("factors"),
	}
	if a.VerificationToken != "" {
		view.EmailVerificationToken = &href.Link{Href: v.Base.Path("accounts", "emailVerificationTokens",
			a.VerificationToken.Reveal())}
	}
	return view
}

// GroupView is the representation of a group.
type GroupView struct {
	rest.Head
	Name                 string    `json:"name"`
	Description          *string   `json:"description"`
	Status               string    `json:"status"`
	CustomData           href.Link `json:"customData"`
	Directory            href.Link `json:"directory"`
	Tenant               href.Link `json:"tenant"`
	Accounts             href.Link `json:"accounts"`
	AccountMemberships   href.Link `json:"accountMemberships"`
	Applications         href.Link `json:"applications"`
	AccountStoreMappings href.Link `json:"accountStoreMappings"`
}

// Group renders a group.
func (v Views) Group(g directoryapi.Group) GroupView {
	link := func(below string) href.Link { return v.Base.Link(directoryapi.Groups, g.ID, below) }
	return GroupView{
		Head: rest.NewHead(v.Base.To(directoryapi.Groups, g.ID), g.CreatedAt, g.ModifiedAt),
		Name: g.Name, Description: g.Description, Status: g.Status,
		CustomData: link("customData"), Directory: v.Base.Link(directoryapi.Directories, g.DirectoryID),
		Tenant: v.Base.Link("tenants", g.TenantID), Accounts: link("accounts"),
		AccountMemberships: link("accountMemberships"),
		Applications:       link("applications"), AccountStoreMappings: link("accountStoreMappings"),
	}
}
