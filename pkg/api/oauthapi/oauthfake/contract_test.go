package oauthfake_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi/applicationfake"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/directoryapi/directoryfake"
	"github.com/doorward/doorward/pkg/api/oauthapi/apitest"
	"github.com/doorward/doorward/pkg/api/oauthapi/oauthfake"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/id"
)

// The fake does what the contract promises for hosted logins.
func TestContract(t *testing.T) {
	apitest.RunHosted(t, func(t *testing.T) apitest.Surroundings {
		clock := &clocktest.Clock{}
		directories := directoryfake.New(clock.Now)
		applications := applicationfake.New(directories, "https://doorward.test/v1", clock.Now)
		s := oauthfake.New(applications, clock.Now)
		newID := func() id.ID { clock.Tick(); return id.New(clock.Now()) }
		tenant := newID()
		const password = "Changeme1!"
		account := func(directory id.ID) id.ID {
			a := directoryapi.Account{
				TenantID: tenant, ID: newID(), DirectoryID: directory, Email: "jo@example.test", Status: directoryapi.Enabled,
			}
			directories.InsertAccount(a, password)
			return a.ID
		}
		directory := func() id.ID {
			d := directoryapi.Directory{TenantID: tenant, ID: newID()}
			directories.InsertDirectory(d)
			return d.ID
		}
		administrators, users := directory(), directory()
		applications.NewConsole(tenant, administrators)
		ref := func(v id.ID) directoryapi.Ref { return directoryapi.Ref{Tenant: tenant, ID: v} }
		return apitest.Surroundings{
			API: s, Tenant: tenant, Administrators: administrators, Administrator: account(administrators), EndUser: account(users),
			Application: applications.NewApplication(tenant, users), Login: "jo@example.test", Password: password,
			SetStatus: func(v id.ID, status string) {
				directories.Change(t, ref(v), func(a *directoryapi.Account) { a.Status = status })
			},
			Now: clock.Now, Wait: clock.Move,
		}
	})
}
