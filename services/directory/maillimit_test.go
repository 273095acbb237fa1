package directory_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/store"
)

// The rate limit of mails to an account holds for all replicas together.
func TestAnonymousCallersSendFewMailsToAnAccount(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, store.Config)
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	var replicas [2]*app.Service
	for i := range replicas {
		replicas[i] = newService(store.New(db, now), ring, cheap)
	}
	w := world{Service: replicas[0], db: db, tenant: id.New(now()), directory: id.New(now())}
	w.fill(t, directory.CreationPolicyChange{VerificationEmailStatus: field.Some("ENABLED")})
	stores := []directoryapi.Store{{Kind: directoryapi.Directories, ID: w.directory}}
	reset := func(s *app.Service, login string, anonymous bool) {
		made, err := s.RequestReset(t.Context(),
			directoryapi.RequestReset{Tenant: w.tenant, Stores: stores, Login: login, Anonymous: anonymous})
		if err != nil || !anonymous && made.Token == "" {
			t.Errorf("a reset is answered %+v, %v", made, err)
		}
	}
	verify := func(s *app.Service, login string, anonymous bool) {
		in := directoryapi.RequestVerification{Tenant: w.tenant, Stores: stores, Login: login, Anonymous: anonymous}
		if _, err := s.RequestVerification(t.Context(), in); err != nil {
			t.Errorf("a verification is answered %v", err)
		}
	}
	// ask lets each of the replicas do both as often, by both names of the account,
	// and returns how many mails go out of each workflow.
	ask := func(times int, anonymous bool) (resets, verifications int) {
		t.Helper()
		var together sync.WaitGroup
		for i := range times {
			together.Go(func() {
				login := []string{"jo", "JO@example.test"}[i/2%2]
				reset(replicas[i%2], login, anonymous)
				verify(replicas[i%2], login, anonymous)
			})
		}
		together.Wait()
		for _, event := range w.emitted(t) {
			switch event {
			case "PasswordResetRequested":
				resets++
			case "VerificationRequested":
				verifications++
			}
		}
		return resets, verifications
	}
	w.emitted(t)
	if resets, verifications := ask(60, true); resets != 10 || verifications != 10 {
		t.Errorf("60 anonymous requests of each send %d and %d mails, want 10 and 10", resets, verifications)
	}
	tokens := func() []string {
		t.Helper()
		all, err := pg.Values[string](t.Context(), w.db, `SELECT encode(digest, 'hex') FROM password_resets
			UNION ALL SELECT encode(verification_digest, 'hex') FROM accounts WHERE verification_digest IS NOT NULL ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := tokens()
	if resets, verifications := ask(4, true); resets+verifications != 0 || !slices.Equal(tokens(), before) {
		t.Errorf("beyond the limit %d and %d mails go out, and the tokens were %v and are %v", resets, verifications, before,
			tokens())
	}
	if resets, verifications := ask(40, false); resets != 40 || verifications != 40 {
		t.Errorf("40 requests with the tenant's key send %d and %d mails", resets, verifications)
	}
	if resets, verifications := ask(4, true); resets+verifications != 0 {
		t.Errorf("after the tenant's own requests %d and %d mails go out", resets, verifications)
	}
	if _, err := pg.Exec(t.Context(), w.db, `UPDATE counts SET ends_at = $1`, now()); err != nil {
		t.Fatal(err)
	}
	if resets, verifications := ask(4, true); resets != 4 || verifications != 4 {
		t.Errorf("in the next hour 4 requests of each send %d and %d mails", resets, verifications)
	}
}
