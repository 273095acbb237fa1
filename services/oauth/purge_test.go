package oauth_test

import (
	"context"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func TestPurge(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	d.LogIn(t, d.Site)
	_, err := d.DB.Exec(t.Context(), `INSERT INTO access_tokens
		(tenant_id, id, application_id, account_id, key_id, issued_at, expires_at)
		SELECT t.tenant_id, gen_random_uuid(), t.application_id, t.account_id, t.key_id, t.issued_at, t.expires_at
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
