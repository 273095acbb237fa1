package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// RuleKind is the collection under which mapping rules are addressed.
type RuleKind string

// The kinds of mapping rules: of the user object of a social or generic OAuth
// provider, and of the attributes of a SAML assertion.
const (
	UserInfo           RuleKind = "userInfoMappingRules"
	AttributeStatement RuleKind = "attributeStatementMappingRules"
)

// MappingRules say which facts of a provider go to which attributes of an
// account. A directory has one set at most.
type MappingRules struct {
	TenantID    id.ID
	ID          id.ID
	DirectoryID id.ID
	Kind        RuleKind
	Items       []MappingRule
	CreatedAt   time.Time
	ModifiedAt  time.Time
}

// MappingRule copies one fact.
type MappingRule struct {
	Name              *string  `json:"name"`       // nil: any name of the NameFormat
	NameFormat        *string  `json:"nameFormat"` // of an AttributeStatement; nil: any
	AccountAttributes []string `json:"accountAttributes"`
}

const mappingRulesColumns = `tenant_id, id, directory_id, kind, items, created_at, modified_at`

// MappingRules gives the rules of that kind and id, or apierr.NotFound.
func (s *Store) MappingRules(ctx context.Context, kind RuleKind, tenant, rules id.ID) (MappingRules, error) {
	return pg.One[MappingRules](ctx, s.db, `SELECT `+mappingRulesColumns+` FROM mapping_rules WHERE tenant_id = $1 AND id = $2 AND kind = $3`, tenant, rules, kind)
}

// LockMappingRules reads rules that the transaction will change.
func (tx *Tx) LockMappingRules(ctx context.Context, kind RuleKind, tenant, rules id.ID) (MappingRules, error) {
	return pg.One[MappingRules](ctx, tx, `SELECT `+mappingRulesColumns+` FROM mapping_rules WHERE tenant_id = $1 AND id = $2 AND kind = $3 FOR UPDATE`, tenant, rules, kind)
}

// InsertMappingRules adds the rules of a new directory.
func (tx *Tx) InsertMappingRules(ctx context.Context, r MappingRules) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO mapping_rules (`+mappingRulesColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		r.TenantID, r.ID, r.DirectoryID, r.Kind, r.Items, r.CreatedAt, r.ModifiedAt)
	return err
}

// UpdateMappingRules writes what a client can change.
func (tx *Tx) UpdateMappingRules(ctx context.Context, r MappingRules) error {
	return pg.MustChange(ctx, tx, `UPDATE mapping_rules SET items = $3, modified_at = $4 WHERE tenant_id = $1 AND id = $2`,
		r.TenantID, r.ID, r.Items, r.ModifiedAt)
}
