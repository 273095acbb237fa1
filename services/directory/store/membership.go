package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// Membership is the membership of an account in a group of its directory.
type Membership struct {
	TenantID    id.ID
	ID          id.ID
	DirectoryID id.ID
	GroupID     id.ID
	AccountID   id.ID
	CreatedAt   time.Time // also the time of its last change
}

const membershipColumns = `m.tenant_id, m.id, m.directory_id, m.group_id, m.account_id, m.created_at`

// Memberships are searched and sorted by these attributes.
var Memberships = list.Spec{
	"createdAt":  {Column: "m.created_at", Kind: list.Time},
	"modifiedAt": {Column: "m.created_at", Kind: list.Time},

	list.AfterKey: list.After("m.id"),
}

// Membership returns a membership, or apierr.NotFound.
func (s *Store) Membership(ctx context.Context, tenant, membership id.ID) (Membership, error) {
	return pg.One[Membership](ctx, s.db, `SELECT `+membershipColumns+` FROM group_memberships m
		JOIN directories d ON d.tenant_id = m.tenant_id AND d.id = m.directory_id WHERE m.tenant_id = $1 AND m.id = $2`,
		tenant, membership)
}

// AccountMemberships returns a page of the memberships of an account.
func (s *Store) AccountMemberships(ctx context.Context, account id.Ref,
	query list.Query) (list.Page[Membership], error) {
	return listsql.Select[Membership](ctx, s.db, Memberships, query, membershipColumns,
		`FROM group_memberships m WHERE m.tenant_id = $1 AND m.account_id = $2`, "m.id", account.Tenant, account.ID)
}

// GroupMemberships returns a page of the memberships of a group.
func (s *Store) GroupMemberships(ctx context.Context, group id.Ref, query list.Query) (list.Page[Membership], error) {
	return listsql.Select[Membership](ctx, s.db, Memberships, query, membershipColumns,
		`FROM group_memberships m WHERE m.tenant_id = $1 AND m.group_id = $2`, "m.id", group.Tenant, group.ID)
}

// InsertMembership makes an account a member of a group; a membership that exists is
// apierr.Exists. Both must be in the membership's directory, and the transaction must have locked
// both (LockAccountShared, LockGroupShared).
func (tx *Tx) InsertMembership(_ context.Context, m Membership) error {
	tx.invalidateAccess(m.TenantID, m.AccountID)
	tx.Queue(`INSERT INTO group_memberships (tenant_id, id, directory_id, group_id, account_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		m.TenantID, m.ID, m.DirectoryID, m.GroupID, m.AccountID, m.CreatedAt)
	return nil
}

// DeleteMembership removes an account from a group.
func (tx *Tx) DeleteMembership(ctx context.Context, m Membership) error {
	tx.invalidateAccess(m.TenantID, m.AccountID)
	return pg.MustChange(ctx, tx, `DELETE FROM group_memberships WHERE tenant_id = $1 AND id = $2`, m.TenantID, m.ID)
}

// MembershipCount is of how many of some groups an account is a member.
type MembershipCount struct {
	Groups  int
	Enabled int // how many of these are enabled
}

// CountMemberships counts of which groups an account is a member.
func (s *Store) CountMemberships(ctx context.Context, tenant, account id.ID, groups []id.ID) (MembershipCount, error) {
	return pg.One[MembershipCount](ctx, s.db, `SELECT count(*) AS groups, count(*) FILTER (WHERE g.status = 'ENABLED')
		AS enabled
		FROM group_memberships m JOIN groups g ON g.tenant_id = $1 AND g.id = m.group_id
		WHERE m.tenant_id = $1 AND m.account_id = $2 AND m.group_id = ANY ($3)`, tenant, account, groups)
}
