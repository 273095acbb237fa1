package applicationfake

import (
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/id"
)

// The methods below change the state for tests; the contract has no methods for these changes. They
// panic for a resource that does not exist, which is a fault of the test.

// NewApplication creates an enabled application that the directories are mapped to.
func (s *Service) NewApplication(tenant id.ID, directories ...id.ID) id.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := directoryapi.Ref{Tenant: tenant, ID: id.New(s.now())}
	s.insert(at, "Shop "+at.ID.String(), false).stores = stores(directories)
	return at.ID
}

// NewConsole creates the built-in application of a tenant. The accounts of the directories are
// the administrators.
func (s *Service) NewConsole(tenant id.ID, directories ...id.ID) id.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := directoryapi.Ref{Tenant: tenant, ID: id.New(s.now())}
	s.insert(at, "Service", true).stores = stores(directories)
	return at.ID
}

// NewOrganization creates an enabled organization that the directories are mapped to, and maps it
// to an application.
func (s *Service) NewOrganization(tenant, to id.ID, nameKey string, directories ...id.ID) id.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Changes.Append(directoryapi.Ref{Tenant: tenant, ID: to})
	at := directoryapi.Ref{Tenant: tenant, ID: id.New(s.now())}
	s.organizations[at] = &organization{nameKey, directoryapi.Enabled, stores(directories)}
	a := s.applications[directoryapi.Ref{Tenant: tenant, ID: to}]
	a.stores = append(a.stores, directoryapi.Store{Kind: organizations, ID: at.ID})
	return at.ID
}

func stores(directories []id.ID) []directoryapi.Store {
	list := make([]directoryapi.Store, len(directories))
	for i, v := range directories {
		list[i] = directoryapi.Store{Kind: directoryapi.Directories, ID: v}
	}
	return list
}

// Change changes members of an application, but not its account stores.
func (s *Service) Change(at directoryapi.Ref, change func(*applicationapi.Application)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Changes.Append(at)
	change(&s.applications[at].Application)
}

// SetStatus sets the status of an application or an organization.
func (s *Service) SetStatus(at directoryapi.Ref, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Changes.Append(at)
	if o, ok := s.organizations[at]; ok {
		o.status = status
		return
	}
	s.applications[at].Status = status
}

// Map replaces the directories that are mapped to an application. Its organizations stay mapped.
func (s *Service) Map(at directoryapi.Ref, directories ...id.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Changes.Append(at)
	a := s.applications[at]
	kept := slices.DeleteFunc(slices.Clone(a.stores), func(store directoryapi.Store) bool { return store.Kind != organizations })
	a.stores = append(stores(directories), kept...)
}

// AddStore makes a directory the last account store of an application.
func (s *Service) AddStore(at directoryapi.Ref, directory id.ID) {
	s.addStore(at, directoryapi.Store{Kind: directoryapi.Directories, ID: directory})
}

// AddGroup makes a group the last account store of an application.
func (s *Service) AddGroup(at directoryapi.Ref, group id.ID) {
	s.addStore(at, directoryapi.Store{Kind: directoryapi.Groups, ID: group})
}

func (s *Service) addStore(at directoryapi.Ref, store directoryapi.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Changes.Append(at)
	a := s.applications[at]
	a.stores = append(a.stores, store)
}

// MapSocial maps a directory of a social provider to an application.
func (s *Service) MapSocial(at directoryapi.Ref, provider string, directory id.ID) {
	s.AddStore(at, directory)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.applications[at]
	if a.social == nil {
		a.social = map[string]id.ID{}
	}
	a.social[provider] = directory
}

// FollowLinks maps a directory as the default account store of an application,
// whose logins follow account links from then on.
func (s *Service) FollowLinks(at directoryapi.Ref, directory id.ID) {
	s.AddStore(at, directory)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.applications[at]
	a.defaultStore, a.followsLinks = directoryapi.Store{Kind: directoryapi.Directories, ID: directory}, true
}

// SetData sets the customData of an application.
func (s *Service) SetData(at directoryapi.Ref, data customdata.Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applications[at].data = data
}

// Delete removes an application or an organization.
func (s *Service) Delete(at directoryapi.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Changes.Append(at)
	delete(s.applications, at)
	delete(s.organizations, at)
}

// SignUps returns the first request of SignUp of each tenant.
func (s *Service) SignUps() []applicationapi.SignUp {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.signUps)
}
