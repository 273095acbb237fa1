package application_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
)

// What only an administrator may say of an account has no effect on an account
// that a browser registers.
func TestARegistrationCannotSetItsOwnStatus(t *testing.T) {
	d := newRegistrations(t)
	for name, where := range d.wheres {
		t.Run(name, func(t *testing.T) {
			got, err := d.service.Register(t.Context(), applicationapi.Register{Where: where, Account: directoryapi.NewAccount{
				Email: field.Some(name + "@example.test"), Password: field.Some("Changeme1!"),
				Status: field.Some(directoryapi.Disabled), EmailVerificationStatus: field.Some(directoryapi.Verified),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != directoryapi.Enabled || got.EmailVerificationStatus == directoryapi.Verified {
				t.Errorf("the account is %s and %s", got.Status, got.EmailVerificationStatus)
			}
		})
	}
}
