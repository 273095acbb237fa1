package store

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Candidate is an account that a login leads to, and the store that decided.
type Candidate struct {
	directoryapi.Account
	PasswordHash    string
	DirectoryStatus string
	ProviderID      string // of the directory
	StoreKind       string
	StoreID         id.ID
	StoreStatus     string
}

// criteria are which accounts a login leads to.
type criteria struct {
	natives   bool // not those of mirror directories
	passwords bool // those that have a password, here or in their source, before the others
}

// FindLogin looks up a login name, which is a user name or an email: it returns the account
// whose password is to be compared, in the first of the stores that has one, or
// apierr.NotFound. A directory has a name once, be it the user name or the email. Accounts without a password come after all
// others: the copy that a login has made of an account (LinkedAccount) must not
// keep that account from its next login. It is one query, however many stores
// there are.
func (s *Store) FindLogin(ctx context.Context, tenant id.ID, stores []directoryapi.Store, login string) (Candidate, error) {
	return s.find(ctx, tenant, stores, login, criteria{passwords: true})
}

// FindAddressee is FindLogin whether or not the accounts have a password.
func (s *Store) FindAddressee(ctx context.Context, tenant id.ID, stores []directoryapi.Store, login string) (Candidate, error) {
	return s.find(ctx, tenant, stores, login, criteria{})
}

// FindNative is FindAddressee without the accounts of mirror directories.
func (s *Store) FindNative(ctx context.Context, tenant id.ID, stores []directoryapi.Store, login string) (Candidate, error) {
	return s.find(ctx, tenant, stores, login, criteria{natives: true})
}

func (s *Store) find(ctx context.Context, tenant id.ID, stores []directoryapi.Store, login string, among criteria) (Candidate, error) {
	if !utf8.ValidString(login) || strings.ContainsRune(login, 0) {
		return Candidate{}, apierr.NotFound // no account can have it
	}
	kinds, ids := columns(stores)
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
		LIMIT 1`, tenant, kinds, ids, field.Fold(login), among.natives, among.passwords)
}

// columns takes stores apart for a query that unnests them.
func columns(stores []directoryapi.Store) (kinds []string, ids []id.ID) {
	kinds, ids = make([]string, len(stores)), make([]id.ID, len(stores))
	for i, store := range stores {
		kinds[i], ids[i] = store.Kind, store.ID
	}
	return kinds, ids
}

// NamedStores returns the names of those of the stores that are there, in one
// query.
func (s *Store) NamedStores(ctx context.Context, tenant id.ID, stores []directoryapi.Store) ([]directoryapi.NamedStore, error) {
	kinds, ids := columns(stores)
	return pg.All[directoryapi.NamedStore](ctx, s.db, `WITH stores AS (
			SELECT DISTINCT store.kind, store.id FROM unnest($2::text[], $3::uuid[]) AS store (kind, id)
		)
		SELECT s.kind, s.id, d.name, d.status, d.id AS directory_id, d.provider_id, d.name AS directory
		FROM stores s JOIN directories d ON d.tenant_id = $1 AND d.id = s.id WHERE s.kind = 'directories'
		UNION ALL
		SELECT s.kind, s.id, g.name, g.status, d.id, d.provider_id, d.name
		FROM stores s JOIN groups g ON g.tenant_id = $1 AND g.id = s.id JOIN directories d ON d.tenant_id = $1 AND d.id = g.directory_id
		WHERE s.kind = 'groups'`, tenant, kinds, ids)
}

// Through is how many of some groups an account is a member of.
type Through struct {
	Groups  int
	Enabled int // of these, how many are enabled
}

// Through says which of the groups an account is a member of.
func (s *Store) Through(ctx context.Context, tenant, account id.ID, groups []id.ID) (Through, error) {
	return pg.One[Through](ctx, s.db, `SELECT count(*) AS groups, count(*) FILTER (WHERE g.status = 'ENABLED') AS enabled
		FROM group_memberships m JOIN groups g ON g.tenant_id = $1 AND g.id = m.group_id
		WHERE m.tenant_id = $1 AND m.account_id = $2 AND m.group_id = ANY ($3)`, tenant, account, groups)
}
