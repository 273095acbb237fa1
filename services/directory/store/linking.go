package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// LinkCandidate is an account that has authenticated, and its relation to the default account
// store of the login.
type LinkCandidate struct {
	directoryapi.Account
	TargetID       id.ID // directory of the store; zero where the store was deleted
	TargetStatus   string
	TargetProvider string
	StoreStatus    string
	InStore        bool // the store contains the account

	Counterparts []Counterpart `db:"-"`
}

// Counterpart is an account of the store's directory that is linked to the candidate, or has its
// user name or email.
type Counterpart struct {
	directoryapi.Account
	Linked  bool
	InStore bool // the store contains the counterpart
}

// SameEmail reports whether a counterpart has the email of the candidate.
func (a LinkCandidate) SameEmail(c Counterpart) bool { return field.SameMailbox(a.Email, c.Email) }

// LinkCandidate reads an account and its relation to a store, or returns apierr.NotFound for the
// account.
func (s *Store) LinkCandidate(ctx context.Context, tenant, account id.ID,
	store directoryapi.Store) (LinkCandidate, error) {
	return linkCandidate(ctx, s.db, tenant, account, store)
}

// LinkCandidate is Store.LinkCandidate within the transaction, under its locks.
func (tx *Tx) LinkCandidate(ctx context.Context, tenant, account id.ID,
	store directoryapi.Store) (LinkCandidate, error) {
	return linkCandidate(ctx, tx, tenant, account, store)
}

func linkCandidate(ctx context.Context, q pg.Querier, tenant, account id.ID, store directoryapi.Store) (LinkCandidate,
	error) {
	a, err := pg.One[LinkCandidate](ctx, q,
		`SELECT `+accountColumns+`, target.id AS target_id, coalesce(target.status, '')
		AS target_status,
		coalesce(target.provider_id, '') AS target_provider, coalesce(target.store_status, '') AS store_status,
		coalesce(target.id = a.directory_id AND ($3 = 'directories' OR `+isMember+`), false) AS in_store
		FROM `+accountsWithDirectory+`
		LEFT JOIN (
			SELECT d.id, d.status, d.provider_id, d.status AS store_status FROM directories d
			WHERE $3 = 'directories' AND d.tenant_id = $1 AND d.id = $4
			UNION ALL
			SELECT d.id, d.status, d.provider_id, g.status FROM `+liveGroups+`
			WHERE $3 = 'groups' AND g.tenant_id = $1 AND g.id = $4
		) target ON true
		WHERE a.tenant_id = $1 AND a.id = $2`, tenant, account, store.Kind, store.ID)
	if err != nil || a.TargetID.IsZero() || a.InStore {
		return a, err
	}
	a.Counterparts, err = pg.All[Counterpart](ctx, q, `SELECT `+accountColumns+`, near.linked, $3 = 'directories' OR `+
		isMember+` AS in_store
		FROM (
			SELECT id, bool_or(linked) AS linked FROM (
				SELECT l.right_account_id AS id, true AS linked FROM account_links l
				WHERE l.tenant_id = $1 AND l.left_account_id = $2
				UNION ALL SELECT l.left_account_id, true FROM account_links l WHERE l.tenant_id = $1
				AND l.right_account_id = $2
				UNION ALL SELECT n.account_id, false FROM login_names n WHERE n.tenant_id = $1 AND n.directory_id = $5
				AND n.name = ANY ($6)
			) every GROUP BY id
		) near JOIN accounts a ON a.tenant_id = $1 AND a.id = near.id
		WHERE a.directory_id = $5 AND a.id <> $2 ORDER BY a.id`,
		tenant, account, store.Kind, store.ID, a.TargetID,
		[]string{field.LoginName(a.Email), field.LoginName(a.Username)})
	return a, err
}

// isMember is the SQL condition of an account in the group whose id is the fourth argument.
const isMember = `EXISTS (SELECT 1 FROM group_memberships m WHERE m.tenant_id = $1 AND m.group_id = $4
	AND m.account_id = a.id)`
