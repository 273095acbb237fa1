package application_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// What only an administrator may say of an account has no effect on an account
// that a browser registers, wherever it registers.
func TestARegistrationCannotSetItsOwnStatus(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, directory := newApplication(t, d, tenant), d.Directory(t, tenant, "Cloud")
	followLinks(t, d, tenant, shop, directory)
	anywhere := applicationapi.Where{Tenant: tenant, Application: shop}
	named := anywhere
	named.AccountStore = applicationtest.Base.Link("directories", directory)
	for name, where := range map[string]applicationapi.Where{"anywhere": anywhere, "named": named} {
		t.Run(name, func(t *testing.T) {
			got, err := d.Service.Register(t.Context(), applicationapi.Register{Where: where, Account: directoryapi.NewAccount{
				Email: field.Some(name + "@example.test"), Password: field.Some(applicationtest.Password),
				Status: field.Some(directoryapi.Disabled), EmailVerificationStatus: field.Some(directoryapi.Verified),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != directoryapi.Enabled || got.EmailVerificationStatus != directoryapi.Unverified {
				t.Errorf("the account is %s and %s", got.Status, got.EmailVerificationStatus)
			}
		})
	}
}
