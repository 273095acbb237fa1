package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// The types of factor, as they are stored and as the REST API shows them.
const (
	SMS           = "SMS"
	Authenticator = "google-authenticator"
)

// Types are all types of factor.
var Types = []string{SMS, Authenticator}

// Factor is a second factor of an account: a phone that takes text messages, or
// an application that makes codes.
type Factor struct {
	TenantID           id.ID
	ID                 id.ID
	AccountID          id.ID
	Type               string  // SMS or Authenticator
	PhoneID            id.ID   // of an SMS factor
	AccountName        *string // of an authenticator
	Issuer             *string // of an authenticator, if it has one
	SecretSealed       []byte  // of an authenticator
	LastStep           int64   // the latest time step (RFC 6238) whose code was accepted
	ChallengeID        id.ID   // the newest, if there was any
	Status             string  // Enabled or Disabled
	VerificationStatus string  // Verified or Unverified
	CreatedAt          time.Time
	ModifiedAt         time.Time

	// Secret is SecretSealed in clear, KeyURI the otpauth URI and Image the QR code that
	// carry it to an authenticator app. They are not stored.
	Secret secure.Secret `db:"-"`
	KeyURI secure.Secret `db:"-"`
	Image  []byte        `db:"-"` // PNG
}

const factorColumns = `f.tenant_id, f.id, f.account_id, f.type, f.phone_id, f.account_name, f.issuer, f.secret_sealed,
	f.last_step, f.challenge_id, f.status, f.verification_status, f.created_at, f.modified_at`

// Factors are searched and sorted by these attributes.
var Factors = list.Spec{
	"type":               {Column: "upper(f.type)", Kind: list.Enum, Values: []string{SMS, "GOOGLE-AUTHENTICATOR"}},
	"accountName":        {Column: "f.account_name", Folded: "f.account_name_folded"},
	"issuer":             {Column: "f.issuer", Folded: "f.issuer_folded"},
	"status":             {Column: "f.status", Kind: list.Enum, Values: []string{Enabled, Disabled}},
	"verificationStatus": {Column: "f.verification_status", Kind: list.Enum, Values: []string{Verified, Unverified}},
	"createdAt":          {Column: "f.created_at", Kind: list.Time},
	"modifiedAt":         {Column: "f.modified_at", Kind: list.Time},
}

// Factor returns a factor, or apierr.NotFound.
func (s *Store) Factor(ctx context.Context, tenant, factor id.ID) (Factor, error) {
	return pg.One[Factor](ctx, s.db, `SELECT `+factorColumns+` FROM factors f WHERE f.tenant_id = $1 AND f.id = $2`,
		tenant, factor)
}

// AccountFactors returns a page of the factors of an account.
func (s *Store) AccountFactors(ctx context.Context, account id.Ref, query list.Query) (list.Page[Factor], error) {
	return listsql.Select[Factor](ctx, s.db, Factors, query, factorColumns, `FROM factors f
		WHERE f.tenant_id = $1 AND f.account_id = $2`, "f.id", account.Tenant, account.ID)
}

// UsableFactor is a factor that a login can ask for, with the number of its
// phone.
type UsableFactor struct {
	Factor
	Number string // of an SMS factor
}

// usable are the factors of an account, of some types, that are enabled and verified, as are their
// phones.
const usable = `FROM factors f LEFT JOIN phones p ON p.tenant_id = f.tenant_id AND p.id = f.phone_id
	WHERE f.tenant_id = $1 AND f.account_id = $2 AND f.type = ANY($3) AND f.status = 'ENABLED'
	AND f.verification_status = 'VERIFIED'
	AND (f.phone_id IS NULL OR p.status = 'ENABLED' AND p.verification_status = 'VERIFIED')`

// HasUsableFactor reports whether an account has a factor of some types that is enabled and
// verified, as is its phone.
func (s *Store) HasUsableFactor(ctx context.Context, tenant, account id.ID, types []string) (bool, error) {
	return pg.Value[bool](ctx, s.db, `SELECT EXISTS (SELECT `+usable+`)`, tenant, account, types)
}

// UsableFactors returns at most limit factors of an account, of some types, that
// are enabled and verified, as are their phones.
func (tx *Tx) UsableFactors(ctx context.Context, tenant, account id.ID, types []string,
	limit int) ([]UsableFactor, error) {
	return pg.All[UsableFactor](ctx, tx, `SELECT `+factorColumns+`, coalesce(p.number, '') AS number
		`+usable+` ORDER BY f.id LIMIT $4`, tenant, account, types, limit)
}

// LockFactor reads and locks a factor, or returns apierr.NotFound.
func (tx *Tx) LockFactor(ctx context.Context, tenant, factor id.ID) (Factor, error) {
	return pg.One[Factor](ctx, tx, `SELECT `+factorColumns+` FROM factors f WHERE f.tenant_id = $1 AND f.id = $2
		FOR UPDATE`, tenant, factor)
}

// LockFactorOfPhone reads and locks the factor of a phone, or returns apierr.NotFound.
func (tx *Tx) LockFactorOfPhone(ctx context.Context, tenant, phone id.ID) (Factor, error) {
	return pg.One[Factor](ctx, tx, `SELECT `+factorColumns+` FROM factors f
		WHERE f.tenant_id = $1 AND f.phone_id = $2 FOR UPDATE`, tenant, phone)
}

// InsertFactor adds a factor. It returns apierr.Exists where the phone has a factor already.
func (tx *Tx) InsertFactor(ctx context.Context, f Factor) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("factors", factorColumns+", account_name_folded, issuer_folded"), f.args())
	return err
}

// UpdateFactor writes the columns of a factor that can change.
func (tx *Tx) UpdateFactor(ctx context.Context, f Factor) error {
	return pg.MustChange(ctx, tx,
		`UPDATE factors SET `+pg.Set(`account_name, account_name_folded, issuer, issuer_folded,
		last_step,
		challenge_id, status, verification_status, modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, f.args())
}

// args are the values of the columns by their names.
func (f Factor) args() pg.NamedArgs {
	return pg.Named(f, pg.Args{
		"account_name_folded": field.FoldOptional(f.AccountName), "issuer_folded": field.FoldOptional(f.Issuer),
	})
}

// DeleteFactor removes a factor with its challenges, not its phone.
func (tx *Tx) DeleteFactor(ctx context.Context, tenant, factor id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM factors WHERE tenant_id = $1 AND id = $2`, tenant, factor)
}
