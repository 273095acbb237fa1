package applicationtest

import (
	"context"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/app"
	"github.com/doorward/doorward/services/application/store"
)

// DBConfig is the configuration of the service's database, for pgtest.OpenAll.
var DBConfig = store.Config

// Service is the application service as its peers call it, through an Injector. Its other methods make the
// changes that the contract has no method for; they are not broken with the calls.
type Service struct {
	applicationapi.Contract
	fault.Injector

	Rules *app.Service // the service itself
	DB    *pg.DB

	t           testing.TB
	directories directoryapi.Contract
	base        href.Base
	now         func() time.Time
}

// New starts the service on a database, beside a directory service.
func New(t testing.TB, db *pg.DB, directories directoryapi.Contract, base href.Base, now func() time.Time) *Service {
	t.Helper()
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{DB: db, t: t, directories: directories, base: base, now: now}
	s.Rules = app.New(store.New(db, now), directories, ring, base, now, Config)
	s.Contract = fault.Inject(&s.Injector, "application", applicationapi.Client, applicationapi.Serve,
		applicationapi.Contract(s.Rules))
	return s
}

// must fails the test for an error of its set-up.
func must[T any](t testing.TB, out T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NewTenant adds the console, whose administrators are those of a directory, and the first application of a
// tenant, and returns the ids of both.
func (s *Service) NewTenant(tenant, administrators id.ID) applicationapi.SignedUp {
	s.t.Helper()
	out, err := s.Rules.SignUp(context.Background(), applicationapi.SignUp{
		Tenant: tenant, Console: id.New(s.now()), ConsoleName: "Service", Administrators: administrators,
		ConsoleMapping: id.New(s.now()),
		Application:    id.New(s.now()), ApplicationMapping: id.New(s.now()), Directory: id.New(s.now()),
	})
	return must(s.t, out, err)
}

// NewApplication adds an application that the directories are mapped to.
func (s *Service) NewApplication(tenant id.ID, directories ...id.ID) id.ID {
	s.t.Helper()
	name := field.Some("Shop " + id.New(s.now()).String())
	a, err := s.Rules.CreateApplication(context.Background(), tenant, application.NewApplication{Name: name},
		application.DirectoryToCreate{})
	check(s.t, err)
	for _, directory := range directories {
		s.AddStore(id.Ref{Tenant: tenant, ID: a.ID}, directory)
	}
	return a.ID
}

// NewOrganization adds an organization that the directories are mapped to, and maps it to an application. New
// accounts go into the first directory, unless that is a mirror.
func (s *Service) NewOrganization(tenant, to id.ID, nameKey string, directories ...id.ID) id.ID {
	s.t.Helper()
	body := application.NewOrganization{Name: field.Some(nameKey), NameKey: field.Some(nameKey)}
	o, err := s.Rules.CreateOrganization(context.Background(), tenant, body, application.DirectoryToCreate{})
	check(s.t, err)
	for i, directory := range directories {
		found, err := s.directories.Directory(context.Background(), id.Ref{Tenant: tenant, ID: directory})
		check(s.t, err)
		_, err = s.Rules.CreateOrganizationMapping(context.Background(), tenant, application.NewOrganizationMapping{
			Organization:  field.Some(s.base.Link("organizations", o.ID)),
			AccountStore:  field.Some(s.base.Link("directories", directory)),
			MappingChange: application.MappingChange{IsDefaultAccountStore: field.Some(i == 0 && !found.Mirror())},
		})
		check(s.t, err)
	}
	s.add(id.Ref{Tenant: tenant, ID: to}, "organizations", o.ID, application.MappingChange{})
	return o.ID
}

// Change changes members of an application.
func (s *Service) Change(at id.Ref, in application.NewApplication) {
	s.t.Helper()
	_, err := s.Rules.UpdateApplication(context.Background(), at, in)
	check(s.t, err)
}

// SetCreatedBy sets the API key that has made an application.
func (s *Service) SetCreatedBy(at id.Ref, key string) {
	s.t.Helper()
	check(s.t, pg.MustChange(context.Background(), s.DB, `UPDATE applications SET created_by = $3
		WHERE tenant_id = $1 AND id = $2`, at.Tenant, at.ID, key))
}

// SetLabel sets the DNS label of an application.
func (s *Service) SetLabel(at id.Ref, label string) {
	s.t.Helper()
	_, err := s.Rules.SetDNSLabel(context.Background(),
		applicationapi.SetDNSLabel{Tenant: at.Tenant, Application: at.ID, Label: label})
	check(s.t, err)
}

// SetStatus sets the status of an application.
func (s *Service) SetStatus(at id.Ref, status string) {
	s.t.Helper()
	s.Change(at, application.NewApplication{Status: field.Some(status)})
}

// SetOrganizationStatus sets the status of an organization.
func (s *Service) SetOrganizationStatus(at id.Ref, status string) {
	s.t.Helper()
	_, err := s.Rules.UpdateOrganization(context.Background(), at,
		application.NewOrganization{Status: field.Some(status)})
	check(s.t, err)
}

// Delete deletes an application.
func (s *Service) Delete(at id.Ref) {
	s.t.Helper()
	check(s.t, s.Rules.DeleteApplication(context.Background(), at))
}

// DeleteOrganization deletes an organization.
func (s *Service) DeleteOrganization(at id.Ref) {
	s.t.Helper()
	check(s.t, s.Rules.DeleteOrganization(context.Background(), at))
}

// Map replaces the directories that are mapped to an application. Its organizations stay mapped.
func (s *Service) Map(at id.Ref, directories ...id.ID) {
	s.t.Helper()
	page, err := s.Rules.ListApplicationMappings(context.Background(), at, list.Query{Limit: list.MaxLimit})
	check(s.t, err)
	for _, m := range page.Items {
		if m.StoreKind == directoryapi.Directories {
			check(s.t, s.Rules.MappingDeleter(store.ApplicationKind)(context.Background(),
				id.Ref{Tenant: at.Tenant, ID: m.ID}))
		}
	}
	for i, directory := range directories {
		s.add(at, directoryapi.Directories, directory, application.MappingChange{ListIndex: field.Some(i)})
	}
}

// AddStore makes a directory the last account store of an application.
func (s *Service) AddStore(at id.Ref, directory id.ID) {
	s.t.Helper()
	s.add(at, directoryapi.Directories, directory, application.MappingChange{})
}

// AddGroup makes a group the last account store of an application.
func (s *Service) AddGroup(at id.Ref, group id.ID) {
	s.t.Helper()
	s.add(at, directoryapi.Groups, group, application.MappingChange{})
}

// FollowLinks maps a directory as the default account store of an application, whose logins follow account
// links from then on.
func (s *Service) FollowLinks(at id.Ref, directory id.ID) {
	s.t.Helper()
	s.add(at, directoryapi.Directories, directory, application.MappingChange{IsDefaultAccountStore: field.Some(true)})
	a, err := s.Rules.Application(context.Background(), at)
	check(s.t, err)
	_, err = s.Rules.UpdateLinkingPolicy(context.Background(), id.Ref{Tenant: at.Tenant, ID: a.AccountLinkingPolicyID},
		application.LinkingPolicyChange{Status: field.Some(directoryapi.Enabled)})
	check(s.t, err)
}

func (s *Service) add(at id.Ref, kind string, account id.ID, in application.MappingChange) {
	s.t.Helper()
	_, err := s.Rules.CreateMapping(context.Background(), at.Tenant, application.NewMapping{
		Application:   field.Some(s.base.Link("applications", at.ID)),
		AccountStore:  field.Some(s.base.Link(kind, account)),
		MappingChange: in,
	})
	check(s.t, err)
}

// SetData sets members of the customData of an application.
func (s *Service) SetData(at id.Ref, document string) {
	s.t.Helper()
	data, err := customdata.Parse([]byte(document))
	check(s.t, err)
	s.Change(at, application.NewApplication{CustomData: field.Some(data)})
}
