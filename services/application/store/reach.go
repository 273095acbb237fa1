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
	Status string // of the application
	Places []Place
	Named  id.ID // the organization that the places were narrowed to, if any
}

// Place is an account store that an application reaches: one that is mapped to
// it, or one that is mapped to an organization that is. An organization without
// stores is a place without a store.
type Place struct {
	StoreKind          string
	StoreID            id.ID
	OrganizationID     id.ID // zero: the store itself is mapped
	NameKey            string
	OrganizationStatus string
}

// Store is the account store of the place.
func (p Place) Store() directoryapi.Store {
	return directoryapi.Store{Kind: p.StoreKind, ID: p.StoreID}
}

// isOpen reports whether no disabled organization lies on the way.
func (p Place) isOpen() bool {
	return p.OrganizationID.IsZero() || p.OrganizationStatus == directoryapi.Enabled
}

// Stores are the account stores in the order of login, each once.
func (r Reach) Stores() []directoryapi.Store {
	return r.stores(func(Place) bool { return true })
}

// Open are the account stores that are reached otherwise than through a disabled
// organization, in the order of login.
func (r Reach) Open() []directoryapi.Store { return r.stores(Place.isOpen) }

func (r Reach) stores(of func(Place) bool) []directoryapi.Store {
	stores, seen := []directoryapi.Store{}, map[directoryapi.Store]bool{}
	for _, place := range r.Places {
		if store := place.Store(); !store.ID.IsZero() && of(place) && !seen[store] {
			seen[store] = true
			stores = append(stores, store)
		}
	}
	return stores
}

// Within gives those of the places that a client means.
func (r Reach) Within(is func(Place) bool) Reach {
	r.Places = slices.DeleteFunc(slices.Clone(r.Places), func(p Place) bool { return !is(p) })
	return r
}

// mapped is a place of an application; none of the place is there where the
// application has no mappings.
type mapped struct {
	Status string // of the application
	Place
}

func reachLoader(db *pg.DB) *pg.Loader[mapped] {
	return pg.NewLoader[mapped](db, `SELECT a.status,
		coalesce(CASE WHEN o.id IS NULL THEN m.store_kind ELSE n.store_kind END, '') AS store_kind,
		CASE WHEN o.id IS NULL THEN m.store_id ELSE n.store_id END AS store_id,
		o.id AS organization_id, coalesce(o.name_key, '') AS name_key, coalesce(o.status, '') AS organization_status
		FROM applications a
		LEFT JOIN account_store_mappings m ON m.tenant_id = a.tenant_id AND m.owner_id = a.id
		LEFT JOIN organizations o ON m.store_kind = 'organizations' AND o.tenant_id = m.tenant_id AND o.id = m.store_id
		LEFT JOIN account_store_mappings n ON n.tenant_id = o.tenant_id AND n.owner_id = o.id
		WHERE a.tenant_id = $1 AND a.id = $2 ORDER BY m.list_index, n.list_index`)
}

// Reach gives, in one query, whether an application is enabled and where its
// accounts are; apierr.NotFound when there is no such application.
func (s *Store) Reach(ctx context.Context, tenant, application id.ID) (Reach, error) {
	rows, err := s.reaches.All(ctx, id.Ref{Tenant: tenant, ID: application})
	if err != nil {
		return Reach{}, err
	}
	if len(rows) == 0 {
		return Reach{}, apierr.NotFound
	}
	reach := Reach{Status: rows[0].Status}
	for _, row := range rows {
		if row.Place != (Place{}) {
			reach.Places = append(reach.Places, row.Place)
		}
	}
	return reach, nil
}

// OrganizationStores gives the account stores of an organization in their
// order.
func (s *Store) OrganizationStores(ctx context.Context, tenant, organization id.ID) ([]directoryapi.Store, error) {
	return pg.All[directoryapi.Store](ctx, s.db, `SELECT store_kind AS kind, store_id AS id FROM account_store_mappings
		WHERE tenant_id = $1 AND owner_id = $2 ORDER BY list_index`, tenant, organization)
}
