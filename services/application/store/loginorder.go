package store

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// LoginOrder has the account stores of an application in the order (priority) in which a login
// name is looked up: the account store order, organizations expanded into their account stores.
type LoginOrder struct {
	Application       id.ID
	Status            string // of the application
	Mapped            []MappedStore
	NamedOrganization id.ID // the organization that the login names, to which Mapped is narrowed; zero: none
	Linking           LinkingRules
}

// LinkingRules are the rules of account links at a login: of the organization that the login
// names, otherwise of the application.
type LinkingRules struct {
	LinkingSwitches
	Default         directoryapi.Store // default account store; zero: none
	DefaultDisabled bool               // the default account store is mapped through disabled organizations only
}

// LinkingSwitches are the switches of an account linking policy.
type LinkingSwitches struct {
	Enabled   bool `db:"linking"`
	ByEmail   bool `db:"by_email"`
	Provision bool `db:"provision"`
}

// MappedStore is an account store of an application, which is mapped to the application itself or
// to an organization that is mapped to the application. An organization without account stores
// is a MappedStore with a zero StoreID.
type MappedStore struct {
	StoreKind          string
	StoreID            id.ID
	SocialProvider     string // of a social directory, case folded
	OrganizationID     id.ID  // zero: the store is mapped to the application itself
	NameKey            string // of the organization
	OrganizationStatus string
	// IsDefault is the flag isDefaultAccountStore of the mapping to the application,
	// IsDefaultOfOrganization that of the mapping to the organization.
	IsDefault, IsDefaultOfOrganization bool

	OrganizationLinking, OrganizationByEmail, OrganizationProvision bool
}

// Store returns the account store, whose id is zero for an organization without account stores.
func (m MappedStore) Store() directoryapi.Store {
	return directoryapi.Store{Kind: m.StoreKind, ID: m.StoreID}
}

// isEnabled reports whether the store is mapped to the application itself, or through an
// enabled organization. The status of the store itself is checked by the directory service.
func (m MappedStore) isEnabled() bool {
	return m.OrganizationID.IsZero() || m.OrganizationStatus == directoryapi.Enabled
}

// Stores returns the account stores in the order of login, each once.
func (r LoginOrder) Stores() []directoryapi.Store {
	return r.stores(func(MappedStore) bool { return true })
}

// EnabledStores returns the account stores in the order of login, without those that are mapped
// through disabled organizations only.
func (r LoginOrder) EnabledStores() []directoryapi.Store { return r.stores(MappedStore.isEnabled) }

// hasEnabledStore reports whether EnabledStores has a store.
func (r LoginOrder) hasEnabledStore(store directoryapi.Store) bool {
	return !store.ID.IsZero() && slices.ContainsFunc(r.Mapped,
		func(m MappedStore) bool { return m.Store() == store && m.isEnabled() })
}

func (r LoginOrder) stores(keep func(MappedStore) bool) []directoryapi.Store {
	stores, seen := []directoryapi.Store{}, map[directoryapi.Store]bool{}
	for _, mapped := range r.Mapped {
		if store := mapped.Store(); !store.ID.IsZero() && keep(mapped) && !seen[store] {
			seen[store] = true
			stores = append(stores, store)
		}
	}
	return stores
}

// Organizations returns the organizations that are mapped to the application.
func (r LoginOrder) Organizations() []id.ID {
	var organizations []id.ID
	for _, mapped := range r.Mapped {
		if of := mapped.OrganizationID; !of.IsZero() && !slices.Contains(organizations, of) {
			organizations = append(organizations, of)
		}
	}
	return organizations
}

// Filter returns the login order with those account stores for which keep returns true.
func (r LoginOrder) Filter(keep func(MappedStore) bool) LoginOrder {
	r.Mapped = slices.DeleteFunc(slices.Clone(r.Mapped), func(m MappedStore) bool { return !keep(m) })
	return r
}

// ForOrganization returns the login order of a login that names an organization, with the linking
// rules of the organization. Mapped must have the account stores of that organization only.
func (r LoginOrder) ForOrganization() LoginOrder {
	of := r.Mapped[0]
	r.NamedOrganization = of.OrganizationID
	r.Linking = LinkingRules{
		LinkingSwitches: LinkingSwitches{
			Enabled: of.OrganizationLinking, ByEmail: of.OrganizationByEmail, Provision: of.OrganizationProvision,
		},
		Default: r.defaultStore(func(m MappedStore) bool { return m.IsDefaultOfOrganization }),
	}
	r.Linking.DefaultDisabled = !r.hasEnabledStore(r.Linking.Default)
	return r
}

// defaultStore returns the first store for which isDefault returns true, or the zero value.
func (r LoginOrder) defaultStore(isDefault func(MappedStore) bool) directoryapi.Store {
	if i := slices.IndexFunc(r.Mapped, isDefault); i >= 0 {
		return r.Mapped[i].Store()
	}
	return directoryapi.Store{}
}

// isDefault reports whether the store is the default account store of the application, or that
// of the organization that is the application's default account store.
func (m MappedStore) isDefault() bool {
	return m.IsDefault && (m.OrganizationID.IsZero() || m.IsDefaultOfOrganization)
}

// loginOrderRow is a row of loginOrderQuery: an application with one of its account stores.
type loginOrderRow struct {
	TenantID      id.ID
	ApplicationID id.ID
	Status        string
	LinkingSwitches
	MappedStore
}

// dependsOn returns the organization whose change invalidates the cached row.
func (r loginOrderRow) dependsOn() id.Ref { return id.Ref{Tenant: r.TenantID, ID: r.OrganizationID} }

// loginOrderColumns selects the loginOrderRows of applications. a is the application, l its linking
// policy, m a mapping of it; where m maps an organization o, ol is the linking policy of the
// organization and n a mapping of it. A row is an account store of m, or of n.
const loginOrderColumns = `SELECT a.tenant_id, a.id AS application_id, a.status,
	coalesce(CASE WHEN o.id IS NULL THEN m.store_kind ELSE n.store_kind END, '') AS store_kind,
	CASE WHEN o.id IS NULL THEN m.store_id ELSE n.store_id END AS store_id,
	coalesce(CASE WHEN o.id IS NULL THEN m.social_provider ELSE n.social_provider END, '') AS social_provider,
	o.id AS organization_id, coalesce(o.name_key, '') AS name_key, coalesce(o.status, '') AS organization_status,
	coalesce(m.is_default_account_store, false) AS is_default, coalesce(n.is_default_account_store, false)
	AS is_default_of_organization,
	coalesce(l.status = 'ENABLED', false) AS linking, l.matching_property IS NOT NULL AS by_email,
	coalesce(l.automatic_provisioning = 'ENABLED', false) AS provision,
	coalesce(ol.status = 'ENABLED', false) AS organization_linking, ol.matching_property IS NOT NULL
	AS organization_by_email, coalesce(ol.automatic_provisioning = 'ENABLED', false) AS organization_provision
	FROM applications a
	LEFT JOIN account_linking_policies l ON l.tenant_id = a.tenant_id AND l.owner_id = a.id
	LEFT JOIN account_store_mappings m ON m.tenant_id = a.tenant_id AND m.owner_id = a.id
	LEFT JOIN organizations o ON m.store_kind = 'organizations' AND o.tenant_id = m.tenant_id AND o.id = m.store_id
	LEFT JOIN account_linking_policies ol ON ol.tenant_id = o.tenant_id AND ol.owner_id = o.id
	LEFT JOIN account_store_mappings n ON n.tenant_id = o.tenant_id AND n.owner_id = o.id`

// loginOrderChannel is the channel of PostgreSQL's NOTIFY with the changes of applications,
// organizations and their mappings, which invalidate cached login orders.
const loginOrderChannel = "application.loginOrders"

const (
	loginOrderQuery = loginOrderColumns + ` WHERE a.tenant_id = $1 AND a.id = $2
		ORDER BY m.list_index, n.list_index`
	builtinLoginOrderQuery = loginOrderColumns + ` WHERE a.tenant_id = $1 AND a.builtin
		ORDER BY m.list_index, n.list_index`
)

// LoginOrder reads the login order of an application from the database, in one query, and
// refreshes the cache with it. An unknown application is apierr.NotFound.
func (s *Store) LoginOrder(ctx context.Context, tenant, application id.ID) (LoginOrder, error) {
	return newLoginOrder(s.loginOrders.Refresh(ctx, id.Ref{Tenant: tenant, ID: application},
		func(ctx context.Context) ([]loginOrderRow, error) {
			return pg.All[loginOrderRow](ctx, s.db, loginOrderQuery, tenant, application)
		}))
}

// BuiltinLoginOrder is LoginOrder for the built-in application of a tenant, the console.
func (s *Store) BuiltinLoginOrder(ctx context.Context, tenant id.ID) (LoginOrder, error) {
	return newLoginOrder(pg.All[loginOrderRow](ctx, s.db, builtinLoginOrderQuery, tenant))
}

// CachedLoginOrder is LoginOrder from the cache. A change by this process is visible at once, a
// change by another process after at most 50 ms.
func (s *Store) CachedLoginOrder(ctx context.Context, tenant, application id.ID) (LoginOrder, error) {
	return newLoginOrder(s.loginOrders.All(ctx, id.Ref{Tenant: tenant, ID: application}))
}

// LoginOrderChanges returns the applications and organizations that have changed, themselves or
// in their mappings, since a position.
func (s *Store) LoginOrderChanges(after cache.Position) cache.Page {
	return s.loginOrderFeed.After(after)
}

// LoginOrderAndCounters reads the login order of an application and the counters of failed
// logins in one round trip.
func (s *Store) LoginOrderAndCounters(
	ctx context.Context, tenant, application id.ID, of LoginCounterKey,
) (LoginOrder, []LoginCounter, error) {
	var batch pg.Batch
	var rows []loginOrderRow
	var counters []LoginCounter
	pg.QueueAll(&batch, &rows, loginOrderQuery, tenant, application)
	pg.QueueAll(&batch, &counters, countersQuery, tenant, of.Login, of.Address)
	err := pg.ExecBatch(ctx, s.db, &batch)
	order, err := newLoginOrder(rows, err)
	return order, counters, err
}

// newLoginOrder returns the login order of rows, unless err is set.
func newLoginOrder(rows []loginOrderRow, err error) (LoginOrder, error) {
	if err == nil && len(rows) == 0 {
		err = apierr.NotFound
	}
	if err != nil {
		return LoginOrder{}, err
	}
	order := LoginOrder{Application: rows[0].ApplicationID, Status: rows[0].Status,
		Linking: LinkingRules{LinkingSwitches: rows[0].LinkingSwitches}}
	for _, r := range rows {
		if r.MappedStore != (MappedStore{}) { // the row of an application without mappings has none
			order.Mapped = append(order.Mapped, r.MappedStore)
		}
	}
	order.Linking.Default = order.defaultStore(MappedStore.isDefault)
	order.Linking.DefaultDisabled = !order.hasEnabledStore(order.Linking.Default)
	return order, nil
}

// OrganizationStores returns the account stores of an organization in their
// order.
func (s *Store) OrganizationStores(ctx context.Context, tenant, organization id.ID) ([]directoryapi.Store, error) {
	return pg.All[directoryapi.Store](ctx, s.db, `SELECT store_kind AS kind, store_id AS id FROM account_store_mappings
		WHERE tenant_id = $1 AND owner_id = $2 ORDER BY list_index`, tenant, organization)
}
