package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Mirrored is an account of a mirror and what its source has said of it.
type Mirrored struct {
	ExternalID     string
	AccountID      id.ID
	Digest         []byte // of all that was sent
	Disabled       bool   // at the source
	Wanted         string // status that an administrator wants
	Status         string // that the account has
	UsernameFolded string
	EmailFolded    string
}

// MirroredGroup is a group of a mirror and what its source has said of it.
type MirroredGroup struct {
	ExternalID string
	GroupID    id.ID
	Digest     []byte
	NameFolded string
}

// Owned is a name of a directory and what has it: an account, or a group.
type Owned struct {
	Name string
	ID   id.ID
}

// LockMirror makes the transaction the only one that writes what a mirror copies.
func (tx *Tx) LockMirror(ctx context.Context, directory id.ID) error {
	_, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, directory.String())
	return err
}

// MirroredAccounts returns those of the accounts that are there.
//
// It and the look-ups below join their keys with LIMIT 1, one row of an index for
// each key. With = ANY PostgreSQL may read the whole directory for every page of a
// sync: its statistics do not know a directory that is being filled.
func (tx *Tx) MirroredAccounts(ctx context.Context, tenant, directory id.ID, externalIDs []string) ([]Mirrored, error) {
	return pg.All[Mirrored](ctx, tx, `SELECT m.external_id, m.account_id, m.digest, m.disabled, m.status AS wanted,
			a.status, a.username_folded, a.email_folded
		FROM unnest($3::text[]) AS wanted (id)
		CROSS JOIN LATERAL (SELECT external_id, account_id, digest, disabled, status FROM mirrored_accounts
			WHERE tenant_id = $1 AND directory_id = $2 AND external_id = wanted.id LIMIT 1) m
		CROSS JOIN LATERAL (SELECT status, username_folded, email_folded FROM accounts WHERE tenant_id = $1 AND id = m.account_id LIMIT 1) a`,
		tenant, directory, externalIDs)
}

// LoginNames returns those of the names that lead a login of the directory to an
// account.
func (tx *Tx) LoginNames(ctx context.Context, tenant, directory id.ID, folded []string) ([]Owned, error) {
	return pg.All[Owned](ctx, tx, `SELECT n.name, n.account_id AS id FROM (SELECT DISTINCT unnest($3::text[]) COLLATE "C" AS name) AS wanted
		CROSS JOIN LATERAL (SELECT name, account_id FROM login_names
			WHERE tenant_id = $1 AND directory_id = $2 AND name = wanted.name LIMIT 1) n`, tenant, directory, folded)
}

// GroupNames returns those of the names that a group of the directory has.
func (tx *Tx) GroupNames(ctx context.Context, tenant, directory id.ID, folded []string) ([]Owned, error) {
	return pg.All[Owned](ctx, tx, `SELECT g.name, g.id FROM (SELECT DISTINCT unnest($3::text[]) COLLATE "C" AS name) AS wanted
		CROSS JOIN LATERAL (SELECT name_folded AS name, id FROM groups
			WHERE tenant_id = $1 AND directory_id = $2 AND name_folded = wanted.name LIMIT 1) g`, tenant, directory, folded)
}

// MirrorAccount is an account to be written, and what its source has said of it.
type MirrorAccount struct {
	directoryapi.Account
	Mirrored
	PasswordHash string
}

// InsertMirrored adds accounts to a mirror.
func (tx *Tx) InsertMirrored(ctx context.Context, tenant, directory id.ID, accounts []MirrorAccount, seen int64) error {
	if len(accounts) == 0 {
		return nil
	}
	rows, origins := make([][]any, len(accounts)), make([][]any, len(accounts))
	statuses := map[string]int64{}
	for i, a := range accounts {
		rows[i] = accountRow(a.Account, a.PasswordHash, nil)
		origins[i] = []any{tenant, directory, a.ExternalID, a.ID, a.Digest, a.Disabled, a.Wanted, seen}
		statuses[a.Account.Status]++
	}
	if err := tx.copyRows(ctx, "accounts", accountRowColumns, rows); err != nil {
		return err
	}
	columns := "tenant_id, directory_id, external_id, account_id, digest, disabled, status, seen"
	if err := tx.copyRows(ctx, "mirrored_accounts", columns, origins); err != nil {
		return err
	}
	if err := tx.addCounts(ctx, tenant, directory, statuses); err != nil {
		return err
	}
	return tx.joinGroups(ctx, tenant, directory, accounts)
}

func (tx *Tx) copyRows(ctx context.Context, table, columns string, rows [][]any) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, strings.Split(columns, ", "), pgx.CopyFromRows(rows))
	return pg.Error(err)
}

// joinGroups makes new accounts members of the groups that named them before they
// were there.
func (tx *Tx) joinGroups(ctx context.Context, tenant, directory id.ID, accounts []MirrorAccount) error {
	byExternal := map[string]id.ID{}
	names := make([]string, len(accounts))
	for i, a := range accounts {
		names[i], byExternal[a.ExternalID] = a.ExternalID, a.ID
	}
	waiting, err := pg.All[struct {
		ExternalID string
		GroupID    id.ID
	}](ctx, tx, `DELETE FROM mirrored_members WHERE tenant_id = $1 AND directory_id = $2 AND external_id = ANY ($3)
		RETURNING external_id, group_id`, tenant, directory, names)
	if err != nil || len(waiting) == 0 {
		return err
	}
	now := accounts[0].CreatedAt
	ids, groups, members := make([]id.ID, len(waiting)), make([]id.ID, len(waiting)), make([]id.ID, len(waiting))
	for i, w := range waiting {
		ids[i], groups[i], members[i] = id.New(now), w.GroupID, byExternal[w.ExternalID]
	}
	return tx.insertMemberships(ctx, tenant, directory, ids, groups, members, now)
}

func (tx *Tx) insertMemberships(ctx context.Context, tenant, directory id.ID, ids, groups, accounts []id.ID, now time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO group_memberships (tenant_id, id, directory_id, group_id, account_id, created_at)
		SELECT $1, new.id, $2, new.group_id, new.account_id, $6 FROM unnest($3::uuid[], $4::uuid[], $5::uuid[]) AS new (id, group_id, account_id)
		ON CONFLICT (tenant_id, group_id, account_id) DO NOTHING`, tenant, directory, ids, groups, accounts, now)
	return err
}

// addCounts adds to the counts of a directory's accounts by status.
func (tx *Tx) addCounts(ctx context.Context, tenant, directory id.ID, statuses map[string]int64) error {
	var names []string
	var counts []int64
	for _, status := range AccountStatuses {
		if statuses[status] != 0 {
			names, counts = append(names, status), append(counts, statuses[status])
		}
	}
	if len(names) == 0 {
		return nil
	}
	_, err := pg.Exec(ctx, tx, `INSERT INTO account_counts AS c (tenant_id, directory_id, status, shard, n)
		SELECT $1, d.id, step.status, `+countSlot+`, step.n FROM directories d, unnest($3::text[], $4::bigint[]) AS step (status, n)
		WHERE d.tenant_id = $1 AND d.id = $2 ORDER BY step.status
		ON CONFLICT (tenant_id, directory_id, status, shard) DO UPDATE SET n = c.n + excluded.n`, tenant, directory, names, counts)
	return err
}

// ReleaseNames returns accounts that are about to be updated names that nobody else
// has, so that others of the same update can have theirs.
func (tx *Tx) ReleaseNames(ctx context.Context, tenant id.ID, accounts []id.ID) error {
	_, err := pg.Exec(ctx, tx, `UPDATE accounts SET username_folded = id::text, email_folded = id::text
		WHERE tenant_id = $1 AND id = ANY ($2)`, tenant, accounts)
	return err
}

// UpdateMirrored writes what the source of a mirror has changed of accounts.
func (tx *Tx) UpdateMirrored(ctx context.Context, tenant, directory id.ID, accounts []MirrorAccount, seen int64) error {
	if len(accounts) == 0 {
		return nil
	}
	n := len(accounts)
	ids, texts := make([]id.ID, n), make([][]string, 11)
	given, middle, surname, digests, disabled := make([]*string, n), make([]*string, n), make([]*string, n), make([][]byte, n), make([]bool, n)
	for i := range texts {
		texts[i] = make([]string, n)
	}
	statuses := map[string]int64{}
	for i, a := range accounts {
		s := searchable(a.Account)
		ids[i], given[i], middle[i], surname[i], digests[i], disabled[i] = a.ID, a.GivenName, a.MiddleName, a.Surname, a.Digest, a.Disabled
		for j, text := range []string{a.Username, s.username, a.Email, s.email, s.givenName, s.middleName, s.surname, s.fullName, s.all,
			a.Account.Status, a.PasswordHash} {
			texts[j][i] = text
		}
		statuses[a.Mirrored.Status]--
		statuses[a.Account.Status]++
	}
	if _, err := pg.Exec(ctx, tx, `UPDATE accounts a SET username = n.username, username_folded = n.username_folded,
			email = n.email, email_folded = n.email_folded, given_name = n.given_name, given_name_folded = n.given_name_folded,
			middle_name = n.middle_name, middle_name_folded = n.middle_name_folded, surname = n.surname, surname_folded = n.surname_folded,
			full_name_folded = n.full_name_folded, search = n.search, status = n.status,
			password_hash = n.password_hash, modified_at = $17
		FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
			$12::text[], $13::text[], $14::text[], $15::text[], $16::text[])
			AS n (id, username, username_folded, email, email_folded, given_name_folded, middle_name_folded, surname_folded, full_name_folded,
			search, status, password_hash, given_name, middle_name, surname)
		WHERE a.tenant_id = $1 AND a.id = n.id`,
		tenant, ids, texts[0], texts[1], texts[2], texts[3], texts[4], texts[5], texts[6], texts[7], texts[8], texts[9], texts[10], given, middle,
		surname,
		accounts[0].ModifiedAt); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, tx, `UPDATE mirrored_accounts m SET digest = n.digest, disabled = n.disabled, seen = greatest(m.seen, $5)
		FROM unnest($2::uuid[], $3::bytea[], $4::boolean[]) AS n (account_id, digest, disabled)
		WHERE m.tenant_id = $1 AND m.account_id = n.account_id`, tenant, ids, digests, disabled, seen); err != nil {
		return err
	}
	return tx.addCounts(ctx, tenant, directory, statuses)
}

// SetMirroredStatuses writes the statuses of accounts whose other changes were
// refused, and whether the source has them disabled.
func (tx *Tx) SetMirroredStatuses(ctx context.Context, tenant, directory id.ID, accounts []MirrorAccount) error {
	if len(accounts) == 0 {
		return nil
	}
	ids, texts, disabled := make([]id.ID, len(accounts)), make([]string, len(accounts)), make([]bool, len(accounts))
	statuses := map[string]int64{}
	for i, a := range accounts {
		ids[i], texts[i], disabled[i] = a.AccountID, a.Account.Status, a.Disabled
		statuses[a.Mirrored.Status]--
		statuses[a.Account.Status]++
	}
	tx.Queue(`UPDATE accounts a SET status = n.status, modified_at = $4 FROM unnest($2::uuid[], $3::text[]) AS n (id, status)
		WHERE a.tenant_id = $1 AND a.id = n.id`, tenant, ids, texts, accounts[0].ModifiedAt)
	tx.Queue(`UPDATE mirrored_accounts m SET disabled = n.disabled, digest = '' FROM unnest($2::uuid[], $3::boolean[]) AS n (id, disabled)
		WHERE m.tenant_id = $1 AND m.account_id = n.id`, tenant, ids, disabled)
	return tx.addCounts(ctx, tenant, directory, statuses)
}

// MarkSeen notes that a sync held the accounts.
func (tx *Tx) MarkSeen(ctx context.Context, tenant, directory id.ID, externalIDs []string, seen int64) error {
	_, err := pg.Exec(ctx, tx, `UPDATE mirrored_accounts m SET seen = $4 FROM unnest($3::text[]) AS held (id)
		CROSS JOIN LATERAL (SELECT ctid FROM mirrored_accounts
			WHERE tenant_id = $1 AND directory_id = $2 AND external_id = held.id AND seen < $4 LIMIT 1) found
		WHERE m.tenant_id = $1 AND m.ctid = found.ctid`, tenant, directory, externalIDs, seen)
	return err
}

// SetWantedStatus records the status that an administrator wants a mirrored account to have,
// and returns whether its source has it disabled. It records nothing for an account that no
// sync has made.
func (tx *Tx) SetWantedStatus(ctx context.Context, tenant, account id.ID, status string) (disabled bool, err error) {
	found, err := pg.Values[bool](ctx, tx, `UPDATE mirrored_accounts SET status = $3 WHERE tenant_id = $1 AND account_id = $2
		RETURNING disabled`, tenant, account, status)
	return len(found) > 0 && found[0], err
}

// Absent names mirrored accounts or groups to be removed: those with the external
// ids or, where there are none, those that no sync from number Before on held.
type Absent struct {
	TenantID    id.ID
	DirectoryID id.ID
	ExternalIDs []string
	Before      int64
}

// RemoveAbsentAccounts deletes at most limit of the accounts, with all that hangs
// on them, and returns their ids.
func (tx *Tx) RemoveAbsentAccounts(ctx context.Context, of Absent, limit int) ([]id.ID, error) {
	gone, err := pg.All[struct {
		ID     id.ID
		Status string
	}](ctx, tx, `WITH absent AS (
			SELECT account_id FROM mirrored_accounts WHERE tenant_id = $1 AND directory_id = $2
				AND CASE WHEN $3::text[] IS NULL THEN seen < $4 ELSE external_id = ANY ($3) END LIMIT $5
		), gone AS (
			DELETE FROM accounts WHERE tenant_id = $1 AND id IN (SELECT account_id FROM absent) RETURNING id, status
		), data AS (
			DELETE FROM custom_data WHERE tenant_id = $1 AND owner_id IN (SELECT id FROM gone)
		)
		SELECT id, status FROM gone`, of.TenantID, of.DirectoryID, of.ExternalIDs, of.Before, limit)
	if err != nil || len(gone) == 0 {
		return nil, err
	}
	ids, statuses := make([]id.ID, len(gone)), map[string]int64{}
	for i, account := range gone {
		ids[i] = account.ID
		statuses[account.Status]--
	}
	return ids, tx.addCounts(ctx, of.TenantID, of.DirectoryID, statuses)
}

// RemoveAbsentGroups is RemoveAbsentAccounts for groups.
func (tx *Tx) RemoveAbsentGroups(ctx context.Context, of Absent, limit int) ([]id.ID, error) {
	return pg.Values[id.ID](ctx, tx, `WITH absent AS (
			SELECT group_id FROM mirrored_groups WHERE tenant_id = $1 AND directory_id = $2
				AND CASE WHEN $3::text[] IS NULL THEN seen < $4 ELSE external_id = ANY ($3) END LIMIT $5
		), gone AS (
			DELETE FROM groups WHERE tenant_id = $1 AND id IN (SELECT group_id FROM absent) RETURNING id
		), data AS (
			DELETE FROM custom_data WHERE tenant_id = $1 AND owner_id IN (SELECT id FROM gone)
		)
		SELECT id FROM gone`, of.TenantID, of.DirectoryID, of.ExternalIDs, of.Before, limit)
}

// MirroredGroups returns those of the groups that are there.
func (tx *Tx) MirroredGroups(ctx context.Context, tenant, directory id.ID, externalIDs []string) ([]MirroredGroup, error) {
	return pg.All[MirroredGroup](ctx, tx, `SELECT m.external_id, m.group_id, m.digest, g.name_folded FROM unnest($3::text[]) AS wanted (id)
		CROSS JOIN LATERAL (SELECT external_id, group_id, digest FROM mirrored_groups
			WHERE tenant_id = $1 AND directory_id = $2 AND external_id = wanted.id LIMIT 1) m
		CROSS JOIN LATERAL (SELECT name_folded FROM groups WHERE tenant_id = $1 AND id = m.group_id LIMIT 1) g`, tenant, directory, externalIDs)
}

// ReleaseGroupNames is ReleaseNames for groups.
func (tx *Tx) ReleaseGroupNames(ctx context.Context, tenant id.ID, groups []id.ID) error {
	_, err := pg.Exec(ctx, tx, `UPDATE groups SET name_folded = id::text WHERE tenant_id = $1 AND id = ANY ($2)`, tenant, groups)
	return err
}

// PutMirroredGroup writes a group of a mirror, which is new or not. Its status
// stays.
func (tx *Tx) PutMirroredGroup(_ context.Context, g directoryapi.Group, of MirroredGroup, seen int64) error {
	name, description := field.Fold(g.Name), field.FoldOptional(g.Description)
	tx.Queue(`INSERT INTO groups (tenant_id, id, directory_id, name, name_folded, description, description_folded,
			search, status, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
		ON CONFLICT (tenant_id, id) DO UPDATE SET name = excluded.name, name_folded = excluded.name_folded,
			description = excluded.description, description_folded = excluded.description_folded, search = excluded.search,
			modified_at = excluded.modified_at`,
		g.TenantID, g.ID, g.DirectoryID, g.Name, name, g.Description, description, name+"\n"+description, g.Status, g.CreatedAt, g.ModifiedAt)
	tx.Queue(`INSERT INTO mirrored_groups AS m (tenant_id, directory_id, external_id, group_id, digest, seen)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, directory_id, external_id) DO UPDATE SET digest = excluded.digest, seen = greatest(m.seen, excluded.seen)`,
		g.TenantID, g.DirectoryID, of.ExternalID, g.ID, of.Digest, seen)
	return nil
}

// MarkGroupSeen notes that a sync held the group.
func (tx *Tx) MarkGroupSeen(_ context.Context, tenant, directory id.ID, externalID string, seen int64) {
	tx.Queue(`UPDATE mirrored_groups SET seen = $4 WHERE tenant_id = $1 AND directory_id = $2 AND external_id = $3 AND seen < $4`,
		tenant, directory, externalID, seen)
}

// AccountsOf returns the accounts of external ids, by these.
func (tx *Tx) AccountsOf(ctx context.Context, tenant, directory id.ID, externalIDs []string) (map[string]id.ID, error) {
	found, err := pg.All[Owned](ctx, tx, `SELECT m.name, m.id FROM unnest($3::text[]) AS wanted (id)
		CROSS JOIN LATERAL (SELECT external_id AS name, account_id AS id FROM mirrored_accounts
			WHERE tenant_id = $1 AND directory_id = $2 AND external_id = wanted.id LIMIT 1) m`, tenant, directory, externalIDs)
	accounts := make(map[string]id.ID, len(found))
	for _, one := range found {
		accounts[one.Name] = one.ID
	}
	return accounts, err
}

// SetMembers makes accounts, and nobody else, the members of a group; those that
// are not there yet will be when they come.
func (tx *Tx) SetMembers(ctx context.Context, g directoryapi.Group, accounts []id.ID, awaited []string, now time.Time) error {
	tx.Queue(`DELETE FROM group_memberships WHERE tenant_id = $1 AND group_id = $2
		AND account_id NOT IN (SELECT unnest($3::uuid[]))`, g.TenantID, g.ID, accounts)
	tx.Queue(`DELETE FROM mirrored_members WHERE tenant_id = $1 AND group_id = $2`, g.TenantID, g.ID)
	tx.Queue(`INSERT INTO mirrored_members (tenant_id, directory_id, external_id, group_id)
		SELECT $1, $2, awaited.id, $3 FROM unnest($4::text[]) AS awaited (id) ON CONFLICT DO NOTHING`,
		g.TenantID, g.DirectoryID, g.ID, awaited)
	members, err := pg.Values[id.ID](ctx, tx, `SELECT new.id FROM unnest($3::uuid[]) AS new (id) WHERE new.id NOT IN (
		SELECT account_id FROM group_memberships WHERE tenant_id = $1 AND group_id = $2)`, g.TenantID, g.ID, accounts)
	if err != nil || len(members) == 0 {
		return err
	}
	ids, groups := make([]id.ID, len(members)), make([]id.ID, len(members))
	for i := range members {
		ids[i], groups[i] = id.New(now), g.ID
	}
	return tx.insertMemberships(ctx, g.TenantID, g.DirectoryID, ids, groups, members, now)
}
