package mfafake_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/directoryapi/directoryfake"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/mfaapi/apitest"
	"github.com/doorward/doorward/pkg/api/mfaapi/mfafake"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
)

// What tests rely on is what the mfa service does.
func TestContract(t *testing.T) {
	apitest.Run(t, func(*testing.T) apitest.Subject {
		clock := &clocktest.Clock{}
		directories := directoryfake.New(clock.Now)
		s := mfafake.New(directories, "https://doorward.test/v1", clock.Now)
		ref := func(tenant, account id.ID) directoryapi.Ref { return directoryapi.Ref{Tenant: tenant, ID: account} }
		return apitest.Subject{
			API: s,
			Account: func(*testing.T) (tenant, account id.ID) {
				a := directoryapi.Account{TenantID: id.New(clock.Now()), ID: id.New(clock.Now()), Status: directoryapi.Enabled}
				directories.InsertAccount(a, "")
				return a.TenantID, a.ID
			},
			Phone: func(_ *testing.T, tenant, account id.ID, number string) {
				s.Enroll(ref(tenant, account), mfaapi.SMS, "xxx-xxx-"+number[len(number)-4:])
			},
			Authenticator: func(_ *testing.T, tenant, account id.ID, issuer string) func() string {
				s.Enroll(ref(tenant, account), mfaapi.Authenticator, issuer)
				return func() string { return s.Show(ref(tenant, account)) }
			},
			Sent:      func(_ *testing.T, tenant, account id.ID) string { return s.Sent(ref(tenant, account)) },
			Challenge: func(_ *testing.T, tenant, account id.ID) href.Link { return s.Challenge(ref(tenant, account)) },
			Advance:   clock.Move,
		}
	})
}
