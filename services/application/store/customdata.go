package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/id"
)

// CustomData returns the customData of applications, or of organizations. It is a resource that
// is read and changed on its own.
func (s *Store) CustomData(kind OwnerKind, now func() time.Time) customdata.Store {
	return customdatastore.Store{DB: s.db, Now: now, Table: string(kind), ID: "id"}
}

// MergeCustomData merges a document into the customData of an owner, which the transaction has
// locked or inserted.
func (tx *Tx) MergeCustomData(ctx context.Context, tenant, owner id.ID, in customdata.Document, now time.Time) error {
	if in.IsEmpty() {
		return nil
	}
	_, err := customdatastore.Merge(ctx, tx, tenant, owner, in, now)
	return err
}
