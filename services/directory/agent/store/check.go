package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// The channels on which PostgreSQL notifies all replicas of password checks.
const (
	ChecksChannel  = "directory_agent_checks"  // payload: the id of an agent that has a new check
	ResultsChannel = "directory_agent_results" // payload: the id of a check and its result
)

// Results of a check that are not the code of an error.
const (
	CheckSuccess = 0
	CheckFailure = 1
)

// Check is a password check for which a login waits.
type Check struct {
	TenantID   id.ID
	AgentID    id.ID
	ID         id.ID
	ExternalID string // of the account at the directory server
	Username   string
	Password   []byte            // sealed
	Trace      map[string]string // of the login
	CreatedAt  time.Time
}

// CheckingAgent is the agent that checks the passwords of an account.
type CheckingAgent struct {
	AgentID    id.ID
	Status     string
	ExternalID string // of the account
}

// CheckingAgent returns the agent of a mirrored account, or apierr.NotFound. An agent that has not
// called since onlineSince is offline.
func (s Store) CheckingAgent(ctx context.Context, tenant, directory, account id.ID,
	onlineSince time.Time) (CheckingAgent, error) {
	return pg.One[CheckingAgent](ctx, s.db, `SELECT a.id AS agent_id, m.external_id,
		CASE WHEN a.status = 'ONLINE' AND a.called_at < $4 THEN 'OFFLINE' ELSE a.status END AS status
		FROM agents a JOIN mirrored_accounts m ON m.tenant_id = $1 AND m.directory_id = $2 AND m.account_id = $3
		WHERE a.tenant_id = $1 AND a.directory_id = $2`, tenant, directory, account, onlineSince)
}

// InsertCheck inserts a check and notifies the replicas at which its agent may wait.
func InsertCheck(tx *outbox.Tx, c Check) {
	tx.Queue(pg.Insert("agent_checks", `tenant_id, agent_id, id, external_id, username, password, trace, created_at,
		taken_until`), pg.Named(c, pg.Args{"taken_until": c.CreatedAt}))
	tx.Notify(ChecksChannel, c.AgentID.String())
}

// CountWaitingChecks returns how many checks of an agent that are not older than since have no
// result. Until the transaction ends no other counts or inserts checks of the agent.
func CountWaitingChecks(ctx context.Context, tx *outbox.Tx, tenant, agent id.ID, since time.Time) (int64, error) {
	if _, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 1))`, agent.String()); err != nil {
		return 0, err
	}
	return pg.Value[int64](ctx, tx, `SELECT count(*) FROM agent_checks
		WHERE tenant_id = $1 AND agent_id = $2 AND result IS NULL AND created_at >= $3`, tenant, agent, since)
}

// RecordUnanswered records that a check of an agent ended without a result.
func RecordUnanswered(tx *outbox.Tx, tenant, agent id.ID, now time.Time) {
	tx.Queue(`UPDATE agents SET unanswered_at = $3 WHERE tenant_id = $1 AND id = $2`, tenant, agent, now)
}

// LeaseChecks returns checks of an agent that are not older than since, at most limit, the oldest
// first. No other call gets them before until, by which they should be answered: they are leased
// until then (column taken_until).
func LeaseChecks(ctx context.Context, tx *outbox.Tx, tenant, agent id.ID, since, now, until time.Time,
	limit int) ([]Check, error) {
	return pg.All[Check](ctx, tx, `UPDATE agent_checks SET taken_until = $5
		WHERE tenant_id = $1 AND id IN (
			SELECT id FROM agent_checks WHERE tenant_id = $1 AND agent_id = $2 AND result IS NULL AND created_at >= $3
			AND taken_until <= $4
			ORDER BY created_at LIMIT $6 FOR UPDATE SKIP LOCKED)
		RETURNING tenant_id, agent_id, id, external_id, username, password, trace, created_at`, tenant, agent, since,
		now, until, limit)
}

// AnswerCheck stores the result of a check, notifies the replica in which its login waits, and
// deletes its password. A check that is answered or deleted is apierr.NotFound.
func AnswerCheck(ctx context.Context, tx *outbox.Tx, tenant, agent, check id.ID, result int) error {
	_, err := pg.Value[string](ctx, tx, `WITH answered AS (
			UPDATE agent_checks SET result = $4, password = NULL WHERE tenant_id = $1 AND agent_id = $2 AND id = $3
			AND result IS NULL
			RETURNING id
		)
		SELECT pg_notify($5, $6 || ' ' || $4::integer)::text FROM answered`, tenant, agent, check, result,
		ResultsChannel, check.String())
	return err
}

// CheckResult returns the result of a check; nil while it has none. A check that was deleted is
// apierr.NotFound.
func (s Store) CheckResult(ctx context.Context, tenant, check id.ID) (*int, error) {
	return pg.Value[*int](ctx, s.db, `SELECT result FROM agent_checks WHERE tenant_id = $1 AND id = $2`, tenant, check)
}

// DeleteCheck deletes a check for which no login waits any more.
func DeleteCheck(tx *outbox.Tx, tenant, check id.ID) {
	tx.Queue(`DELETE FROM agent_checks WHERE tenant_id = $1 AND id = $2`, tenant, check)
}

// AgingChecks are the checks, for the purge: they stay where the process of their login was killed.
var AgingChecks = purgesql.Rows{Table: "agent_checks", Time: "created_at"}
