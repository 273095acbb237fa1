package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// The kinds of entries of a sync.
const (
	AccountEntry = "account"
	GroupEntry   = "group"
	// UnnamedAccount and UnnamedGroup are entries that have no id to find them again by. Their key is
	// the digest of the entry.
	UnnamedAccount = "unnamed account"
	UnnamedGroup   = "unnamed group"
)

// Refusal is an entry of a directory server that a sync could not write.
type Refusal struct {
	Kind       string // AccountEntry or GroupEntry
	ExternalID string
	Name       string
	Reason     string
	Entry      json.RawMessage // as it was sent; null for one that could not be decoded
	CreatedAt  time.Time
}

const refusalColumns = `kind, external_id, name, reason, entry, created_at`

// Refusals are searched and sorted by these attributes.
var Refusals = list.Spec{
	"createdAt": {Column: "created_at", Kind: list.Time},
}

// keptSyncs is how many syncs of an agent are stored. A page of an older one begins a new sync.
const keptSyncs = 20

// BegunSync is a sync whose page is about to be written.
type BegunSync struct {
	Number    int64 // of the sync; of one without an id, that of the newest sync
	StartedAt time.Time
	Ended     bool // its last page has arrived before, and FinishSync has not finished it
}

// BeginSync returns a sync of an agent, and inserts the sync with its first page. Pages without a
// sync id get the number of the newest sync. services/directory/store/mirror.go writes the accounts
// and groups of a page.
func BeginSync(ctx context.Context, tx *outbox.Tx, agent id.Ref, directory id.ID, syncID string,
	now time.Time) (BegunSync, error) {
	newest, err := pg.Value[int64](ctx, tx, `SELECT coalesce(max(number), 0) FROM agent_syncs
		WHERE tenant_id = $1 AND agent_id = $2`, agent.Tenant, agent.ID)
	if err != nil {
		return BegunSync{}, err
	}
	number := newest + 1
	if syncID == "" {
		number = 0
	}
	tx.Queue(`DELETE FROM agent_syncs
		WHERE tenant_id = $1 AND agent_id = $2 AND number <= $3 AND number > 0 AND NOT ended`, agent.Tenant, agent.ID,
		newest-keptSyncs)
	begun, err := pg.One[BegunSync](ctx, tx, `INSERT INTO agent_syncs AS s (tenant_id, agent_id, sync_id, directory_id,
		number, started_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, agent_id, sync_id) DO UPDATE SET
			started_at = CASE WHEN s.number = 0 THEN excluded.started_at ELSE s.started_at END,
			held = CASE WHEN s.number = 0 THEN 0 ELSE s.held END
		RETURNING number, started_at, ended`, agent.Tenant, agent.ID, syncID, directory, number, now)
	if syncID == "" {
		begun.Number = newest
	}
	return begun, err
}

// HoldSync records that the brake held a sync, which would have made a number of accounts absent.
func HoldSync(ctx context.Context, tx *outbox.Tx, agent id.Ref, directory id.ID, syncID string, held int64,
	now time.Time) error {
	return pg.MustChange(ctx, tx, `UPDATE agent_syncs SET held = $6, completed_at = $5, `+syncCounts+`
		WHERE tenant_id = $1 AND agent_id = $2 AND sync_id = $3`, agent.Tenant, agent.ID, syncID, directory, now, held)
}

// CountVanished sets how many accounts pages without a complete sync have named as deleted since the
// last complete one, and ends the confirmation that a complete sync has used.
func CountVanished(tx *outbox.Tx, agent id.Ref, vanished int64, confirmedUntil *time.Time) {
	tx.Queue(`UPDATE agents SET vanished = $3, absence_confirmed_until = $4 WHERE tenant_id = $1 AND id = $2`,
		agent.Tenant, agent.ID, vanished, confirmedUntil)
}

// syncCounts sets what a directory, $4, of an agent, $2, has when a sync ends.
const syncCounts = `accounts = (SELECT count(*) FROM mirrored_accounts WHERE tenant_id = $1 AND directory_id = $4),
	groups = (SELECT count(*) FROM mirrored_groups WHERE tenant_id = $1 AND directory_id = $4),
	refused = (SELECT count(*) FROM agent_refusals WHERE tenant_id = $1 AND agent_id = $2),
	absent = (SELECT count(*) FROM accounts WHERE tenant_id = $1 AND directory_id = $4 AND absent_since IS NOT NULL)`

// MarkSyncReceived records that all pages of a sync have arrived.
func MarkSyncReceived(ctx context.Context, tx *outbox.Tx, agent id.Ref, syncID string) error {
	return pg.MustChange(ctx, tx, `UPDATE agent_syncs SET ended = true
		WHERE tenant_id = $1 AND agent_id = $2 AND sync_id = $3`, agent.Tenant, agent.ID, syncID)
}

// ReceivedSync is a sync whose pages have all arrived, and which FinishSync has not finished.
type ReceivedSync struct {
	TenantID    id.ID
	AgentID     id.ID
	DirectoryID id.ID
	SyncID      string
	Number      int64
}

// ReceivedSyncs returns at most limit received syncs of all tenants.
func (s Store) ReceivedSyncs(ctx context.Context, now time.Time, limit int) ([]ReceivedSync, error) {
	return pg.All[ReceivedSync](ctx, s.db, `SELECT tenant_id, agent_id, directory_id, sync_id, number FROM agent_syncs
		WHERE ended AND started_at <= $1 ORDER BY started_at LIMIT $2`, now, limit)
}

// FinishSync records that a sync is complete, with its counts, and deletes refusals of earlier
// syncs.
func FinishSync(ctx context.Context, tx *outbox.Tx, e ReceivedSync, now time.Time) error {
	tx.Queue(`DELETE FROM agent_refusals WHERE tenant_id = $1 AND agent_id = $2 AND seen < $3`, e.TenantID, e.AgentID,
		e.Number)
	_, err := pg.Exec(ctx, tx, `UPDATE agent_syncs SET ended = false, completed_at = $5,
		held = CASE WHEN number = 0 THEN held ELSE 0 END, `+syncCounts+`
		WHERE tenant_id = $1 AND agent_id = $2 AND sync_id = $3`, e.TenantID, e.AgentID, e.SyncID, e.DirectoryID, now)
	return err
}

// UpsertRefusals stores entries that were refused.
func UpsertRefusals(tx *outbox.Tx, agent id.Ref, refused []Refusal, seen int64) {
	for _, r := range refused {
		tx.Queue(pg.Insert("agent_refusals AS r", refusalColumns+`, tenant_id, agent_id, seen`)+`
			ON CONFLICT (tenant_id, agent_id, kind, external_id) DO UPDATE
			SET name = excluded.name, reason = excluded.reason,
				entry = excluded.entry, seen = greatest(r.seen, excluded.seen)`,
			pg.Named(r, pg.Args{"tenant_id": agent.Tenant, "agent_id": agent.ID, "seen": seen}))
	}
}

// DeleteRefusals deletes the refusals of entries that have been written since, or deleted.
func DeleteRefusals(tx *outbox.Tx, agent id.Ref, kind string, externalIDs []string) {
	if len(externalIDs) > 0 {
		tx.Queue(`DELETE FROM agent_refusals WHERE tenant_id = $1 AND agent_id = $2 AND kind = $3
			AND external_id = ANY ($4)`,
			agent.Tenant, agent.ID, kind, externalIDs)
	}
}

// RefusalsAfter returns entries of a kind that the syncs from a number on refused and that can be
// retried, in the order of their external ids, at most limit after one.
func (s Store) RefusalsAfter(ctx context.Context, agent id.Ref, kind, after string, number int64,
	limit int) ([]Refusal, error) {
	return pg.All[Refusal](ctx, s.db, `SELECT `+refusalColumns+` FROM agent_refusals
		WHERE tenant_id = $1 AND agent_id = $2 AND kind = $3 AND external_id > $4 AND seen >= $5 AND entry <> 'null'
		ORDER BY external_id LIMIT $6`, agent.Tenant, agent.ID, kind, after, number, limit)
}

// ListRefusals returns a page of the refused entries of an agent.
func (s Store) ListRefusals(ctx context.Context, agent id.Ref, query list.Query) (list.Page[Refusal], error) {
	return listsql.Select[Refusal](ctx, s.db, Refusals, query, refusalColumns,
		`FROM agent_refusals WHERE tenant_id = $1 AND agent_id = $2`, "external_id", agent.Tenant, agent.ID)
}
