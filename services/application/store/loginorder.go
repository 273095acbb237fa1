package store

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// LoginOrder is where the accounts of an application are.
type LoginOrder struct {
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

// MappedStore is an account store of an application: one that is mapped to it, or one
// that is mapped to an organization that is. An organization without
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
func (r LoginOrder) Stores() []directoryapi.Store {
	return r.stores(func(MappedStore) bool { return true })
}

// Open are the account stores that are reached otherwise than through a disabled
// organization, in the order of login.
func (r LoginOrder) Open() []directoryapi.Store { return r.stores(MappedStore.isOpen) }

// opens reports whether Open has a store.
func (r LoginOrder) opens(store directoryapi.Store) bool {
	return !store.ID.IsZero() && slices.ContainsFunc(r.Mapped, func(p MappedStore) bool { return p.Store() == store && p.isOpen() })
}

func (r LoginOrder) stores(of func(MappedStore) bool) []directoryapi.Store {
	stores, seen := []directoryapi.Store{}, map[directoryapi.Store]bool{}
	for _, mapped := range r.Mapped {
		if store := mapped.Store(); !store.ID.IsZero() && of(mapped) && !seen[store] {
			seen[store] = true
			stores = append(stores, store)
		}
	}
	return stores
}

// Organizations are those through which accounts are reached.
func (r LoginOrder) Organizations() []id.ID {
	var organizations []id.ID
	for _, mapped := range r.Mapped {
		if of := mapped.OrganizationID; !of.IsZero() && !slices.Contains(organizations, of) {
			organizations = append(organizations, of)
		}
	}
	return organizations
}

// Within returns the login order with those stores alone that a client means.
func (r LoginOrder) Within(is func(MappedStore) bool) LoginOrder {
	r.Mapped = slices.DeleteFunc(slices.Clone(r.Mapped), func(p MappedStore) bool { return !is(p) })
	return r
}

// Organization returns the login order whose stores are those of one organization, as a
// login has it that names the organization: under the policy of that.
func (r LoginOrder) Organization() LoginOrder {
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
func (r LoginOrder) defaultStore(is func(MappedStore) bool) directoryapi.Store {
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

// loginOrderRow is a row of the query: a store of an application.
type loginOrderRow struct {
	TenantID      id.ID
	ApplicationID id.ID
	Status        string
	Rules
	MappedStore
}

// organization is the organization whose change changes the mapped.
func (r loginOrderRow) organization() id.Ref { return id.Ref{Tenant: r.TenantID, ID: r.OrganizationID} }

const loginOrderColumns = `SELECT a.tenant_id, a.id AS application_id, a.status,
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

// loginOrderChannel is notified of the applications and organizations that change.
const loginOrderChannel = "application.reach"

const (
	loginOrderQuery        = loginOrderColumns + ` WHERE a.tenant_id = $1 AND a.id = $2 ORDER BY m.list_index, n.list_index`
	builtinLoginOrderQuery = loginOrderColumns + ` WHERE a.tenant_id = $1 AND a.builtin ORDER BY m.list_index, n.list_index`
)

// LoginOrder returns, in one query, whether an application is enabled, where its
// accounts are and how they are linked; apierr.NotFound when there is no such
// application. CachedLoginOrder has it afterwards.
func (s *Store) LoginOrder(ctx context.Context, tenant, application id.ID) (LoginOrder, error) {
	return newLoginOrder(s.loginOrders.Refresh(ctx, id.Ref{Tenant: tenant, ID: application},
		func(ctx context.Context) ([]loginOrderRow, error) {
			return pg.All[loginOrderRow](ctx, s.db, loginOrderQuery, tenant, application)
		}))
}

// BuiltinLoginOrder is LoginOrder for the built-in application of a tenant.
func (s *Store) BuiltinLoginOrder(ctx context.Context, tenant id.ID) (LoginOrder, error) {
	return newLoginOrder(pg.All[loginOrderRow](ctx, s.db, builtinLoginOrderQuery, tenant))
}

// CachedLoginOrder is LoginOrder from the cache: what this process changes shows at once,
// what another changes a moment later.
func (s *Store) CachedLoginOrder(ctx context.Context, tenant, application id.ID) (LoginOrder, error) {
	return newLoginOrder(s.loginOrders.All(ctx, id.Ref{Tenant: tenant, ID: application}))
}

// LoginOrderChanges returns the applications and organizations that have changed since a
// position, whose login orders may be different.
func (s *Store) LoginOrderChanges(after changefeed.Position) changefeed.Page {
	return s.loginOrderFeed.After(after)
}

// LoginOrderAndCounters is LoginOrder, and in the same round trip LoginCounters.
func (s *Store) LoginOrderAndCounters(ctx context.Context, tenant, application id.ID, of CounterKey) (LoginOrder, []Counter, error) {
	var batch pg.Batch
	var rows []loginOrderRow
	var counters []Counter
	pg.QueueAll(&batch, &rows, loginOrderQuery, tenant, application)
	pg.QueueAll(&batch, &counters, countersQuery, tenant, of.Login, of.Address)
	err := pg.ExecBatch(ctx, s.db, &batch)
	order, err := newLoginOrder(rows, err)
	return order, counters, err
}

// newLoginOrder makes the login order of rows, or returns the error that they were read with.
func newLoginOrder(rows []loginOrderRow, err error) (LoginOrder, error) {
	if err == nil && len(rows) == 0 {
		err = apierr.NotFound
	}
	if err != nil {
		return LoginOrder{}, err
	}
	order := LoginOrder{Status: rows[0].Status, Linking: Linking{Rules: rows[0].Rules}}
	for _, r := range rows {
		if r.MappedStore != (MappedStore{}) { // that of an application without mappings
			order.Mapped = append(order.Mapped, r.MappedStore)
		}
	}
	order.Linking.Default = order.defaultStore(MappedStore.isDefault)
	order.Linking.Closed = !order.opens(order.Linking.Default)
	return order, nil
}

// OrganizationStores returns the account stores of an organization in their
// order.
func (s *Store) OrganizationStores(ctx context.Context, tenant, organization id.ID) ([]directoryapi.Store, error) {
	return pg.All[directoryapi.Store](ctx, s.db, `SELECT store_kind AS kind, store_id AS id FROM account_store_mappings
		WHERE tenant_id = $1 AND owner_id = $2 ORDER BY list_index`, tenant, organization)
}
