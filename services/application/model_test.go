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

// world is a tenant and what a few lists and names say of it: which stores each
// application and organization has, in which order, and who is in a store.
type world struct {
	*testing.T
	*applicationtest.Deployment
	dice   *rand.Rand
	tenant id.ID

	owners   map[id.ID]*modelOwner
	kinds    map[id.ID]string // of the stores that are there
	parent   map[id.ID]id.ID  // directory of a group
	accounts map[id.ID]map[string]id.ID
	disabled map[id.ID]bool            // stores and applications
	links    map[id.ID]map[id.ID]id.ID // of an account, by the directory that they lead to
}

type modelOwner struct {
	order
	kind     store.OwnerKind
	policy   id.ID
	linking  bool
	mappings map[id.ID]id.ID // by store
}

func newWorld(t *testing.T, d *applicationtest.Deployment, seed uint64) *world {
	w := &world{T: t, Deployment: d, dice: rand.New(rand.NewPCG(seed, 7)), owners: map[id.ID]*modelOwner{},
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
		w.link()
	}
	for range 30 {
		w.create()
	}
	for range 2 * len(w.owners) {
		w.policy()
	}
	return w
}

func (w *world) addApplication() {
	at := newApplication(w.T, w.Deployment, w.tenant)
	a, err := w.Service.Application(w.Context(), id.Ref{Tenant: w.tenant, ID: at})
	if err != nil {
		w.Fatal(err)
	}
	w.owners[at] = &modelOwner{kind: store.ApplicationKind, policy: a.AccountLinkingPolicyID, mappings: map[id.ID]id.ID{}}
}

func (w *world) addOrganization() {
	at := newOrganization(w.T, w.Deployment, w.tenant)
	o, err := w.Service.Organization(w.Context(), id.Ref{Tenant: w.tenant, ID: at})
	if err != nil {
		w.Fatal(err)
	}
	w.owners[at] = &modelOwner{kind: store.OrganizationKind, policy: o.AccountLinkingPolicyID, mappings: map[id.ID]id.ID{}}
	w.kinds[at] = string(store.OrganizationKind)
}

// addDirectory makes a directory with three accounts: jo in none of its groups,
// sam in the first, and one of a name of its own in the second.
func (w *world) addDirectory(name string) {
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

// pick returns one of the keys.
func pick[V any](w *world, of map[id.ID]V) id.ID {
	keys := slices.SortedFunc(maps.Keys(of), compareIDs)
	return keys[w.dice.IntN(len(keys))]
}

func compareIDs(a, b id.ID) int { return cmp.Compare(a.String(), b.String()) }

func (w *world) change() (in application.MappingChange) {
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

// refusal is what the model says of a mapping that a client asks for.
func (w *world) refusal(o *modelOwner, of id.ID, in application.MappingChange, isNew bool) error {
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

func (w *world) create() {
	at, of, in := pick(w, w.owners), pick(w, w.kinds), w.change()
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
	if want := w.refusal(o, of, in, true); !errors.Is(err, want) {
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

// mapping picks one that is there.
func (w *world) mapping() (o *modelOwner, of id.ID, ok bool) {
	o = w.owners[pick(w, w.owners)]
	if len(o.stores) == 0 {
		return o, of, false
	}
	return o, o.stores[w.dice.IntN(len(o.stores))], true
}

func (w *world) update() {
	o, of, ok := w.mapping()
	if !ok {
		return
	}
	in := w.change()
	_, err := w.Service.MappingUpdater(o.kind)(w.Context(), id.Ref{Tenant: w.tenant, ID: o.mappings[of]}, in)
	if want := w.refusal(o, of, in, false); !errors.Is(err, want) {
		w.Fatalf("the change returned %v, want %v", err, want)
	}
	if err == nil {
		o.order.change(of, in)
	}
}

func (w *world) unmap() {
	o, of, ok := w.mapping()
	if !ok {
		return
	}
	if err := w.Service.MappingDeleter(o.kind)(w.Context(), id.Ref{Tenant: w.tenant, ID: o.mappings[of]}); err != nil {
		w.Fatal(err)
	}
	o.drop(of)
	delete(o.mappings, of)
}

// toggle disables a store, or rarely an application, and enables what has been
// disabled for a while.
func (w *world) toggle() {
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

// forget lets a store go from the model.
func (w *world) forget(gone id.ID) {
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

func (w *world) remove() {
	gone := pick(w, w.kinds)
	at, e := id.Ref{Tenant: w.tenant, ID: gone}, events.Envelope{ID: w.NewID(), Tenant: w.tenant}
	var err error
	switch w.kinds[gone] {
	case string(store.OrganizationKind):
		err = w.Service.DeleteOrganization(w.Context(), at)
		delete(w.owners, gone)
		w.addOrganization()
	case directoryapi.Groups:
		w.Directories.DeleteGroup(at)
		err = w.Service.GroupDeleted(w.Context(), e, events.GroupDeleted{Tenant: w.tenant, Group: gone})
	default:
		if _, err := w.Directories.DeleteDirectory(w.Context(), at); err != nil {
			w.Fatal(err)
		}
		err = w.Service.DirectoryDeleted(w.Context(), e, events.DirectoryDeleted{Tenant: w.tenant, Directory: gone})
		for group, directory := range w.parent {
			if directory == gone {
				w.forget(group)
			}
		}
		w.addDirectory(w.NewID().String())
	}
	if err != nil {
		w.Fatal(err)
	}
	w.forget(gone)
}

// compare holds the service against the model.
func (w *world) compare() {
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

func (w *world) applicationFlags(at id.Ref) (accounts, groups id.ID) {
	a, err := w.Service.Application(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	return a.DefaultAccountStore, a.DefaultGroupStore
}

func (w *world) organizationFlags(at id.Ref) (accounts, groups id.ID) {
	o, err := w.Service.Organization(w.Context(), at)
	if err != nil {
		w.Fatal(err)
	}
	return o.DefaultAccountStore, o.DefaultGroupStore
}

// Random sequences of what can happen to mappings leave them, and the logins
// through them, as lists and names would be.
func TestMappingsAreAsTheirModel(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(t, d, seed)
			for range 60 {
				switch action := w.dice.IntN(23); {
				case action < 8:
					w.create()
				case action < 11:
					w.update()
				case action < 13:
					w.unmap()
				case action < 16:
					w.toggle()
				case action < 18:
					w.policy()
				case action < 22:
					w.link()
				default:
					w.remove()
				}
				w.compare()

			}
		})
	}
}
