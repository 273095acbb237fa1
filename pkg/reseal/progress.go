package reseal

import (
	"context"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// Remaining returns how many values of the columns are encrypted under another key than the
// active master key.
func Remaining[K any](ctx context.Context, db *pg.DB, ring *secure.Keyring,
	columns ...secure.SealedColumn[K]) (total int64, err error) {
	for _, c := range columns {
		n, err := pg.Value[int64](ctx, db, `SELECT count(*) FROM `+c.Table+`
			WHERE `+c.Column+` IS NOT NULL AND substring(`+c.Column+` FOR length($1::bytea)) <> $1::bytea`,
			ring.ActiveKeyPrefix())
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// All encrypts again the values of the columns that are encrypted under another key than the
// active master key, and reports the number of values after each batch. After an interruption the
// next call continues.
func All[K any](ctx context.Context, db *pg.DB, ring *secure.Keyring, report func(done int64),
	columns ...secure.SealedColumn[K]) error {
	var done int64
	for _, c := range columns {
		for {
			n, err := resealBatch(ctx, db, ring, c)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			done += int64(n)
			report(done)
		}
	}
	return nil
}
