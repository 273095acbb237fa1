// Package idsitetest has the fakes (test doubles) of the services that idsite calls, as one
// deployment.
package idsitetest

import (
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi/applicationfake"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/directoryapi/directoryfake"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/mfaapi/mfafake"
	"github.com/doorward/doorward/pkg/api/oauthapi/oauthfake"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
)

// Base is the address of the management API.
const Base href.Base = "https://localhost:8443/v1"

// Password is the password of the accounts that Shop adds.
const Password secure.Secret = "Changeme1!"

// Deployment are the fakes of the services, which share their data.
type Deployment struct {
	Directories  *directoryfake.Service
	Applications *applicationfake.Service
	OAuth        *oauthfake.Service
	MFA          *mfafake.Service
	DNS          *DNS
	now          func() time.Time
}

// New returns an empty deployment.
func New(now func() time.Time) *Deployment {
	d := &Deployment{Directories: directoryfake.New(now), DNS: &DNS{}, now: now}
	d.Applications = applicationfake.New(d.Directories, Base, now)
	d.OAuth, d.MFA = oauthfake.New(d.Applications, now), mfafake.New(d.Directories, Base, now)
	return d
}

// Peers returns the services.
func (d *Deployment) Peers() idsite.Peers {
	return idsite.Peers{Directory: d.Directories, Application: d.Applications, OAuth: d.OAuth, MFA: d.MFA}
}

// FailSignUp makes the calls that create a tenant fail after they had their effect. fail gets the
// number of the call, from 1.
func (d *Deployment) FailSignUp(fail func(call int) error) {
	var calls atomic.Int32
	cause := func() error { return fail(int(calls.Add(1))) }
	d.Directories.Break("SignUp", fault.After, cause)
	d.Applications.Break("SignUp", fault.After, cause)
	d.OAuth.Break("EnsureKey", fault.After, cause)
}

// Shop adds an application of a tenant. Its only account store is a directory with one enabled
// account, whose password is Password.
func (d *Deployment) Shop(tenant id.ID, email string) (application id.ID, user directoryapi.Account) {
	directory := directoryapi.Directory{TenantID: tenant, ID: id.New(d.now()), Name: "Customers"}
	d.Directories.InsertDirectory(directory)
	application = d.Applications.NewApplication(tenant)
	d.Applications.FollowLinks(id.Ref{Tenant: tenant, ID: application}, directory.ID)
	user = directoryapi.Account{
		TenantID: tenant, ID: id.New(d.now()), DirectoryID: directory.ID, Email: email, Username: email,
		Status: directoryapi.Enabled, EmailVerificationStatus: directoryapi.Unverified,
	}
	d.Directories.InsertAccount(user, Password)
	return application, user
}
