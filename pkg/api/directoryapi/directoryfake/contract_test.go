package directoryfake_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/directoryapi/apitest"
	"github.com/doorward/doorward/pkg/api/directoryapi/directoryfake"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// What tests rely on is what the directory service does.
func TestContract(t *testing.T) {
	apitest.Run(t, func(*testing.T) apitest.Subject {
		d := directoryfake.New(func() time.Time { return time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC) })
		return apitest.Subject{
			API: d, DisableDirectory: d.Disable, EnableVerification: d.EnableVerification, DisableGroup: d.DisableGroup,
			MarkVerified: d.MarkVerified, Link: d.Link, DeleteAccount: func(t *testing.T, at directoryapi.Ref) { d.DeleteAccount(t, at) },
			Invite: func(_ *testing.T, tenant id.ID, email string) { d.Invite(tenant, email) },
			Mailed: func(_ *testing.T, email string) secure.Secret { return d.SignUpTokens()[email] },
			Mirror: func(t *testing.T, tenant id.ID) id.ID {
				at := id.New(time.Now())
				d.InsertDirectory(directoryapi.Directory{TenantID: tenant, ID: at, Name: "Google"})
				d.Mirror(t, directoryapi.Ref{Tenant: tenant, ID: at}, "google")
				return at
			},
		}
	})
}
