package application_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
)

// inOrder returns an owner's mappings in the order of login, and checks that their listIndexes have
// no gaps.
func inOrder(t *testing.T, read func(context.Context, id.Ref, list.Query) (list.Page[store.Mapping], error), tenant,
	of id.ID) []store.Mapping {
	t.Helper()
	query := list.Query{Limit: list.MaxLimit, Order: []list.Order{{Attribute: "listIndex"}}}
	page, err := read(t.Context(), id.Ref{Tenant: tenant, ID: of}, query)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range page.Items {
		if m.ListIndex != i {
			t.Fatalf("the mapping at %d has the list index %d", i, m.ListIndex)
		}
	}
	return page.Items
}

// order is a model of an application's mappings: their stores, and which of
// them are the defaults.
type order struct {
	stores                []id.ID
	accountStore, grouped id.ID
}

func (o *order) change(s id.ID, in application.MappingChange) {
	at := slices.Index(o.stores, s)
	if in.ListIndex.Given() {
		o.stores = slices.Delete(o.stores, at, at+1)
		o.stores = slices.Insert(o.stores, min(max(in.ListIndex.Value, 0), len(o.stores)), s)
	}
	set := func(flag field.Bool, holder *id.ID) {
		switch {
		case flag.Or(false):
			*holder = s
		case flag.Present && *holder == s:
			*holder = id.ID{}
		}
	}
	set(in.IsDefaultAccountStore, &o.accountStore)
	set(in.IsDefaultGroupStore, &o.grouped)
}

func (o *order) drop(s id.ID) {
	o.stores = slices.DeleteFunc(o.stores, func(other id.ID) bool { return other == s })
	if o.accountStore == s {
		o.accountStore = id.ID{}
	}
	if o.grouped == s {
		o.grouped = id.ID{}
	}
}

// orderOf reads the mappings of an owner.
func orderOf(mappings []store.Mapping) (o order) {
	for _, m := range mappings {
		o.stores = append(o.stores, m.StoreID)
		if m.IsDefaultAccountStore {
			o.accountStore = m.StoreID
		}
		if m.IsDefaultGroupStore {
			o.grouped = m.StoreID
		}
	}
	return o
}

func (o order) equal(other order) bool {
	return slices.Equal(o.stores, other.stores) && o.accountStore == other.accountStore && o.grouped == other.grouped
}

// compareOrder wants an application to have the stores of a model.
func compareOrder(t *testing.T, d *applicationtest.Deployment, tenant, of id.ID, want order) {
	t.Helper()
	if got := orderOf(inOrder(t, d.Service.ListApplicationMappings, tenant, of)); !got.equal(want) {
		t.Fatalf("the order is %v, want %v", got, want)
	}
}

func TestConcurrentChangesKeepTheOrderWithoutGaps(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, bank := newApplication(t, d, tenant), newOrganization(t, d, tenant)
	t.Run("of an application", func(t *testing.T) {
		concurrentChanges(t, d, tenant, store.ApplicationKind,
			func(directory id.ID, in application.MappingChange) (store.Mapping, error) {
				body := mappingBody(shop, directory)
				body.MappingChange = in
				return d.Service.CreateMapping(t.Context(), tenant, body)
			},
			func() []store.Mapping { return inOrder(t, d.Service.ListApplicationMappings, tenant, shop) })
	})
	t.Run("of an organization", func(t *testing.T) {
		concurrentChanges(t, d, tenant, store.OrganizationKind,
			func(directory id.ID, in application.MappingChange) (store.Mapping, error) {
				return d.Service.CreateOrganizationMapping(t.Context(), tenant, application.NewOrganizationMapping{
					Organization: link("organizations", bank), AccountStore: link("directories", directory), MappingChange: in})
			},
			func() []store.Mapping { return inOrder(t, d.Service.ListOrganizationMappings, tenant, bank) })
	})
}

func concurrentChanges(t *testing.T, d *applicationtest.Deployment, tenant id.ID, kind store.OwnerKind,
	create func(id.ID, application.MappingChange) (store.Mapping, error), read func() []store.Mapping) {
	t.Helper()
	const kept = 6
	var mappings []id.ID
	for range kept {
		m, err := create(d.Directory(t, tenant, d.NewID().String()), application.MappingChange{})
		if err != nil {
			t.Fatal(err)
		}
		mappings = append(mappings, m.ID)
	}
	var spare []id.ID
	for range 8 {
		spare = append(spare, d.Directory(t, tenant, d.NewID().String()))
	}

	var all sync.WaitGroup
	for worker := range 8 {
		dice := rand.New(rand.NewPCG(uint64(worker), 3))
		all.Go(func() {
			for range 10 {
				in := application.MappingChange{ListIndex: field.Some(dice.IntN(kept + 2)), IsDefaultAccountStore: field.Some(true),
					IsDefaultGroupStore: field.Some(dice.IntN(2) == 0)}
				if _, err := d.Service.MappingUpdater(kind)(t.Context(), id.Ref{Tenant: tenant, ID: mappings[dice.IntN(kept)]},
					in); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() { // comes and goes meanwhile
			m, err := create(spare[worker], application.MappingChange{ListIndex: field.Some(0)})
			if err != nil {
				t.Error(err)
				return
			}
			if worker%2 == 0 {
				err = d.Service.MappingDeleter(kind)(t.Context(), id.Ref{Tenant: tenant, ID: m.ID})
			} else {
				err = directoryDeleted(t, d, tenant, spare[worker], d.NewID())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	left := read()
	if len(left) != kept {
		t.Fatalf("%d mappings are left, want %d", len(left), kept)
	}
	defaults := 0
	for _, m := range left {
		if m.IsDefaultAccountStore {
			defaults++
		}
	}
	if defaults != 1 {
		t.Errorf("%d mappings are the default account store", defaults)
	}
}

func TestOfParallelMappingsOfOneStoreOneIsMade(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, directory := newApplication(t, d, tenant), d.Directory(t, tenant, "People")
	results := make([]error, 6)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { _, results[i] = d.Service.CreateMapping(t.Context(), tenant, mappingBody(shop, directory)) })
	}
	all.Wait()
	made := 0
	for _, err := range results {
		if err == nil {
			made++
		} else if !errors.Is(err, apierr.AlreadyMapped) {
			t.Error(err)
		}
	}
	if made != 1 || len(inOrder(t, d.Service.ListApplicationMappings, tenant, shop)) != 1 {
		t.Errorf("%d were made", made)
	}
}

// directoryDeleted delivers the event of the deletion of a directory.
func directoryDeleted(t *testing.T, d *applicationtest.Deployment, tenant, directory, event id.ID) error {
	return d.Service.DirectoryDeleted(t.Context(), events.Envelope{ID: event, Tenant: tenant},
		events.DirectoryDeleted{Tenant: tenant, Directory: directory})
}

func TestADeletedDirectoryLeavesItsApplications(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	stranger, _ := d.Tenant(t)
	first, second := newApplication(t, d, tenant), newApplication(t, d, tenant)
	gone, kept := d.Directory(t, tenant, "Gone"), d.Directory(t, tenant, "Kept")
	for _, a := range []id.ID{first, second} {
		body := mappingBody(a, gone)
		body.IsDefaultAccountStore, body.IsDefaultGroupStore = field.Some(true), field.Some(true)
		if _, err := d.Service.CreateMapping(t.Context(), tenant, body); err != nil {
			t.Fatal(err)
		}
		newMapping(t, d, tenant, a, kept)
	}

	t.Run("not for the event of another tenant", func(t *testing.T) {
		if err := directoryDeleted(t, d, stranger, gone, d.NewID()); err != nil {
			t.Fatal(err)
		}
		if n := len(inOrder(t, d.Service.ListApplicationMappings, tenant, first)); n != 2 {
			t.Errorf("%d mappings are left", n)
		}
	})
	event := d.NewID()
	if err := directoryDeleted(t, d, tenant, gone, event); err != nil {
		t.Fatal(err)
	}
	for _, a := range []id.ID{first, second} {
		compareOrder(t, d, tenant, a, order{stores: []id.ID{kept}})
	}
	t.Run("once, however often the event comes", func(t *testing.T) {
		newMapping(t, d, tenant, first, gone)
		if err := directoryDeleted(t, d, tenant, gone, event); err != nil {
			t.Fatal(err)
		}
		compareOrder(t, d, tenant, first, order{stores: []id.ID{kept, gone}})
	})
}

// The event of the deletion of a directory may be handled while a mapping of it is created.
func TestADirectoryThatGoesWhileItIsMappedIsNotMapped(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, directory := newApplication(t, d, tenant), d.Directory(t, tenant, "Going")
	d.Directories.Break("Directory", fault.After, once(func() error {
		if _, err := d.Directories.DeleteDirectory(t.Context(), directoryapi.Ref{Tenant: tenant, ID: directory}); err != nil {
			t.Error(err)
		}
		return directoryDeleted(t, d, tenant, directory, d.NewID())
	}))
	if _, err := d.Service.CreateMapping(t.Context(), tenant, mappingBody(shop, directory)); !errors.Is(err,
		apierr.Reference) {
		t.Errorf("the error is %v", err)
	}
	if left := inOrder(t, d.Service.ListApplicationMappings, tenant, shop); len(left) != 0 {
		t.Errorf("the mapping %v is left", left)
	}
}

// An organization is deleted while it is mapped to applications, and directories to it: in any
// order, no mapping of it is left.
func TestAnOrganizationThatGoesWhileItIsMappedIsNotMapped(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	var shops, directories []id.ID
	for range 6 {
		shops = append(shops, newApplication(t, d, tenant))
		directories = append(directories, d.Directory(t, tenant, d.NewID().String()))
	}
	for range 8 {
		organization := newOrganization(t, d, tenant)
		mapOrganization(t, d, tenant, shops[0], organization)
		var all sync.WaitGroup
		for i := range shops {
			all.Go(func() {
				body := application.NewMapping{Application: link("applications", shops[i]),
					AccountStore: link("organizations", organization)}
				if _, err := d.Service.CreateMapping(t.Context(), tenant, body); err != nil && !errors.Is(err, apierr.Reference) &&
					!errors.Is(err, apierr.AlreadyMapped) {
					t.Error(err)
				}
			})
			all.Go(func() {
				body := application.NewOrganizationMapping{Organization: link("organizations", organization),
					AccountStore: link("directories", directories[i])}
				if _, err := d.Service.CreateOrganizationMapping(t.Context(), tenant, body); err != nil &&
					!errors.Is(err, apierr.Reference) {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			if err := d.Service.DeleteOrganization(t.Context(), id.Ref{Tenant: tenant, ID: organization}); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		var left int
		if err := d.DB.QueryRow(t.Context(), "SELECT count(*) FROM account_store_mappings").Scan(&left); err != nil ||
			left != 0 {
			t.Fatalf("%d mappings are left, %v", left, err)
		}
	}
}

// A mapping that is answered as not found is linked by no application, also before the event of its deleted store.
func TestAMappingOfADeletedDirectoryIsLinkedNoMore(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, directory := newApplication(t, d, tenant), d.Directory(t, tenant, "Gone")
	body := mappingBody(shop, directory)
	body.IsDefaultAccountStore = field.Some(true)
	m, err := d.Service.CreateMapping(t.Context(), tenant, body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Directories.DeleteDirectory(t.Context(), directoryapi.Ref{Tenant: tenant, ID: directory}); err != nil {
		t.Fatal(err)
	}
	at := id.Ref{Tenant: tenant, ID: m.ID}
	if _, err := d.Service.MappingReader(store.ApplicationKind)(t.Context(), at); !errors.Is(err, apierr.NotFound) {
		t.Errorf("the mapping returned %v", err)
	}
	app, err := d.Service.Application(t.Context(), id.Ref{Tenant: tenant, ID: shop})
	if err != nil || !app.DefaultAccountStore.IsZero() {
		t.Errorf("the application links to the mapping %v, %v", app.DefaultAccountStore, err)
	}
}
