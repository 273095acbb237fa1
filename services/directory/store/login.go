package store

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Candidate is the account that a look-up of a login found, and the account store in which it was
// found.
type Candidate struct {
	directoryapi.Account
	PasswordHash    string
	DirectoryStatus string
	ProviderID      string // of the directory
	StoreKind       string
	StoreID         id.ID
	StoreStatus     string
}

// loginCriteria restrict and order the accounts that a look-up of a login finds.
type loginCriteria struct {
	nativeOnly     bool // no accounts of mirror directories
	passwordsFirst bool // accounts with a password, here or at their directory server, before the others
}

// FindLogin looks up a login name, which is a user name or an email. It returns the account whose
// password is to be checked, in the first of the account stores that has one, or apierr.NotFound.
// In a directory a login name is unique (login_names). Accounts without a password are considered
// last: the copy of an account that a login has created (LinkedAccount) must not keep the original
// from logging in. It is one query for any number of stores.
func (s *Store) FindLogin(ctx context.Context, tenant id.ID, stores []directoryapi.Store,
	login string) (Candidate, error) {
	return s.findByLogin(ctx, tenant, stores, login, loginCriteria{passwordsFirst: true})
}

// FindAccountByLogin is FindLogin, but an account without a password counts like any other.
func (s *Store) FindAccountByLogin(ctx context.Context, tenant id.ID, stores []directoryapi.Store,
	login string) (Candidate, error) {
	return s.findByLogin(ctx, tenant, stores, login, loginCriteria{})
}

// FindNativeAccountByLogin is FindAccountByLogin without the accounts of mirror directories.
func (s *Store) FindNativeAccountByLogin(ctx context.Context, tenant id.ID, stores []directoryapi.Store,
	login string) (Candidate, error) {
	return s.findByLogin(ctx, tenant, stores, login, loginCriteria{nativeOnly: true})
}

func (s *Store) findByLogin(ctx context.Context, tenant id.ID, stores []directoryapi.Store, login string,
	criteria loginCriteria) (Candidate, error) {
	if !utf8.ValidString(login) || strings.ContainsRune(login, 0) {
		return Candidate{}, apierr.NotFound // no account can have it
	}
	kinds, ids := storeColumns(stores)
	return pg.One[Candidate](ctx, s.db, `WITH stores AS (
			SELECT * FROM unnest($2::text[], $3::uuid[]) WITH ORDINALITY AS store (kind, id, position)
		), found AS (
			SELECT s.position, s.kind AS store_kind, s.id AS store_id, d.status AS store_status, n.account_id
			FROM stores s
			JOIN directories d ON d.tenant_id = $1 AND d.id = s.id
			JOIN login_names n ON n.tenant_id = $1 AND n.directory_id = d.id AND n.name = $4
			WHERE s.kind = 'directories'
			UNION ALL
			SELECT s.position, s.kind, s.id, g.status, n.account_id
			FROM stores s
			JOIN groups g ON g.tenant_id = $1 AND g.id = s.id
			JOIN login_names n ON n.tenant_id = $1 AND n.directory_id = g.directory_id AND n.name = $4
			JOIN group_memberships m ON m.tenant_id = $1 AND m.group_id = g.id AND m.account_id = n.account_id
			WHERE s.kind = 'groups'
		)
		SELECT `+accountColumns+`, a.password_hash, d.status AS directory_status, d.provider_id,
			f.store_kind, f.store_id, f.store_status
		FROM found f
		JOIN accounts a ON a.tenant_id = $1 AND a.id = f.account_id
		JOIN directories d ON d.tenant_id = $1 AND d.id = a.directory_id
		WHERE NOT $5 OR d.provider_id = 'native'
		ORDER BY $6 AND a.password_hash = '' AND d.provider_id NOT IN ('ldap', 'ad'), f.position
		LIMIT 1`, tenant, kinds, ids, field.LoginName(login), criteria.nativeOnly, criteria.passwordsFirst)
}

// storeColumns returns the kinds and the ids of stores, as arguments of unnest.
func storeColumns(stores []directoryapi.Store) (kinds []string, ids []id.ID) {
	kinds, ids = make([]string, len(stores)), make([]id.ID, len(stores))
	for i, store := range stores {
		kinds[i], ids[i] = store.Kind, store.ID
	}
	return kinds, ids
}

// AccountsOfLogin returns the accounts of a tenant with a login name, in whatever directory.
func (s *Store) AccountsOfLogin(ctx context.Context, tenant id.ID, login string) ([]id.ID, error) {
	return pg.Values[id.ID](ctx, s.db, `SELECT n.account_id FROM directories d
		JOIN login_names n ON n.tenant_id = $1 AND n.directory_id = d.id AND n.name = $2
		WHERE d.tenant_id = $1 ORDER BY n.account_id`, tenant, field.LoginName(login))
}

// FirstUnanswered returns the position of the first of the account stores whose agent did not answer
// a check after since: 1 for the first store, 0 for none.
func (s *Store) FirstUnanswered(ctx context.Context, tenant id.ID, stores []directoryapi.Store,
	since time.Time) (int, error) {
	kinds, ids := storeColumns(stores)
	return pg.Value[int](ctx, s.db, `SELECT coalesce(min(s.position), 0)::integer
		FROM unnest($2::text[], $3::uuid[]) WITH ORDINALITY AS s (kind, id, position)
		LEFT JOIN groups g ON g.tenant_id = $1 AND g.id = s.id AND s.kind = 'groups'
		JOIN agents a ON a.tenant_id = $1 AND a.directory_id = CASE s.kind WHEN 'groups' THEN g.directory_id ELSE s.id
		END
		WHERE a.unanswered_at > $4`, tenant, kinds, ids, since)
}

// NamedStores returns those of the stores that exist, with their names.
func (s *Store) NamedStores(ctx context.Context, tenant id.ID,
	stores []directoryapi.Store) ([]directoryapi.NamedStore, error) {
	kinds, ids := storeColumns(stores)
	return pg.All[directoryapi.NamedStore](ctx, s.db, `WITH stores AS (
			SELECT DISTINCT store.kind, store.id FROM unnest($2::text[], $3::uuid[]) AS store (kind, id)
		)
		SELECT s.kind, s.id, d.name, d.status, d.id AS directory_id, d.provider_id, d.name AS directory
		FROM stores s JOIN directories d ON d.tenant_id = $1 AND d.id = s.id WHERE s.kind = 'directories'
		UNION ALL
		SELECT s.kind, s.id, g.name, g.status, d.id, d.provider_id, d.name
		FROM stores s JOIN groups g ON g.tenant_id = $1 AND g.id = s.id
		JOIN directories d ON d.tenant_id = $1 AND d.id = g.directory_id
		WHERE s.kind = 'groups'`, tenant, kinds, ids)
}
