package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// The states of a challenge.
const (
	Created              = "CREATED"
	WaitingForProvider   = "WAITING_FOR_PROVIDER"
	WaitingForValidation = "WAITING_FOR_VALIDATION"
	Success              = "SUCCESS"
	Failed               = "FAILED"
	Expired              = "EXPIRED"
	Error                = "ERROR"
	Undelivered          = "UNDELIVERED"
)

// Challenge asks for the code of a factor.
type Challenge struct {
	TenantID      id.ID
	ID            id.ID
	AccountID     id.ID
	FactorID      id.ID
	Status        string // one of the states
	HasExpired    bool   // ExpiresAt has passed, and Status is not yet Expired
	Message       *string
	CodeKeySealed []byte // of a code that was sent
	CodeHash      []byte // of a code that was sent
	Failures      int    // wrong codes
	ExpiresAt     time.Time
	CreatedAt     time.Time
	ModifiedAt    time.Time
}

// hasExpired is the SQL condition for a challenge whose expiry has passed and that is not in
// a final state. $3 is the time now.
const hasExpired = `(c.status IN ('CREATED', 'WAITING_FOR_PROVIDER', 'WAITING_FOR_VALIDATION', 'FAILED')
	AND c.expires_at <= $3)`

const challengeRow = `c.tenant_id, c.id, c.account_id, c.factor_id, c.status, c.message, c.code_key_sealed, c.code_hash,
	c.failures, c.expires_at, c.created_at, c.modified_at`

const challengeColumns = challengeRow + `, ` + hasExpired + ` AS has_expired`

// Challenges are searched and sorted by these attributes.
var Challenges = list.Spec{
	"status": {Column: `CASE WHEN ` + hasExpired + ` THEN 'EXPIRED' ELSE c.status END`, Kind: list.Enum,
		Values: []string{
			Created, WaitingForProvider, WaitingForValidation, Success, Failed, Expired, Error, Undelivered}},
	"createdAt":  {Column: "c.created_at", Kind: list.Time},
	"modifiedAt": {Column: "c.modified_at", Kind: list.Time},
}

const challengeQuery = `SELECT ` + challengeColumns + ` FROM challenges c WHERE c.tenant_id = $1 AND c.id = $2`

// Challenge returns a challenge with its state at the time now, or apierr.NotFound.
func (s *Store) Challenge(ctx context.Context, tenant, challenge id.ID, now time.Time) (Challenge, error) {
	return pg.One[Challenge](ctx, s.db, challengeQuery, tenant, challenge, now)
}

// FactorChallenges returns a page of the challenges of a factor with their states at the
// time now.
func (s *Store) FactorChallenges(ctx context.Context, tenant, factor id.ID, now time.Time,
	query list.Query) (list.Page[Challenge], error) {
	// The condition on $3 is always true. It is there because the query that counts the
	// rows has no other use of $3, and PostgreSQL refuses an argument without a use.
	return listsql.Select[Challenge](ctx, s.db, Challenges, query, challengeColumns,
		`FROM challenges c WHERE c.tenant_id = $1 AND c.factor_id = $2 AND $3::timestamptz IS NOT NULL`, "c.id", tenant,
		factor, now)
}

// LockChallenge reads and locks a challenge, with its state at the time now, or returns
// apierr.NotFound.
func (tx *Tx) LockChallenge(ctx context.Context, tenant, challenge id.ID, now time.Time) (Challenge, error) {
	return pg.One[Challenge](ctx, tx, challengeQuery+` FOR UPDATE`, tenant, challenge, now)
}

// InsertChallenge adds a challenge.
func (tx *Tx) InsertChallenge(ctx context.Context, c Challenge) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("challenges", challengeRow), pg.Named(c))
	return err
}

// UpdateChallenge writes the columns of a challenge that can change.
func (tx *Tx) UpdateChallenge(ctx context.Context, c Challenge) error {
	return pg.MustChange(ctx, tx, `UPDATE challenges SET status = $3, failures = $4, modified_at = $5
		WHERE tenant_id = $1 AND id = $2`, c.TenantID, c.ID, c.Status, c.Failures, c.ModifiedAt)
}

// ExpireChallenges sets the open challenges of a phone's factor to EXPIRED.
func (tx *Tx) ExpireChallenges(ctx context.Context, tenant, phone id.ID, now time.Time) error {
	_, err := pg.Exec(ctx, tx, `UPDATE challenges SET status = 'EXPIRED', modified_at = $3 WHERE tenant_id = $1
		AND status IN ('CREATED', 'WAITING_FOR_PROVIDER', 'WAITING_FOR_VALIDATION', 'FAILED')
		AND factor_id IN (SELECT f.id FROM factors f WHERE f.tenant_id = $1 AND f.phone_id = $2)`, tenant, phone, now)
	return err
}

// AgingChallenges are the challenges, for the purge, but for the newest of a factor.
var AgingChallenges = purgesql.Rows{Table: "challenges", Time: "created_at", Where: `NOT EXISTS (SELECT 1 FROM factors f
	WHERE f.tenant_id = challenges.tenant_id AND f.id = challenges.factor_id AND f.challenge_id = challenges.id)`}
