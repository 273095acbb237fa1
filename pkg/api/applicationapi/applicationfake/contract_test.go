package applicationfake_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/applicationapi/apitest"
	"github.com/doorward/doorward/pkg/api/applicationapi/applicationfake"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/directoryapi/directoryfake"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
)

// The fake does what the contract promises.
func TestContract(t *testing.T) {
	const base href.Base = "https://doorward.test/v1"
	apitest.Run(t, func(*testing.T) apitest.Subject {
		directories := directoryfake.New(time.Now)
		s := applicationfake.New(directories, base, time.Now)
		ref := func(tenant, v id.ID) directoryapi.Ref { return directoryapi.Ref{Tenant: tenant, ID: v} }
		return apitest.Subject{
			API: s, Directories: directories, Base: base,
			NewApplication:   func(_ *testing.T, tenant id.ID) id.ID { return s.NewApplication(tenant) },
			Map:              func(_ *testing.T, tenant, to, directory id.ID) { s.AddStore(ref(tenant, to), directory) },
			Disable:          func(_ *testing.T, at directoryapi.Ref) { s.SetStatus(at, directoryapi.Disabled) },
			DisableDirectory: directories.Disable,
			FollowLinks:      func(_ *testing.T, tenant, to, directory id.ID) { s.FollowLinks(ref(tenant, to), directory) },
			Link:             directories.Link,
			SetData: func(t *testing.T, at directoryapi.Ref, document string) {
				data, err := customdata.Parse([]byte(document))
				if err != nil {
					t.Fatal(err)
				}
				s.SetData(at, data)
			},
			SetHome: func(_ *testing.T, at directoryapi.Ref, address string) {
				s.Change(at, func(a *applicationapi.Application) { a.HomeURL = &address })
			},
			Delete: func(_ *testing.T, at directoryapi.Ref) { s.Delete(at) },
		}
	})
}
