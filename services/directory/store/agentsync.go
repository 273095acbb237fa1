package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// The kinds of entries of a sync.
const (
	AccountEntry = "account"
	GroupEntry   = "group"
)

// Refusal is an entry of a directory server that was not taken.
type Refusal struct {
	Kind       string // AccountEntry or GroupEntry
	ExternalID string
	Name       string
	Reason     string
	Entry      json.RawMessage // as it was sent
	CreatedAt  time.Time
}

const refusalColumns = `kind, external_id, name, reason, entry, created_at`

// Refusals are searched and sorted by these attributes.
var Refusals = list.Spec{
	"createdAt": {Column: "created_at", Kind: list.Time},
}

// LastSync is what became of the last sync of an agent.
type LastSync struct {
	StartedAt   time.Time  `json:"startedAt"`
	CompletedAt *time.Time `json:"completedAt"` // nil while it goes on
	Accounts    int64      `json:"accounts"`    // that the directory had when it completed
	Groups      int64      `json:"groups"`
	Refused     int64      `json:"refused"`
}

// keptSyncs is how many syncs of an agent are remembered. A page of an older one
// begins a new sync.
const keptSyncs = 20

// lastSync is the sync of agent a that completed last, or else runs.
const lastSync = `(SELECT to_jsonb(last) FROM (
	SELECT started_at AS "startedAt", completed_at AS "completedAt", accounts, groups, refused FROM agent_syncs y
	WHERE y.tenant_id = a.tenant_id AND y.agent_id = a.id ORDER BY completed_at DESC NULLS LAST, number DESC LIMIT 1) last) AS last_sync`

// BeginSync returns the number of a sync of an agent, and makes it unless it goes
// on. Entries that come without a sync have the number of the newest.
func (tx *Tx) BeginSync(ctx context.Context, a Agent, syncID string, now time.Time) (int64, error) {
	newest, err := pg.Value[int64](ctx, tx, `SELECT coalesce(max(number), 0) FROM agent_syncs WHERE tenant_id = $1 AND agent_id = $2`,
		a.TenantID, a.ID)
	if err != nil {
		return 0, err
	}
	number := newest + 1
	if syncID == "" {
		number = 0
	}
	tx.Queue(`DELETE FROM agent_syncs WHERE tenant_id = $1 AND agent_id = $2 AND number <= $3 AND number > 0 AND NOT ended`,
		a.TenantID, a.ID, newest-keptSyncs)
	number, err = pg.Value[int64](ctx, tx, `INSERT INTO agent_syncs AS s (tenant_id, agent_id, sync_id, directory_id, number, started_at)
		VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, agent_id, sync_id) DO UPDATE SET started_at = CASE
			WHEN s.number = 0 THEN excluded.started_at ELSE s.started_at END
		RETURNING number`, a.TenantID, a.ID, syncID, a.DirectoryID, number, now)
	if syncID == "" {
		return newest, err
	}
	return number, err
}

// EndSync notes that all pages of a sync have come.
func (tx *Tx) EndSync(ctx context.Context, a Agent, syncID string) error {
	return pg.MustChange(ctx, tx, `UPDATE agent_syncs SET ended = true WHERE tenant_id = $1 AND agent_id = $2 AND sync_id = $3`,
		a.TenantID, a.ID, syncID)
}

// EndedSync is a sync whose pages have all come.
type EndedSync struct {
	TenantID    id.ID
	AgentID     id.ID
	DirectoryID id.ID
	SyncID      string
	Number      int64
}

// EndedSyncs returns at most limit syncs of all tenants that are to be finished.
func (s *Store) EndedSyncs(ctx context.Context, now time.Time, limit int) ([]EndedSync, error) {
	return pg.All[EndedSync](ctx, s.db, `SELECT tenant_id, agent_id, directory_id, sync_id, number FROM agent_syncs
		WHERE ended AND started_at <= $1 ORDER BY started_at LIMIT $2`, now, limit)
}

// FinishSync notes that a sync has had all its effects, and what it left.
// Refusals from before it are gone.
func (tx *Tx) FinishSync(ctx context.Context, e EndedSync, now time.Time) error {
	tx.Queue(`DELETE FROM agent_refusals WHERE tenant_id = $1 AND agent_id = $2 AND seen < $3`, e.TenantID, e.AgentID, e.Number)
	_, err := pg.Exec(ctx, tx, `UPDATE agent_syncs SET ended = false, completed_at = $5,
			accounts = (SELECT count(*) FROM mirrored_accounts WHERE tenant_id = $1 AND directory_id = $4),
			groups = (SELECT count(*) FROM mirrored_groups WHERE tenant_id = $1 AND directory_id = $4),
			refused = (SELECT count(*) FROM agent_refusals WHERE tenant_id = $1 AND agent_id = $2)
		WHERE tenant_id = $1 AND agent_id = $2 AND sync_id = $3`, e.TenantID, e.AgentID, e.SyncID, e.DirectoryID, now)
	return err
}

// Refuse notes entries that were not taken.
func (tx *Tx) Refuse(_ context.Context, a Agent, refused []Refusal, seen int64) {
	for _, r := range refused {
		tx.Queue(`INSERT INTO agent_refusals AS r (tenant_id, agent_id, `+refusalColumns+`, seen)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (tenant_id, agent_id, kind, external_id) DO UPDATE SET name = excluded.name, reason = excluded.reason,
				entry = excluded.entry, seen = greatest(r.seen, excluded.seen)`,
			a.TenantID, a.ID, r.Kind, r.ExternalID, r.Name, r.Reason, r.Entry, r.CreatedAt, seen)
	}
}

// DropRefusals deletes refusals of entries that were taken now, or are gone.
func (tx *Tx) DropRefusals(_ context.Context, a Agent, kind string, externalIDs []string) {
	if len(externalIDs) > 0 {
		tx.Queue(`DELETE FROM agent_refusals WHERE tenant_id = $1 AND agent_id = $2 AND kind = $3 AND external_id = ANY ($4)`,
			a.TenantID, a.ID, kind, externalIDs)
	}
}

// RefusalsAfter returns entries of a kind that the syncs from a number on refused,
// in the order of their external ids, at most limit behind one.
func (s *Store) RefusalsAfter(ctx context.Context, a Agent, kind, after string, number int64, limit int) ([]Refusal, error) {
	return pg.All[Refusal](ctx, s.db, `SELECT `+refusalColumns+` FROM agent_refusals
		WHERE tenant_id = $1 AND agent_id = $2 AND kind = $3 AND external_id > $4 AND seen >= $5
		ORDER BY external_id LIMIT $6`, a.TenantID, a.ID, kind, after, number, limit)
}

// ListRefusals returns a page of the entries that were not taken.
func (s *Store) ListRefusals(ctx context.Context, agent id.Ref, query list.Query) (list.Page[Refusal], error) {
	return listsql.Select[Refusal](ctx, s.db, Refusals, query, refusalColumns,
		`FROM agent_refusals WHERE tenant_id = $1 AND agent_id = $2`, "external_id", agent.Tenant, agent.ID)
}
