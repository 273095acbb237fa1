package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// MirroredAccount is an account of a mirror directory with what its source last sent of it.
// agentsync.go has the syncs themselves.
type MirroredAccount struct {
	ExternalID     string
	AccountID      id.ID
	Digest         []byte // SHA-256 of what the source last sent
	Disabled       bool   // whether the source has disabled the account
	AssignedStatus string // status that an administrator has assigned
	Status         string // effective status of the account
	Absent         bool   // whether the source no longer had the account
	UsernameFolded string
	EmailFolded    string
}

// MirroredGroup is a group of a mirror directory with what its source last sent of it.
type MirroredGroup struct {
	ExternalID string
	GroupID    id.ID
	Digest     []byte
	NameFolded string
}

// NameHolder is a name in a directory and the account or group that has it.
type NameHolder struct {
	Name   string
	ID     id.ID
	Absent bool // an absent account, which gives up its name to one that is there
}

// LockMirror takes the advisory lock of a mirror directory: no other transaction writes what is
// mirrored there.
func (tx *Tx) LockMirror(ctx context.Context, directory id.ID) error {
	_, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, directory.String())
	return err
}

// MirroredAccounts returns the accounts of the external ids that exist.
//
// This look-up and those below join their keys with LIMIT 1, which reads one index entry for each
// key. With = ANY, PostgreSQL may read the whole directory for every page of a sync, as it has no
// statistics yet of a directory that is being filled.
func (tx *Tx) MirroredAccounts(ctx context.Context, tenant, directory id.ID,
	externalIDs []string) ([]MirroredAccount, error) {
	return pg.All[MirroredAccount](ctx, tx,
		`SELECT m.external_id, m.account_id, m.digest, m.disabled, m.assigned_status,
			a.status, a.username_folded, a.email_folded, a.absent_since IS NOT NULL AS absent
		FROM unnest($3::text[]) AS wanted (id)
		CROSS JOIN LATERAL (SELECT external_id, account_id, digest, disabled, assigned_status FROM mirrored_accounts
			WHERE tenant_id = $1 AND directory_id = $2 AND external_id = wanted.id LIMIT 1) m
		CROSS JOIN LATERAL (SELECT status, username_folded, email_folded, absent_since FROM accounts
			WHERE tenant_id = $1 AND id = m.account_id LIMIT 1) a`,
		tenant, directory, externalIDs)
}

// LoginNames returns which of the login names are in use in the directory, and by which account.
func (tx *Tx) LoginNames(ctx context.Context, tenant, directory id.ID, folded []string) ([]NameHolder, error) {
	return pg.All[NameHolder](ctx, tx, `SELECT n.name, n.account_id AS id, a.absent_since IS NOT NULL AS absent
		FROM (SELECT DISTINCT unnest($3::text[]) COLLATE "C" AS name) AS wanted
		CROSS JOIN LATERAL (SELECT name, account_id FROM login_names
			WHERE tenant_id = $1 AND directory_id = $2 AND name = wanted.name LIMIT 1) n
		CROSS JOIN LATERAL (SELECT absent_since FROM accounts WHERE tenant_id = $1 AND id = n.account_id LIMIT 1) a`,
		tenant, directory, folded)
}

// GroupNames returns which of the group names are in use in the directory, and by which group.
func (tx *Tx) GroupNames(ctx context.Context, tenant, directory id.ID, folded []string) ([]NameHolder, error) {
	return pg.All[NameHolder](ctx, tx, `SELECT g.name, g.id, false AS absent
		FROM (SELECT DISTINCT unnest($3::text[]) COLLATE "C" AS name) AS wanted
		CROSS JOIN LATERAL (SELECT name_folded AS name, id FROM groups
			WHERE tenant_id = $1 AND directory_id = $2 AND name_folded = wanted.name LIMIT 1) g`, tenant, directory,
		folded)
}

// MirroredAccountWrite is an account to be written, with what its source has sent of it.
type MirroredAccountWrite struct {
	directoryapi.Account
	MirroredAccount
	PasswordHash string
}

// InsertMirroredAccounts inserts accounts into a mirror directory.
func (tx *Tx) InsertMirroredAccounts(ctx context.Context, tenant, directory id.ID, accounts []MirroredAccountWrite,
	seen int64) error {
	if len(accounts) == 0 {
		return nil
	}
	rows, origins := make([][]any, len(accounts)), make([][]any, len(accounts))
	statuses := map[string]int64{}
	for i, a := range accounts {
		tx.noteMixedScripts(a.Account)
		var err error
		if rows[i], err = accountRow(a.Account, a.PasswordHash, nil).Row(accountRowColumns); err != nil {
			return err
		}
		origins[i] = []any{tenant, directory, a.ExternalID, a.ID, a.Digest, a.Disabled, a.AssignedStatus, seen}
		statuses[a.Account.Status]++
	}
	if err := tx.copyRows(ctx, "accounts", accountRowColumns, rows); err != nil {
		return err
	}
	added := make([]directoryapi.Account, len(accounts))
	for i, a := range accounts {
		added[i] = a.Account
	}
	if err := tx.insertLoginNames(ctx, added); err != nil {
		return err
	}
	columns := "tenant_id, directory_id, external_id, account_id, digest, disabled, assigned_status, seen"
	if err := tx.copyRows(ctx, "mirrored_accounts", columns, origins); err != nil {
		return err
	}
	if err := tx.addCounts(ctx, tenant, directory, statuses); err != nil {
		return err
	}
	return tx.addAwaitedMemberships(ctx, tenant, directory, accounts)
}

func (tx *Tx) copyRows(ctx context.Context, table, columns string, rows [][]any) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{table}, pg.Columns(columns), pgx.CopyFromRows(rows))
	return pg.Error(err)
}

// addAwaitedMemberships makes new accounts members of the groups that named them as members before
// they existed.
func (tx *Tx) addAwaitedMemberships(ctx context.Context, tenant, directory id.ID,
	accounts []MirroredAccountWrite) error {
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

func (tx *Tx) insertMemberships(ctx context.Context, tenant, directory id.ID, ids, groups, accounts []id.ID,
	now time.Time) error {
	for _, group := range groups {
		tx.invalidateAccess(tenant, group)
	}
	_, err := pg.Exec(ctx, tx,
		`INSERT INTO group_memberships (tenant_id, id, directory_id, group_id, account_id, created_at)
		SELECT $1, new.id, $2, new.group_id, new.account_id, $6
		FROM unnest($3::uuid[], $4::uuid[], $5::uuid[]) AS new (id, group_id, account_id)
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
		SELECT $1, d.id, step.status, `+countSlot+`, step.n FROM directories d, unnest($3::text[], $4::bigint[]) AS step
			(status, n)
		WHERE d.tenant_id = $1 AND d.id = $2 ORDER BY step.status
		ON CONFLICT (tenant_id, directory_id, status, shard) DO UPDATE SET n = c.n + excluded.n`, tenant, directory,
		names, counts)
	return err
}

// ReleaseAccountNames deletes the login names of accounts, which are about to be updated, or are absent,
// so that other accounts of the same update can get those names. Their columns have the id in place of
// the names meanwhile.
func (tx *Tx) ReleaseAccountNames(ctx context.Context, tenant id.ID, accounts []id.ID) error {
	tx.Queue(`DELETE FROM login_names l
		USING accounts a CROSS JOIN LATERAL (VALUES (a.username_folded), (a.email_folded)) AS former (name)
		WHERE a.tenant_id = $1 AND a.id = ANY ($2)
			AND l.tenant_id = $1 AND l.directory_id = a.directory_id AND l.name = former.name AND l.account_id = a.id`,
		tenant, accounts)
	_, err := pg.Exec(ctx, tx, `UPDATE accounts SET username_folded = id::text, email_folded = id::text
		WHERE tenant_id = $1 AND id = ANY ($2)`, tenant, accounts)
	return err
}

// mirroredColumns has the values of mirrored accounts in one array for each column, for unnest.
type mirroredColumns struct {
	ID []id.ID

	Username, UsernameFolded, Email, EmailFolded     []string
	GivenName, MiddleName, Surname                   []*string
	GivenNameFolded, MiddleNameFolded, SurnameFolded []string
	FullNameFolded, Search, Status, PasswordHash     []string
	Digest                                           [][]byte
	Disabled                                         []bool
}

func (c *mirroredColumns) add(a MirroredAccountWrite) {
	s := normalizedText(a.Account)
	c.ID = append(c.ID, a.ID)
	c.Username, c.UsernameFolded = append(c.Username, a.Username), append(c.UsernameFolded, s.UsernameFolded)
	c.Email, c.EmailFolded = append(c.Email, a.Email), append(c.EmailFolded, s.EmailFolded)
	c.GivenName, c.GivenNameFolded = append(c.GivenName, a.GivenName), append(c.GivenNameFolded, s.GivenNameFolded)
	c.MiddleName, c.MiddleNameFolded = append(c.MiddleName, a.MiddleName),
		append(c.MiddleNameFolded, s.MiddleNameFolded)
	c.Surname, c.SurnameFolded = append(c.Surname, a.Surname), append(c.SurnameFolded, s.SurnameFolded)
	c.FullNameFolded, c.Search = append(c.FullNameFolded, s.FullNameFolded), append(c.Search, s.Search)
	c.Status, c.PasswordHash = append(c.Status, a.Account.Status), append(c.PasswordHash, a.PasswordHash)
	c.Digest, c.Disabled = append(c.Digest, a.Digest), append(c.Disabled, a.Disabled)
}

// UpdateMirroredAccounts updates accounts with what their source has changed.
func (tx *Tx) UpdateMirroredAccounts(ctx context.Context, tenant, directory id.ID, accounts []MirroredAccountWrite,
	seen int64) error {
	if len(accounts) == 0 {
		return nil
	}
	var columns mirroredColumns
	statuses := map[string]int64{}
	for _, a := range accounts {
		tx.noteMixedScripts(a.Account, a.UsernameFolded, a.EmailFolded)
		columns.add(a)
		statuses[a.MirroredAccount.Status]--
		statuses[a.Account.Status]++
		tx.invalidateAccess(tenant, a.ID) // an administrator may have changed the status since it was read
	}
	args := pg.Named(columns, pg.Args{"tenant_id": tenant, "modified_at": accounts[0].ModifiedAt, "seen": seen})
	tx.replaceMirroredLoginNames(tenant, directory, columns.ID, columns.UsernameFolded, columns.EmailFolded)
	if _, err := pg.Exec(ctx, tx, `UPDATE accounts a SET username = n.username, username_folded = n.username_folded,
			email = n.email, email_folded = n.email_folded, given_name = n.given_name,
			given_name_folded = n.given_name_folded, middle_name = n.middle_name,
			middle_name_folded = n.middle_name_folded, surname = n.surname, surname_folded = n.surname_folded,
			full_name_folded = n.full_name_folded, search = n.search, status = n.status,
			absent_since = NULL, password_hash = n.password_hash, modified_at = @modified_at
		FROM unnest(@id::uuid[], @username::text[], @username_folded::text[], @email::text[], @email_folded::text[],
			@given_name::text[], @given_name_folded::text[], @middle_name::text[], @middle_name_folded::text[],
			@surname::text[], @surname_folded::text[], @full_name_folded::text[], @search::text[], @status::text[],
			@password_hash::text[])
			AS n (id, username, username_folded, email, email_folded, given_name, given_name_folded, middle_name,
			middle_name_folded, surname, surname_folded, full_name_folded, search, status, password_hash)
		WHERE a.tenant_id = @tenant_id AND a.id = n.id`, args); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, tx, `UPDATE mirrored_accounts m
		SET digest = n.digest, disabled = n.disabled, seen = greatest(m.seen, @seen)
		FROM unnest(@id::uuid[], @digest::bytea[], @disabled::boolean[]) AS n (account_id, digest, disabled)
		WHERE m.tenant_id = @tenant_id AND m.account_id = n.account_id`, args); err != nil {
		return err
	}
	return tx.addCounts(ctx, tenant, directory, statuses)
}

// SetMirroredStatuses updates the statuses of accounts whose other changes were refused, and
// whether their source has disabled them.
func (tx *Tx) SetMirroredStatuses(ctx context.Context, tenant, directory id.ID, accounts []MirroredAccountWrite) error {
	if len(accounts) == 0 {
		return nil
	}
	ids, texts, disabled := make([]id.ID, len(accounts)), make([]string, len(accounts)), make([]bool, len(accounts))
	statuses := map[string]int64{}
	for i, a := range accounts {
		ids[i], texts[i], disabled[i] = a.AccountID, a.Account.Status, a.Disabled
		statuses[a.MirroredAccount.Status]--
		statuses[a.Account.Status]++
		tx.invalidateAccess(tenant, ids[i]) // an administrator may have changed the status since it was read
	}
	tx.Queue(`UPDATE accounts a SET status = n.status, absent_since = NULL, modified_at = $4
		FROM unnest($2::uuid[], $3::text[]) AS n (id, status)
		WHERE a.tenant_id = $1 AND a.id = n.id`, tenant, ids, texts, accounts[0].ModifiedAt)
	tx.Queue(`UPDATE mirrored_accounts m SET disabled = n.disabled, digest = ''
		FROM unnest($2::uuid[], $3::boolean[]) AS n (id, disabled)
		WHERE m.tenant_id = $1 AND m.account_id = n.id`, tenant, ids, disabled)
	return tx.addCounts(ctx, tenant, directory, statuses)
}

// MarkAccountsSeen records that a sync contained the accounts.
func (tx *Tx) MarkAccountsSeen(ctx context.Context, tenant, directory id.ID, externalIDs []string, seen int64) error {
	_, err := pg.Exec(ctx, tx, `UPDATE mirrored_accounts m SET seen = $4 FROM unnest($3::text[]) AS held (id)
		CROSS JOIN LATERAL (SELECT ctid FROM mirrored_accounts
			WHERE tenant_id = $1 AND directory_id = $2 AND external_id = held.id AND seen < $4 LIMIT 1) found
		WHERE m.tenant_id = $1 AND m.ctid = found.ctid`, tenant, directory, externalIDs, seen)
	return err
}

// SetAssignedStatus records the status that an administrator assigns to a mirrored account, and
// returns whether the account stays disabled, because its source has disabled it or no longer has
// it. For an account that no sync has created it does nothing.
func (tx *Tx) SetAssignedStatus(ctx context.Context, tenant, account id.ID, status string) (disabled bool, err error) {
	found, err := pg.Values[bool](ctx, tx, `UPDATE mirrored_accounts SET assigned_status = $3
		WHERE tenant_id = $1 AND account_id = $2
		RETURNING disabled OR EXISTS (SELECT 1 FROM accounts WHERE tenant_id = $1 AND id = $2
		AND absent_since IS NOT NULL)`,
		tenant, account, status)
	return len(found) > 0 && found[0], err
}

// Vanished selects mirrored accounts or groups that their source no longer has: those with the
// external ids or, without any, those that the syncs from number Before on did not contain.
type Vanished struct {
	TenantID    id.ID
	DirectoryID id.ID
	ExternalIDs []string
	Before      int64
}

// vanishedAccounts selects the mirrored accounts of directory $2 with the external ids $3 or, where
// $3 is NULL, those that the syncs from number $4 on did not contain.
const vanishedAccounts = `mirrored_accounts m WHERE m.tenant_id = $1 AND m.directory_id = $2
	AND CASE WHEN $3::text[] IS NULL THEN m.seen < $4 ELSE m.external_id = ANY ($3) END`

// CountVanishing returns how many accounts would become absent: those of a selection that are not
// absent already and whose external ids are not among the kept ones.
func (tx *Tx) CountVanishing(ctx context.Context, of Vanished, kept []string) (int64, error) {
	return pg.Value[int64](ctx, tx, `SELECT count(*) FROM `+vanishedAccounts+`
		AND m.external_id NOT IN (SELECT unnest($5::text[]))
		AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.tenant_id = $1 AND a.id = m.account_id
		AND a.absent_since IS NOT NULL)`, of.TenantID, of.DirectoryID, of.ExternalIDs, of.Before, kept)
}

// CountPresent returns how many accounts of a directory are not absent, and how many of these were
// there before a time.
func (tx *Tx) CountPresent(ctx context.Context, tenant, directory id.ID,
	before time.Time) (all, former int64, err error) {
	count, err := pg.One[struct{ Present, Added int64 }](ctx, tx, `SELECT
		(SELECT coalesce(sum(n), 0)::bigint FROM account_counts WHERE tenant_id = $1 AND directory_id = $2)
			- (SELECT count(*) FROM accounts WHERE tenant_id = $1 AND directory_id = $2
			AND absent_since IS NOT NULL) AS present,
		(SELECT count(*) FROM accounts WHERE tenant_id = $1 AND directory_id = $2 AND created_at >= $3
		AND absent_since IS NULL) AS added`, tenant, directory, before)
	return count.Present, count.Present - count.Added, err
}

// MakeAccountsAbsent makes at most limit of the accounts absent, unless they are. It returns how
// many, and the ids of those that were enabled. Their next entry in a sync is written whatever its
// digest, which makes them present again.
func (tx *Tx) MakeAccountsAbsent(ctx context.Context, of Vanished, now time.Time,
	limit int) (n int64, enabled []id.ID, err error) {
	ended, err := pg.All[endedAccount](ctx, tx, `WITH vanished AS (
			SELECT a.id, a.status FROM accounts a WHERE a.tenant_id = $1 AND a.absent_since IS NULL
				AND a.id IN (SELECT m.account_id FROM `+vanishedAccounts+`) LIMIT $6 FOR UPDATE OF a
		), source AS (
			UPDATE mirrored_accounts m SET digest = '' FROM vanished v WHERE m.tenant_id = $1 AND m.account_id = v.id
		)
		UPDATE accounts a SET status = 'DISABLED', absent_since = $5, modified_at = $5 FROM vanished v
		WHERE a.tenant_id = $1 AND a.id = v.id RETURNING a.id, v.status`,
		of.TenantID, of.DirectoryID, of.ExternalIDs, of.Before, now, limit)
	if err != nil || len(ended) == 0 {
		return 0, nil, err
	}
	statuses := map[string]int64{}
	for _, account := range ended {
		statuses[account.Status]--
		statuses[directoryapi.Disabled]++
		if account.Status != directoryapi.Disabled {
			tx.invalidateAccess(of.TenantID, account.ID)
		}
		if account.Status == directoryapi.Enabled {
			enabled = append(enabled, account.ID)
		}
	}
	return int64(len(ended)), enabled, tx.addCounts(ctx, of.TenantID, of.DirectoryID, statuses)
}

// DeleteVanishedAccounts deletes at most limit of the accounts, with all that belongs to them, and
// returns their ids.
func (tx *Tx) DeleteVanishedAccounts(ctx context.Context, of Vanished, limit int) ([]id.ID, error) {
	return tx.deleteMirrored(ctx, of.TenantID, of.DirectoryID, `SELECT m.account_id FROM `+vanishedAccounts+` LIMIT $5`,
		of.TenantID, of.DirectoryID, of.ExternalIDs, of.Before, limit)
}

// DeleteAbsentAccounts is DeleteVanishedAccounts for the accounts of a directory that have been
// absent since a time or longer.
func (tx *Tx) DeleteAbsentAccounts(ctx context.Context, tenant, directory id.ID, since time.Time,
	limit int) ([]id.ID, error) {
	return tx.deleteMirrored(ctx, tenant, directory, `SELECT id FROM accounts
		WHERE tenant_id = $1 AND directory_id = $2 AND absent_since <= $3 LIMIT $4`, tenant, directory, since, limit)
}

// deleteMirrored deletes the accounts of a query for their ids, with all that belongs to them.
func (tx *Tx) deleteMirrored(ctx context.Context, tenant, directory id.ID, query string, args ...any) ([]id.ID, error) {
	selected, err := pg.Values[id.ID](ctx, tx, query, args...)
	if err != nil || len(selected) == 0 {
		return nil, err
	}
	ended, err := tx.deleteAccounts(ctx, tenant, selected)
	if err != nil {
		return nil, err
	}
	ids, statuses := make([]id.ID, len(ended)), map[string]int64{}
	for i, account := range ended {
		ids[i] = account.ID
		statuses[account.Status]--
		tx.invalidateAccess(tenant, account.ID)
	}
	return ids, tx.addCounts(ctx, tenant, directory, statuses)
}

// AbsentIn is a mirror directory that has absent accounts, with the configuration of its agent.
type AbsentIn struct {
	TenantID    id.ID
	DirectoryID id.ID
	Config      AgentConfig
}

// DirectoriesWithAbsent returns the mirror directories of all tenants that have absent accounts.
func (s *Store) DirectoriesWithAbsent(ctx context.Context) ([]AbsentIn, error) {
	return pg.All[AbsentIn](ctx, s.db, `SELECT tenant_id, directory_id, config FROM agents g WHERE EXISTS (
		SELECT 1 FROM accounts a WHERE a.tenant_id = g.tenant_id AND a.directory_id = g.directory_id
		AND a.absent_since IS NOT NULL)`)
}

// DeleteVanishedGroups is DeleteVanishedAccounts for groups.
func (tx *Tx) DeleteVanishedGroups(ctx context.Context, of Vanished, limit int) ([]id.ID, error) {
	deleted, err := pg.Values[id.ID](ctx, tx, `WITH vanished AS (
			SELECT group_id FROM mirrored_groups WHERE tenant_id = $1 AND directory_id = $2
				AND CASE WHEN $3::text[] IS NULL THEN seen < $4 ELSE external_id = ANY ($3) END LIMIT $5
		), gone AS (
			DELETE FROM groups WHERE tenant_id = $1 AND id IN (SELECT group_id FROM vanished) RETURNING id
		), data AS (
			DELETE FROM custom_data WHERE tenant_id = $1 AND owner_id IN (SELECT id FROM gone)
		)
		SELECT id FROM gone`, of.TenantID, of.DirectoryID, of.ExternalIDs, of.Before, limit)
	for _, group := range deleted {
		tx.invalidateAccess(of.TenantID, group)
	}
	return deleted, err
}

// DeleteUnconfirmedMembers deletes the memberships that a sync has left out, of accounts that it held
// in the end.
func (tx *Tx) DeleteUnconfirmedMembers(ctx context.Context, of Vanished) error {
	groups, err := pg.Values[id.ID](ctx, tx, `WITH gone AS (
			DELETE FROM group_memberships m USING accounts a WHERE m.tenant_id = $1 AND m.directory_id = $2
			AND m.unconfirmed <= $3
				AND a.tenant_id = $1 AND a.id = m.account_id AND a.absent_since IS NULL RETURNING m.group_id
		)
		SELECT DISTINCT group_id FROM gone`, of.TenantID, of.DirectoryID, of.Before)
	for _, group := range groups {
		tx.invalidateAccess(of.TenantID, group)
	}
	return err
}

// MirroredGroups returns the groups of the external ids that exist.
func (tx *Tx) MirroredGroups(ctx context.Context, tenant, directory id.ID,
	externalIDs []string) ([]MirroredGroup, error) {
	return pg.All[MirroredGroup](ctx, tx, `SELECT m.external_id, m.group_id, m.digest, g.name_folded
		FROM unnest($3::text[]) AS wanted (id)
		CROSS JOIN LATERAL (SELECT external_id, group_id, digest FROM mirrored_groups
			WHERE tenant_id = $1 AND directory_id = $2 AND external_id = wanted.id LIMIT 1) m
		CROSS JOIN LATERAL (SELECT name_folded FROM groups WHERE tenant_id = $1 AND id = m.group_id LIMIT 1) g`, tenant,
		directory, externalIDs)
}

// ReleaseGroupNames is ReleaseAccountNames for groups.
func (tx *Tx) ReleaseGroupNames(ctx context.Context, tenant id.ID, groups []id.ID) error {
	_, err := pg.Exec(ctx, tx, `UPDATE groups SET name_folded = id::text WHERE tenant_id = $1 AND id = ANY ($2)`,
		tenant, groups)
	return err
}

// UpsertMirroredGroup inserts or updates a group of a mirror directory. An update does not change
// its status.
func (tx *Tx) UpsertMirroredGroup(_ context.Context, g directoryapi.Group, of MirroredGroup, seen int64) error {
	tx.Queue(pg.Insert("groups", groupRow)+` ON CONFLICT (tenant_id, id) DO UPDATE SET name = excluded.name,
			name_folded = excluded.name_folded, description = excluded.description, description_folded =
			excluded.description_folded, search = excluded.search, modified_at = excluded.modified_at`, groupArgs(g))
	tx.Queue(`INSERT INTO mirrored_groups AS m (tenant_id, directory_id, external_id, group_id, digest, seen)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, directory_id, external_id) DO UPDATE
		SET digest = excluded.digest, seen = greatest(m.seen, excluded.seen)`,
		g.TenantID, g.DirectoryID, of.ExternalID, g.ID, of.Digest, seen)
	return nil
}

// MarkGroupSeen records that a sync contained the group.
func (tx *Tx) MarkGroupSeen(_ context.Context, tenant, directory id.ID, externalID string, seen int64) {
	tx.Queue(`UPDATE mirrored_groups SET seen = $4 WHERE tenant_id = $1 AND directory_id = $2 AND external_id = $3
		AND seen < $4`, tenant, directory, externalID, seen)
}

// AccountsByExternalID returns the ids of the accounts of the external ids that exist.
func (tx *Tx) AccountsByExternalID(ctx context.Context, tenant, directory id.ID,
	externalIDs []string) (map[string]id.ID, error) {
	found, err := pg.All[NameHolder](ctx, tx,
		`SELECT m.name, m.id, false AS absent FROM unnest($3::text[]) AS wanted (id)
		CROSS JOIN LATERAL (SELECT external_id AS name, account_id AS id FROM mirrored_accounts
			WHERE tenant_id = $1 AND directory_id = $2 AND external_id = wanted.id LIMIT 1) m`, tenant, directory,
		externalIDs)
	accounts := make(map[string]id.ID, len(found))
	for _, one := range found {
		accounts[one.Name] = one.ID
	}
	return accounts, err
}

// SetMembers makes the accounts the only members of a group, as a sync states them. awaited are the
// external ids of members that do not exist yet; they become members when they are inserted. A member
// that the sync has not held so far stays until it ends (DeleteUnconfirmedMembers): it may have
// vanished, and keeps its memberships while it is absent.
func (tx *Tx) SetMembers(ctx context.Context, g directoryapi.Group, accounts []id.ID, awaited []string, seen int64,
	now time.Time) error {
	const others = `group_memberships m WHERE m.tenant_id = $1 AND m.group_id = $2
		AND m.account_id NOT IN (SELECT unnest($3::uuid[]))`
	const isUnseen = `EXISTS (SELECT 1 FROM mirrored_accounts x WHERE x.tenant_id = $1 AND x.account_id = m.account_id
		AND x.seen < $4)`
	tx.invalidateAccess(g.TenantID, g.ID)
	tx.Queue(`DELETE FROM `+others+` AND NOT `+isUnseen, g.TenantID, g.ID, accounts, seen)
	tx.Queue(`UPDATE group_memberships AS u SET unconfirmed = $4 FROM (SELECT m.id FROM `+others+`) AS left_out
		WHERE u.tenant_id = $1 AND u.id = left_out.id`, g.TenantID, g.ID, accounts, seen)
	tx.Queue(`UPDATE group_memberships SET unconfirmed = NULL
		WHERE tenant_id = $1 AND group_id = $2 AND account_id = ANY ($3) AND unconfirmed IS NOT NULL`, g.TenantID, g.ID,
		accounts)
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
