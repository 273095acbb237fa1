package oauth_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/internal/oauthtest"
	"github.com/doorward/doorward/services/oauth/store"
)

func TestPurge(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	d.LogIn(t, d.Site)
	_, err := d.DB.Exec(t.Context(), `INSERT INTO access_tokens SELECT t.tenant_id, gen_random_uuid(), t.application_id, t.account_id, t.key_id, NULL, t.issued_at, t.expires_at
		FROM access_tokens t, generate_series(1, 10500)`)
	if err != nil {
		t.Fatal(err)
	}
	purge := func(want int64) {
		t.Helper()
		if n, err := d.Service.Purge(t.Context()); err != nil || n != want {
			t.Errorf("purged %d, %v; want %d", n, err, want)
		}
	}
	d.Clock.Move(time.Hour + time.Minute)
	purge(0) // another process may not have come to the end of the hour
	d.Clock.Move(time.Second)
	t.Run("in two replicas at once, each row is purged once", func(t *testing.T) {
		counts := make([]int64, 2)
		for i, err := range runConcurrently(2, func(i int) (err error) {
			counts[i], err = d.Service.Purge(context.Background())
			return err
		}) {
			if err != nil {
				t.Errorf("replica %d: %v", i, err)
			}
		}
		if counts[0]+counts[1] != 10501 {
			t.Errorf("purged %v", counts)
		}
	})
	d.Clock.Move(60 * 24 * time.Hour)
	purge(1)
	if got, want := rows(t, d), [6]int{1, 1}; got != want {
		t.Errorf("left are %v, want %v", got, want)
	}
}

// The worker purges again and again until its context ends.
func TestPurger(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	stop := worktest.Start(t, d.Service.PurgerEvery(time.Millisecond))
	for range 2 {
		d.LogIn(t, d.Site)
		d.Clock.Move(61 * 24 * time.Hour)
		deadline := time.Now().Add(20 * time.Second)
		for rows(t, d) != [6]int{1, 1} {
			if time.Now().After(deadline) {
				t.Fatal("the tokens stay")
			}
		}
	}
	stop()
}

// rowsRead returns how many access tokens the connection of a transaction has
// read.
func rowsRead(ctx context.Context, tx *store.Tx) (int64, error) {
	return pg.Value[int64](ctx, tx, `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'access_tokens'::regclass`)
}

// A purge of very many tokens runs in batches that read no more rows than they delete, the last as
// the first, and that block no request. (A million took 200 batches of the same time.)
func TestPurgingManyTokens(t *testing.T) {
	const many = 200_000
	d := oauthtest.Open(t)
	d.LogIn(t, d.Site)
	for _, statement := range []string{
		`INSERT INTO access_tokens SELECT t.tenant_id, gen_random_uuid(), t.application_id, t.account_id, t.key_id, NULL, t.issued_at, t.expires_at + n * interval '1 ms'
		FROM access_tokens t, generate_series(1, ` + strconv.Itoa(many) + `) n`,
		`ANALYZE access_tokens`,
	} {
		if _, err := d.DB.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	d.Clock.Move(2 * time.Hour)
	before := d.Clock.Now().Add(-time.Minute)
	table := store.ExpiringTables[slices.Index(store.TokenKinds, store.Access)]
	done, total := store.PurgeResult{Rows: oauth.Batch}, int64(0)
	for done.Rows == oauth.Batch {
		err := d.Store.Tx(t.Context(), func(tx *store.Tx) (err error) {
			begin, err := rowsRead(t.Context(), tx)
			if err != nil {
				return err
			}
			if done, err = tx.DeleteExpired(t.Context(), table, done.Last, before, oauth.Batch); err != nil {
				return err
			}
			total += done.Rows
			end, err := rowsRead(t.Context(), tx)
			if end-begin > 3*oauth.Batch {
				t.Errorf("after %d rows a batch reads %d", total, end-begin)
			}
			if total == oauth.Batch || done.Rows < oauth.Batch {
				d.LogIn(t, d.Site) // while the batch holds its rows
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if total != many+1 {
		t.Errorf("purged %d, want %d", total, many+1)
	}
}
