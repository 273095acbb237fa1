package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// Phone is a telephone of an account.
type Phone struct {
	TenantID           id.ID
	ID                 id.ID
	AccountID          id.ID
	Number             string // E.164
	Name               *string
	Description        *string
	Status             string // Enabled or Disabled
	VerificationStatus string // Verified or Unverified
	CreatedAt          time.Time
	ModifiedAt         time.Time
}

const phoneColumns = `p.tenant_id, p.id, p.account_id, p.number, p.name, p.description, p.status, p.verification_status,
	p.created_at, p.modified_at`

// Phones are searched and sorted by these attributes.
var Phones = list.Spec{
	"number":             {Column: "p.number", Folded: "p.number", Phone: true},
	"name":               {Column: "p.name", Folded: "p.name_folded"},
	"description":        {Column: "p.description", Folded: "p.description_folded"},
	"status":             {Column: "p.status", Kind: list.Enum, Values: []string{Enabled, Disabled}},
	"verificationStatus": {Column: "p.verification_status", Kind: list.Enum, Values: []string{Verified, Unverified}},
	"createdAt":          {Column: "p.created_at", Kind: list.Time},
	"modifiedAt":         {Column: "p.modified_at", Kind: list.Time},
}

// Phone returns a phone, or apierr.NotFound.
func (s *Store) Phone(ctx context.Context, tenant, phone id.ID) (Phone, error) {
	return pg.One[Phone](ctx, s.db, `SELECT `+phoneColumns+` FROM phones p WHERE p.tenant_id = $1 AND p.id = $2`,
		tenant, phone)
}

// AccountPhones returns a page of the phones of an account.
func (s *Store) AccountPhones(ctx context.Context, account id.Ref, query list.Query) (list.Page[Phone], error) {
	return listsql.Select[Phone](ctx, s.db, Phones, query, phoneColumns, `FROM phones p
		WHERE p.tenant_id = $1 AND p.account_id = $2`, "p.id", account.Tenant, account.ID)
}

// TenantPhones returns a page of all the phones of a tenant.
func (s *Store) TenantPhones(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[Phone], error) {
	return listsql.Select[Phone](ctx, s.db, Phones, query, phoneColumns, `FROM phones p WHERE p.tenant_id = $1`, "p.id",
		tenant.Tenant)
}

// LockPhone reads and locks a phone, or returns apierr.NotFound.
func (tx *Tx) LockPhone(ctx context.Context, tenant, phone id.ID) (Phone, error) {
	return pg.One[Phone](ctx, tx,
		`SELECT `+phoneColumns+` FROM phones p WHERE p.tenant_id = $1 AND p.id = $2 FOR UPDATE`,
		tenant, phone)
}

// PhoneOfNumber returns the phone of an account that has a number, or
// apierr.NotFound.
func (tx *Tx) PhoneOfNumber(ctx context.Context, tenant, account id.ID, number string) (Phone, error) {
	return pg.One[Phone](ctx, tx, `SELECT `+phoneColumns+` FROM phones p
		WHERE p.tenant_id = $1 AND p.account_id = $2 AND p.number = $3`, tenant, account, number)
}

// InsertPhone adds a phone. A number that the account has already is apierr.Exists.
func (tx *Tx) InsertPhone(ctx context.Context, p Phone) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("phones", phoneColumns+", name_folded, description_folded"), p.args())
	return err
}

// UpdatePhone writes the columns of a phone that can change. A number that another phone of the account
// has is apierr.Exists.
func (tx *Tx) UpdatePhone(ctx context.Context, p Phone) error {
	return pg.MustChange(ctx, tx,
		`UPDATE phones SET `+pg.Set(`number, name, name_folded, description, description_folded,
		status, verification_status, modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, p.args())
}

// args are the values of the columns by their names.
func (p Phone) args() pg.NamedArgs {
	return pg.Named(p, pg.Args{"name_folded": field.FoldOptional(p.Name),
		"description_folded": field.FoldOptional(p.Description)})
}

// DeleteUnverifiedPhones removes the phones of an account, but for one, that are not verified and whose
// factor is not either, with these factors and their challenges.
func (tx *Tx) DeleteUnverifiedPhones(ctx context.Context, tenant, account, except id.ID) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM phones p USING factors f
		WHERE p.tenant_id = $1 AND p.account_id = $2 AND p.id <> $3
		AND p.verification_status = 'UNVERIFIED' AND f.tenant_id = p.tenant_id AND f.phone_id = p.id
		AND f.verification_status = 'UNVERIFIED'`, tenant, account, except)
	return err
}

// DeletePhone removes a phone with its factor and that factor's challenges.
func (tx *Tx) DeletePhone(ctx context.Context, tenant, phone id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM phones WHERE tenant_id = $1 AND id = $2`, tenant, phone)
}
