package reseal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// ErrMasterKey is in the error of a master key that is not the one of the secrets in the database.
var ErrMasterKey = errors.New("DOORWARD_MASTER_KEY is not that of the secrets in the database")

// canaryText is what each canary holds.
const canaryText secure.Secret = "doorward"

// canary is a row of master_key_canaries: a known text that is sealed under one master key.
type canary struct {
	KeyID  string
	Sealed []byte
}

func canaryPurpose(keyID string) string { return "master key canary/" + keyID }

// EnsureCanaries checks the master keys as VerifyMasterKey does, and adds the canaries that lack. A process that
// seals calls it before it does.
func EnsureCanaries[K any](ctx context.Context, db *pg.DB, ring *secure.Keyring,
	columns ...secure.SealedColumn[K]) error {
	missing, err := VerifyMasterKey(ctx, db, ring, columns...)
	if err != nil || len(missing) == 0 {
		return err
	}
	return db.InTx(ctx, func(tx *pg.Tx) error {
		// Another process may just add the canaries of another key.
		if _, err := pg.Exec(ctx, tx, `LOCK TABLE master_key_canaries IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		missing, err := VerifyMasterKey(ctx, tx, ring, columns...)
		if err != nil {
			return err
		}
		for _, keyID := range missing {
			tx.Queue(`INSERT INTO master_key_canaries (key_id, sealed, created_at) VALUES ($1, $2, $3)`,
				keyID, ring.Only(keyID).Seal(canaryText, canaryPurpose(keyID)), time.Now())
		}
		return nil
	})
}

// VerifyMasterKey returns ErrMasterKey if a configured master key does not open the canary of its id, if no
// configured key has a canary where there are some, or, without any canary, if there are sealed values and none
// opens. missing are the ids of the configured keys without a canary.
func VerifyMasterKey[K any](ctx context.Context, db pg.Querier, ring *secure.Keyring, columns ...secure.SealedColumn[K],
) (missing []string, err error) {
	canaries, err := pg.All[canary](ctx, db, `SELECT key_id, sealed FROM master_key_canaries ORDER BY created_at`)
	if err != nil {
		return nil, err
	}
	missing = ring.KeyIDs()
	var known []string
	for _, c := range canaries {
		known = append(known, fmt.Sprintf("%q", c.KeyID))
		at := slices.Index(missing, c.KeyID)
		if at < 0 {
			continue // of a former key
		}
		missing = slices.Delete(missing, at, at+1)
		if text, err := ring.Only(c.KeyID).Open(c.Sealed, canaryPurpose(c.KeyID)); err != nil || text != canaryText {
			return nil, fmt.Errorf("%w: the key %q is another than the one that had this id", ErrMasterKey, c.KeyID)
		}
	}
	switch {
	case len(canaries) == 0:
		return missing, verifySealed(ctx, db, ring, columns)
	case len(missing) == len(ring.KeyIDs()):
		return nil, fmt.Errorf("%w: these are sealed under keys with the ids %s", ErrMasterKey,
			strings.Join(known, ", "))
	}
	return missing, nil
}

// verifySealed returns ErrMasterKey if a sealed value of each column is read, there is one, and none opens.
func verifySealed[K any](ctx context.Context, db pg.Querier, ring *secure.Keyring,
	columns []secure.SealedColumn[K]) error {
	type row struct {
		Key   K
		Value []byte
	}
	var refused error
	for _, c := range columns {
		sample, err := pg.One[row](ctx, db, `SELECT `+c.Key+` AS key, `+c.Column+` AS value FROM `+c.Table+`
			WHERE `+c.Column+` IS NOT NULL LIMIT 1`)
		if errors.Is(err, apierr.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = ring.Open(sample.Value, c.Purpose(sample.Key))
		if err == nil {
			return nil
		}
		refused = fmt.Errorf("%w: %s.%s: %w", ErrMasterKey, c.Table, c.Column, err)
	}
	return refused
}
