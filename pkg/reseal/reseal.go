// Package reseal rotates the master key (key rotation, re-encryption): it encrypts the secrets in the
// tables of a service again under the active master key (pkg/secure/encryption.go), so that former
// keys can be removed from the configuration. The command is in deploy/standalone/app/rotate.go.
package reseal

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

const (
	batch = 1000 // the rows of one transaction
	retry = time.Minute
)

// Worker returns the worker that runs once at each start: it encrypts again the values that are
// encrypted under another key than the active master key, and logs when it is done. After a
// failure it retries each minute.
func Worker[K any](db *pg.DB, ring *secure.Keyring, columns ...secure.SealedColumn[K]) func(context.Context) error {
	return func(ctx context.Context) error {
		total := 0
		for i := 0; i < len(columns) && ctx.Err() == nil; {
			n, err := resealBatch(ctx, db, ring, columns[i])
			total += n
			switch {
			case err != nil && ctx.Err() == nil:
				slog.WarnContext(ctx, "rotation of the master key failed, retrying", "table", columns[i].Table,
					"error", err.Error())
				select {
				case <-ctx.Done():
				case <-time.After(retry):
				}
			case n == 0:
				i++
			}
		}
		if total > 0 {
			slog.InfoContext(ctx, "rotation of the master key done: the former key can be removed", "secrets", total)
		}
		<-ctx.Done()
		return nil
	}
}

// resealBatch re-encrypts one batch and returns its size. It waits for another replica that has
// locked the same rows, and then skips the values that the other has re-encrypted.
func resealBatch[K any](ctx context.Context, db *pg.DB, ring *secure.Keyring,
	c secure.SealedColumn[K]) (n int, err error) {
	type row struct {
		TenantID id.ID
		Key      K
		Value    []byte
	}
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		rows, err := pg.All[row](ctx, tx, `SELECT tenant_id, `+c.Key+` AS key, `+c.Column+` AS value FROM `+c.Table+`
			WHERE `+c.Column+` IS NOT NULL AND substring(`+c.Column+` FOR length($1::bytea)) <> $1::bytea LIMIT $2
			FOR UPDATE`,
			ring.ActiveKeyPrefix(), batch)
		if err != nil {
			return err
		}
		for _, r := range rows {
			secret, err := ring.Open(r.Value, c.Purpose(r.Key))
			if err != nil {
				return err
			}
			if err := pg.MustChange(ctx, tx,
				`UPDATE `+c.Table+` SET `+c.Column+` = $3 WHERE tenant_id = $1 AND `+c.Key+` = $2`,
				r.TenantID, r.Key, ring.Seal(secret, c.Purpose(r.Key))); err != nil {
				return err
			}
		}
		n = len(rows)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
