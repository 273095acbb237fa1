package events

import "github.com/doorward/doorward/pkg/id"

// AccountRegistered says that an account was created with the registration workflow.
// The directory's policies decide which mail goes out, if any.
type AccountRegistered struct {
	Tenant      id.ID  `json:"tenant"`
	Account     id.ID  `json:"account"`
	Directory   id.ID  `json:"directory"`
	Application id.ID  `json:"application,omitzero"` // through which it was created, if any
	Token       []byte `json:"token,omitempty"`      // sealed verification token; absent when none was made
}

// About names the account.
func (e AccountRegistered) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// AccountVerified says that the email of an account was proven.
type AccountVerified struct {
	Tenant    id.ID `json:"tenant"`
	Account   id.ID `json:"account"`
	Directory id.ID `json:"directory"`
}

// About names the account.
func (e AccountVerified) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// AccountDeleted says that the account is gone; what others hold of it goes too.
type AccountDeleted struct {
	Tenant  id.ID `json:"tenant"`
	Account id.ID `json:"account"`
}

// About names the account.
func (e AccountDeleted) About() (tenant, subject id.ID) { return e.Tenant, e.Account }

// DirectoryDeleted says that the directory, its groups and its accounts are gone.
type DirectoryDeleted struct {
	Tenant    id.ID `json:"tenant"`
	Directory id.ID `json:"directory"`
}

// About names the directory.
func (e DirectoryDeleted) About() (tenant, subject id.ID) { return e.Tenant, e.Directory }

// ApplicationDeleted says that the application is gone; its tokens and policies go too.
type ApplicationDeleted struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
}

// About names the application.
func (e ApplicationDeleted) About() (tenant, subject id.ID) { return e.Tenant, e.Application }
