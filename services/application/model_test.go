package application_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
)

// model is a tenant, and a simple model of its mappings in maps and lists: the stores of each
// application and organization in their order, and the accounts of each store.
type model struct {
	*testing.T
	*applicationtest.Deployment
	dice   *rand.Rand
	tenant id.ID

	owners   map[id.ID]*modelOwner
	kinds    map[id.ID]string // of the stores that exist
	parent   map[id.ID]id.ID  // directory of a group
	accounts map[id.ID]map[string]id.ID
	disabled map[id.ID]bool            // stores and applications
	links    map[id.ID]map[id.ID]id.ID // linked accounts of an account, by their directories
}

type modelOwner struct {
	order
	kind     store.OwnerKind
	policy   id.ID
	linking  bool
	mappings map[id.ID]id.ID // by store
}

func newModel(t *testing.T, d *applicationtest.Deployment, seed uint64) *model {
	w := &model{T: t, Deployment: d, dice: rand.New(rand.NewPCG(seed, 7)), owners: map[id.ID]*modelOwner{},
		kinds: map[id.ID]string{}, parent: map[id.ID]id.ID{}, accounts: map[id.ID]map[string]id.ID{},
		disabled: map[id.ID]bool{}, links: map[id.ID]map[id.ID]id.ID{}}
	w.tenant, _ = d.Tenant(t)
	for range 2 {
		w.addApplication()
	}
	for range 3 {
		w.addOrganization()
	}
	for i := range 5 {
		w.addDirectory(fmt.Sprint(seed, " directory ", i))
	}
	for range 60 {
		w.linkAccounts()
	}
	for range 30 {
		w.createMapping()
	}
	for range 2 * len(w.owners) {
		w.togglePolicy()
	}
	return w
}

func (w *model) addApplication() {
	at := newApplication(w.T, w.Deployment, w.tenant)
	a, err := w.Service.Application(w.Context(), id.Ref{Tenant: w.tenant, ID: at})
	if err != nil {
		w.Fatal(err)
	}
	w.owners[at] = &modelOwner{kind: store.ApplicationKind, policy: a.AccountLinkingPolicyID, mappings: map[id.ID]id.ID{}}
}

func (w *model) addOrganization() {
	at := newOrganization(w.T, w.Deployment, w.tenant)
	o, err := w.Service.Organization(w.Context(), id.Ref{Tenant: w.tenant, ID: at})
	if err != nil {
		w.Fatal(err)
	}
	w.owners[at] = &modelOwner{kind: store.OrganizationKind, policy: o.AccountLinkingPolicyID, mappings: map[id.ID]id.ID{}}
	w.kinds[at] = string(store.OrganizationKind)
}

// addDirectory creates a directory with two groups and three accounts: jo in no group, sam in the
// first group, and an account with a unique login name in the second group.
func (w *model) addDirectory(name string) {
	directory := w.Directory(w.T, w.tenant, name)
	w.kinds[directory] = directoryapi.Directories
	w.accounts[directory] = map[string]id.ID{}
	for _, a := range []struct{ login, group string }{
		{"jo@example.test", ""}, {"sam@example.test", "First"}, {directory.String() + "@example.test", "Second"},
	} {
		account := w.Account(w.T, w.tenant, directory, a.login)
		w.accounts[directory][a.login] = account
		if a.group == "" {
			continue
		}
		group := w.Group(w.T, w.tenant, directory, a.group)
		w.kinds[group], w.parent[group] = directoryapi.Groups, directory
		w.accounts[group] = map[string]id.ID{a.login: account}
		w.Directories.Join(w.T, id.Ref{Tenant: w.tenant, ID: account}, group)
	}
}

// pick returns a random key.
func pick[V any](w *model, of map[id.ID]V) id.ID {
	keys := slices.SortedFunc(maps.Keys(of), compareIDs)
	return keys[w.dice.IntN(len(keys))]
}

func compareIDs(a, b id.ID) int { return cmp.Compare(a.String(), b.String()) }

func (w *model) randomChange() (in application.MappingChange) {
	if w.dice.IntN(2) == 0 {
		in.ListIndex = field.Some(w.dice.IntN(9) - 2)
	}
	if w.dice.IntN(2) == 0 {
		in.IsDefaultAccountStore = field.Some(w.dice.IntN(4) > 0)
	}
	if w.dice.IntN(3) == 0 {
		in.IsDefaultGroupStore = field.Some(w.dice.IntN(3) > 0)
	}
	return in
}

// mappingError returns the error of a new or changed mapping by the model.
func (w *model) mappingError(o *modelOwner, of id.ID, in application.MappingChange, isNew bool) error {
	isOrganization := o.kind == store.OrganizationKind
	choose := func(application, organization error) error {
		if isOrganization {
			return organization
		}
		return application
	}
	_, mapped := o.mappings[of]
	switch {
	case isOrganization && w.kinds[of] == string(store.OrganizationKind):
		return apierr.OrgInsideOrg
	case in.IsDefaultGroupStore.Or(false) && w.kinds[of] == directoryapi.Groups:
		return choose(apierr.GroupAsGroupStore, apierr.OrgGroupAsGroupStore)
	case isNew && mapped:
		return choose(apierr.AlreadyMapped, apierr.OrgAlreadyMapped)
	}
	return nil
}

func (w *model) createMapping() {
	at, of, in := pick(w, w.owners), pick(w, w.kinds), w.randomChange()
	o := w.owners[at]
	var m store.Mapping
	var err error
	if o.kind == store.ApplicationKind {
		m, err = w.Service.CreateMapping(w.Context(), w.tenant, application.NewMapping{
			Application: link("applications", at), AccountStore: link(w.kinds[of], of), MappingChange: in})
	} else {
		m, err = w.Service.CreateOrganizationMapping(w.Context(), w.tenant, application.NewOrganizationMapping{
			Organization: link("organizations", at), AccountStore: link(w.kinds[of], of), MappingChange: in})
	}
	if want := w.mappingError(o, of, in, true); !errors.Is(err, want) {
		w.Fatalf("mapping a store of the %s to one of the %s returned %v, want %v", w.kinds[of], o.kind, err, want)
	}
	if err != nil {
		return
	}
	o.mappings[of] = m.ID
	o.stores = append(o.stores, of)
	o.order.change(of, in)
	if m.ListIndex != slices.Index(o.stores, of) {
		w.Fatalf("the new mapping says %d", m.ListIndex)
	}
}

// pickMapping returns a random mapping: its owner and its store.
func (w *model) pickMapping() (o *modelOwner, of id.ID, ok bool) {
	o = w.owners[pick(w, w.owners)]
	if len(o.stores) == 0 {
		return o, of, false
	}
	return o, o.stores[w.dice.IntN(len(o.stores))], true
}

func (w *model) updateMapping() {
	o, of, ok := w.pickMapping()
	if !ok {
		return
	}
	in := w.randomChange()
	_, err := w.Service.MappingUpdater(o.kind)(w.Context(), id.Ref{Tenant: w.tenant, ID: o.mappings[of]}, in)
	if want := w.mappingError(o, of, in, false); !errors.Is(err, want) {
		w.Fatalf("the change returned %v, want %v", err, want)
	}
	if err == nil {
		o.order.change(of, in)
	}
}

func (w *model) deleteMapping() {
	o, of, ok := w.pickMapping()
	if !ok {
		return
	}
	if err := w.Service.MappingDeleter(o.kind)(w.Context(), id.Ref{Tenant: w.tenant, ID: o.mappings[of]}); err != nil {
		w.Fatal(err)
	}
	o.drop(of)
	delete(o.mappings, of)
}

// toggleStatus disables or enables a random store or, rarely, an application.
func (w *model) toggleStatus() {
	at := pick(w, w.kinds)
	switch {
	case len(w.disabled) > 3:
		at = pick(w, w.disabled)
	case w.dice.IntN(12) == 0:
		at = pick(w, w.owners)
	}
	if w.disabled[at] {
		delete(w.disabled, at)
	} else {
		w.disabled[at] = true
	}
	status := map[bool]string{true: directoryapi.Disabled, false: directoryapi.Enabled}[w.disabled[at]]
	ref := id.Ref{Tenant: w.tenant, ID: at}
	var err error
	switch kind := w.kinds[at]; kind {
	case string(store.OrganizationKind):
		_, err = w.Service.UpdateOrganization(w.Context(), ref, application.NewOrganization{Status: field.Some(status)})
	case "":
		_, err = w.Service.UpdateApplication(w.Context(), ref, application.NewApplication{Status: field.Some(status)})
	default:
		w.Directories.SetStatus(w.T, ref, kind, status)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// removeFromModel removes a deleted store from the model.
func (w *model) removeFromModel(gone id.ID) {
	for _, o := range w.owners {
		o.drop(gone)
		delete(o.mappings, gone)
	}
	for _, account := range w.accounts[gone] {
		if w.kinds[gone] == directoryapi.Directories {
			delete(w.links, account)
		}
	}
	for _, links := range w.links {
		delete(links, gone)
	}
	delete(w.kinds, gone)
	delete(w.accounts, gone)
	delete(w.disabled, gone)
}

func (w *model) deleteStore() {
	gone := pick(w, w.kinds)
	at, e := id.Ref{Tenant: w.tenant, ID: gone}, events.Envelope{ID: w.NewID(), Tenant: w.tenant}
	var err error
	switch w.kinds[gone] {
	case string(store.OrganizationKind):
		err = w.Service.DeleteOrganization(w.Context(), at)
		delete(w.owners, gone)
		w.addOrganization()
	case directoryapi.Groups:
		w.Directories.DeleteGroup(w.T, at)
		err = w.Service.GroupDeleted(w.Context(), e, events.GroupDeleted{Tenant: w.tenant, Group: gone})
	default:
		if _, err := w.Directories.DeleteDirectory(w.Context(), at); err != nil {
			w.Fatal(err)
		}
		err = w.Service.DirectoryDeleted(w.Context(), e, events.DirectoryDeleted{Tenant: w.tenant, Directory: gone})
		for group, directory := range w.parent {
			if directory == gone {
				w.removeFromModel(group)
			}
		}
		w.addDirectory(w.NewID().String())
	}
	if err != nil {
		w.Fatal(err)
	}
	w.removeFromModel(gone)
}

// compare compares the service with the model.
func (w *model) compare() {
	w.Helper()
	for at, o := range w.owners {
		ref := id.Ref{Tenant: w.tenant, ID: at}
		read, flags := w.Service.ListApplicationMappings, w.applicationFlags
		if o.kind == store.OrganizationKind {
			read, flags = w.Service.ListOrganizationMappings, w.organizationFlags
		}
		got := orderOf(inOrder(w.T, read, w.tenant, at))
		if !got.equal(o.order) {
			w.Fatalf("one of the %s has %v, want %v", o.kind, got, o.order)
		}
		if accounts, groups := flags(ref); accounts != o.mappings[o.accountStore] || groups != o.mappings[o.grouped] {
			w.Fatalf("one of the %s has the defaults %v and %v", o.kind, accounts, groups)
		}
		if o.kind == store.ApplicationKind {
			w.compareLogins(ref, o)
		}
	}
}

func (w *model) applicationFlags(at id.Ref) (accounts, groups id.ID) {
	a, err := w.Service.Application(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	return a.DefaultAccountStore, a.DefaultGroupStore
}

func (w *model) organizationFlags(at id.Ref) (accounts, groups id.ID) {
	o, err := w.Service.Organization(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	return o.DefaultAccountStore, o.DefaultGroupStore
}

// After each step of a random sequence of changes, the mappings of the service, and the logins by
// them, are those of the model.
func TestMappingsAreAsTheirModel(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newModel(t, d, seed)
			for range 60 {
				switch action := w.dice.IntN(23); {
				case action < 8:
					w.createMapping()
				case action < 11:
					w.updateMapping()
				case action < 13:
					w.deleteMapping()
				case action < 16:
					w.toggleStatus()
				case action < 18:
					w.togglePolicy()
				case action < 22:
					w.linkAccounts()
				default:
					w.deleteStore()
				}
				w.compare()

			}
		})
	}
}
