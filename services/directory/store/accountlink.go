package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// AccountLink joins two accounts of one person in two directories.
type AccountLink struct {
	TenantID       id.ID
	ID             id.ID
	LeftAccountID  id.ID
	RightAccountID id.ID
	CreatedAt      time.Time // also the time of its last change
}

const accountLinkColumns = `l.tenant_id, l.id, l.left_account_id, l.right_account_id, l.created_at`

// liveLinks are the links between accounts of existing directories.
const liveLinks = `account_links l
	JOIN accounts le ON le.tenant_id = l.tenant_id AND le.id = l.left_account_id
	JOIN directories ld ON ld.tenant_id = l.tenant_id AND
		ld.id = le.directory_id
	JOIN accounts ri ON ri.tenant_id = l.tenant_id AND ri.id = l.right_account_id
	JOIN directories rd ON rd.tenant_id = l.tenant_id
		AND rd.id = ri.directory_id`

// AccountLinks are searched and sorted by these attributes.
var AccountLinks = list.Spec{
	"createdAt":  {Column: "l.created_at", Kind: list.Time},
	"modifiedAt": {Column: "l.created_at", Kind: list.Time},
}

// AccountLink returns a link, or apierr.NotFound.
func (s *Store) AccountLink(ctx context.Context, tenant, link id.ID) (AccountLink, error) {
	return pg.One[AccountLink](ctx, s.db, `SELECT `+accountLinkColumns+` FROM `+liveLinks+` WHERE l.tenant_id = $1
		AND l.id = $2`, tenant, link)
}

// AccountLinks returns a page of the links that have the account at one end.
func (s *Store) AccountLinks(ctx context.Context, account id.Ref, query list.Query) (list.Page[AccountLink], error) {
	return listsql.Select[AccountLink](ctx, s.db, AccountLinks, query, accountLinkColumns,
		`FROM `+liveLinks+` WHERE l.tenant_id = $1 AND (l.left_account_id = $2 OR l.right_account_id = $2)`, "l.id",
		account.Tenant, account.ID)
}

// LinkedAccounts returns a page of the accounts at the other ends of an account's
// links.
func (s *Store) LinkedAccounts(ctx context.Context, account id.Ref,
	query list.Query) (list.Page[directoryapi.Account], error) {
	return listsql.Select[directoryapi.Account](ctx, s.db, Accounts, query, accountColumns,
		`FROM `+accountsWithDirectory+` WHERE a.tenant_id = $1 AND a.id IN (
		SELECT l.right_account_id FROM account_links l WHERE l.tenant_id = $1 AND l.left_account_id = $2
		UNION ALL SELECT l.left_account_id FROM account_links l WHERE l.tenant_id = $1 AND l.right_account_id = $2)`,
		"a.id",
		account.Tenant, account.ID)
}

// DirectedLink is a link from the side of one of its accounts.
type DirectedLink struct {
	LinkID           id.ID
	AccountID        id.ID
	OtherID          id.ID
	OtherDirectoryID id.ID
}

// LinksOf returns all links of the accounts, without those to accounts of deleted directories. A
// link between two of the accounts is returned once for each.
func (s *Store) LinksOf(ctx context.Context, tenant id.ID, accounts ...id.ID) ([]DirectedLink, error) {
	return linksOf(ctx, s.db, tenant, accounts)
}

// LinksOf is Store.LinksOf within the transaction, under its locks.
func (tx *Tx) LinksOf(ctx context.Context, tenant id.ID, accounts ...id.ID) ([]DirectedLink, error) {
	return linksOf(ctx, tx, tenant, accounts)
}

func linksOf(ctx context.Context, q pg.Querier, tenant id.ID, accounts []id.ID) ([]DirectedLink, error) {
	return pg.All[DirectedLink](ctx, q,
		`SELECT r.link_id, r.account_id, r.other_id, o.directory_id AS other_directory_id
		FROM (
		SELECT l.id AS link_id, l.left_account_id AS account_id, l.right_account_id AS other_id
		FROM account_links l WHERE l.tenant_id = $1 AND l.left_account_id = ANY ($2)
		UNION ALL SELECT l.id, l.right_account_id, l.left_account_id
		FROM account_links l WHERE l.tenant_id = $1 AND l.right_account_id = ANY ($2)) r
		JOIN accounts o ON o.tenant_id = $1 AND o.id = r.other_id
		JOIN directories d ON d.tenant_id = $1 AND d.id = o.directory_id`, tenant, accounts)
}

// InsertAccountLink links two accounts, which the transaction must have locked.
func (tx *Tx) InsertAccountLink(ctx context.Context, l AccountLink) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO account_links (tenant_id, id, left_account_id, right_account_id, created_at)
		VALUES ($1, $2, $3, $4, $5)`,
		l.TenantID, l.ID, l.LeftAccountID, l.RightAccountID, l.CreatedAt)
	return err
}

// DeleteAccountLink removes a link, not its accounts.
func (tx *Tx) DeleteAccountLink(ctx context.Context, tenant, link id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM account_links WHERE tenant_id = $1 AND id = $2`, tenant, link)
}

// DeleteProvisionedLinks deletes the link that a login created together with an account
// (provisioning), if there is one: both have the same creation time, to the microsecond. Other
// links are created later.
func (tx *Tx) DeleteProvisionedLinks(ctx context.Context, a directoryapi.Account) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM account_links WHERE tenant_id = $1 AND right_account_id = $2
		AND created_at = $3`, a.TenantID, a.ID, a.CreatedAt)
	return err
}
