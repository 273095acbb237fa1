package store

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Reach is where the accounts of an application are.
type Reach struct {
	Status  string // of the application
	Mapped  []MappedStore
	Named   id.ID // the organization that Mapped was narrowed to, if any
	Linking Linking
}

// Linking is what a login does with account links: as the policy of the
// application has it, or of the organization that a login names.
type Linking struct {
	Rules
	Default directoryapi.Store // account store; none when its id is zero
	Closed  bool               // only disabled organizations lead to the default store
}

// Rules are an account linking policy in short.
type Rules struct {
	Enabled   bool `db:"linking"`
	ByEmail   bool `db:"by_email"`
	Provision bool `db:"provision"`
}

// MappedStore is an account store that an application reaches: one that is mapped to
// it, or one that is mapped to an organization that is. An organization without
// stores has no store.
type MappedStore struct {
	StoreKind          string
	StoreID            id.ID
	SocialProvider     string // of a social directory, folded
	OrganizationID     id.ID  // zero: the store itself is mapped
	NameKey            string
	OrganizationStatus string
	// IsDefault is the flag of the mapping to the application, IsDefaultWithin
	// that of the mapping to the organization, for accounts.
	IsDefault, IsDefaultWithin bool

	OrganizationLinking, OrganizationByEmail, OrganizationProvision bool
}

// Store is the account store of the mapped.
func (p MappedStore) Store() directoryapi.Store {
	return directoryapi.Store{Kind: p.StoreKind, ID: p.StoreID}
}

// isOpen reports whether no disabled organization lies on the way.
func (p MappedStore) isOpen() bool {
	return p.OrganizationID.IsZero() || p.OrganizationStatus == directoryapi.Enabled
}

// Stores are the account stores in the order of login, each once.
func (r Reach) Stores() []directoryapi.Store {
	return r.stores(func(MappedStore) bool { return true })
}

// Open are the account stores that are reached otherwise than through a disabled
// organization, in the order of login.
func (r Reach) Open() []directoryapi.Store { return r.stores(MappedStore.isOpen) }

// opens reports whether Open has a store.
func (r Reach) opens(store directoryapi.Store) bool {
	return !store.ID.IsZero() && slices.ContainsFunc(r.Mapped, func(p MappedStore) bool { return p.Store() == store && p.isOpen() })
}

func (r Reach) stores(of func(MappedStore) bool) []directoryapi.Store {
	stores, seen := []directoryapi.Store{}, map[directoryapi.Store]bool{}
	for _, mapped := range r.Mapped {
		if store := mapped.Store(); !store.ID.IsZero() && of(mapped) && !seen[store] {
			seen[store] = true
			stores = append(stores, store)
		}
	}
	return stores
}

// Within returns the reach with those stores alone that a client means.
func (r Reach) Within(is func(MappedStore) bool) Reach {
	r.Mapped = slices.DeleteFunc(slices.Clone(r.Mapped), func(p MappedStore) bool { return !is(p) })
	return r
}

// Organization returns the reach whose stores are those of one organization, as a
// login has it that names the organization: under the policy of that.
func (r Reach) Organization() Reach {
	of := r.Mapped[0]
	r.Named = of.OrganizationID
	r.Linking = Linking{
		Rules:   Rules{Enabled: of.OrganizationLinking, ByEmail: of.OrganizationByEmail, Provision: of.OrganizationProvision},
		Default: r.defaultStore(func(p MappedStore) bool { return p.IsDefaultWithin }),
	}
	r.Linking.Closed = !r.opens(r.Linking.Default)
	return r
}

// defaultStore returns the store that is the default, if any.
func (r Reach) defaultStore(is func(MappedStore) bool) directoryapi.Store {
	if i := slices.IndexFunc(r.Mapped, is); i >= 0 {
		return r.Mapped[i].Store()
	}
	return directoryapi.Store{}
}

// isDefault reports whether accounts that are made through the application go to
// the mapped.
func (p MappedStore) isDefault() bool {
	return p.IsDefault && (p.OrganizationID.IsZero() || p.IsDefaultWithin)
}

// reached is a row of the query: a store of an application.
type reached struct {
	TenantID      id.ID
	ApplicationID id.ID
	Status        string
	Rules
	MappedStore
}

// organization is the organization whose change changes the mapped.
func (r reached) organization() id.Ref { return id.Ref{Tenant: r.TenantID, ID: r.OrganizationID} }

const reachColumns = `SELECT a.tenant_id, a.id AS application_id, a.status,
	coalesce(CASE WHEN o.id IS NULL THEN m.store_kind ELSE n.store_kind END, '') AS store_kind,
	CASE WHEN o.id IS NULL THEN m.store_id ELSE n.store_id END AS store_id,
	coalesce(CASE WHEN o.id IS NULL THEN m.social_provider ELSE n.social_provider END, '') AS social_provider,
	o.id AS organization_id, coalesce(o.name_key, '') AS name_key, coalesce(o.status, '') AS organization_status,
	coalesce(m.is_default_account_store, false) AS is_default, coalesce(n.is_default_account_store, false) AS is_default_within,
	coalesce(l.status = 'ENABLED', false) AS linking, l.matching_property IS NOT NULL AS by_email,
	coalesce(l.automatic_provisioning = 'ENABLED', false) AS provision,
	coalesce(ol.status = 'ENABLED', false) AS organization_linking, ol.matching_property IS NOT NULL AS organization_by_email,
	coalesce(ol.automatic_provisioning = 'ENABLED', false) AS organization_provision
	FROM applications a
	LEFT JOIN account_linking_policies l ON l.tenant_id = a.tenant_id AND l.owner_id = a.id
	LEFT JOIN account_store_mappings m ON m.tenant_id = a.tenant_id AND m.owner_id = a.id
	LEFT JOIN organizations o ON m.store_kind = 'organizations' AND o.tenant_id = m.tenant_id AND o.id = m.store_id
	LEFT JOIN account_linking_policies ol ON ol.tenant_id = o.tenant_id AND ol.owner_id = o.id
	LEFT JOIN account_store_mappings n ON n.tenant_id = o.tenant_id AND n.owner_id = o.id`

// reachChannel is notified of the applications and organizations that change.
const reachChannel = "application.reach"

const (
	reachQuery        = reachColumns + ` WHERE a.tenant_id = $1 AND a.id = $2 ORDER BY m.list_index, n.list_index`
	builtinReachQuery = reachColumns + ` WHERE a.tenant_id = $1 AND a.builtin ORDER BY m.list_index, n.list_index`
)

// Reach returns, in one query, whether an application is enabled, where its
// accounts are and how they are linked; apierr.NotFound when there is no such
// application. CachedReach has it afterwards.
func (s *Store) Reach(ctx context.Context, tenant, application id.ID) (Reach, error) {
	rows, err := s.reaches.Refresh(ctx, id.Ref{Tenant: tenant, ID: application}, func(ctx context.Context) ([]reached, error) {
		return pg.All[reached](ctx, s.db, reachQuery, tenant, application)
	})
	if err != nil {
		return Reach{}, err
	}
	return newReach(rows)
}

// BuiltinReach is Reach for the built-in application of a tenant.
func (s *Store) BuiltinReach(ctx context.Context, tenant id.ID) (Reach, error) {
	rows, err := pg.All[reached](ctx, s.db, builtinReachQuery, tenant)
	if err != nil {
		return Reach{}, err
	}
	return newReach(rows)
}

// CachedReach is Reach from the cache: what this process changes shows at once,
// what another changes a moment later.
func (s *Store) CachedReach(ctx context.Context, tenant, application id.ID) (Reach, error) {
	rows, err := s.reaches.All(ctx, id.Ref{Tenant: tenant, ID: application})
	if err != nil {
		return Reach{}, err
	}
	return newReach(rows)
}

// ReachAndCounters is Reach, and in the same round trip LoginCounters.
func (s *Store) ReachAndCounters(ctx context.Context, tenant, application id.ID, of CounterKey) (Reach, []Counter, error) {
	var batch pg.Batch
	var rows []reached
	var counters []Counter
	pg.QueueAll(&batch, &rows, reachQuery, tenant, application)
	pg.QueueAll(&batch, &counters, countersQuery, tenant, of.Login, of.Address)
	if err := pg.ExecBatch(ctx, s.db, &batch); err != nil {
		return Reach{}, nil, err
	}
	reach, err := newReach(rows)
	return reach, counters, err
}

func newReach(rows []reached) (Reach, error) {
	if len(rows) == 0 {
		return Reach{}, apierr.NotFound
	}
	reach := Reach{Status: rows[0].Status, Linking: Linking{Rules: rows[0].Rules}}
	for _, r := range rows {
		if r.MappedStore != (MappedStore{}) { // that of an application without mappings
			reach.Mapped = append(reach.Mapped, r.MappedStore)
		}
	}
	reach.Linking.Default = reach.defaultStore(MappedStore.isDefault)
	reach.Linking.Closed = !reach.opens(reach.Linking.Default)
	return reach, nil
}

// OrganizationStores returns the account stores of an organization in their
// order.
func (s *Store) OrganizationStores(ctx context.Context, tenant, organization id.ID) ([]directoryapi.Store, error) {
	return pg.All[directoryapi.Store](ctx, s.db, `SELECT store_kind AS kind, store_id AS id FROM account_store_mappings
		WHERE tenant_id = $1 AND owner_id = $2 ORDER BY list_index`, tenant, organization)
}
