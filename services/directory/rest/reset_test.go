package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
)

// resetBench is a bench with one directory, and in it the account jo.
type resetBench struct {
	*bench
	directory id.ID
	jo        string // href
}

func newResetBench(t *testing.T) *resetBench {
	b := newBench(t)
	staff := b.directory("Staff")
	ref, _ := base.Parse(staff)
	return &resetBench{b, ref.ID, b.Post(staff+"/accounts", jo).Want(201).Href()}
}

func (b *resetBench) ask(login string, directories ...id.ID) (directoryapi.PasswordReset, error) {
	in := directoryapi.RequestReset{Tenant: b.signedUp.Tenant.ID, Login: login}
	for _, directory := range append(directories, b.directory) {
		in.Stores = append(in.Stores, directoryapi.Store{Kind: directoryapi.Directories, ID: directory})
	}
	return b.svc.RequestReset(b.Context(), in)
}

// token makes a reset token of jo.
func (b *resetBench) token() secure.Secret {
	b.Helper()
	made, err := b.ask("jo@example.test")
	if err != nil {
		b.Fatal(err)
	}
	return made.Token
}

func (b *resetBench) spend(token secure.Secret, password string) error {
	_, err := b.svc.ResetPassword(b.Context(), directoryapi.ResetPassword{
		ResetToken: directoryapi.ResetToken{Tenant: b.signedUp.Tenant.ID, Token: token}, Password: field.Some(password),
	})
	return err
}

// isGood reports whether a token stands for a reset.
func (b *resetBench) isGood(token secure.Secret) bool {
	b.Helper()
	_, err := b.svc.Reset(b.Context(), directoryapi.ResetToken{Tenant: b.signedUp.Tenant.ID, Token: token})
	if err != nil && !errors.Is(err, apierr.NotFound) {
		b.Fatal(err)
	}
	return err == nil
}

func (b *resetBench) exec(sql string, args ...any) {
	b.Helper()
	if _, err := pg.Exec(b.Context(), b.db, sql, args...); err != nil {
		b.Fatal(err)
	}
}

func (b *resetBench) texts(sql string) (texts []string) {
	b.Helper()
	rows, err := pg.All[struct{ Text string }](b.Context(), b.db, sql)
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range rows {
		texts = append(texts, row.Text)
	}
	return texts
}

// events returns the types of the events that wait, in order.
func (b *resetBench) events() []string {
	b.Helper()
	return b.texts(`SELECT convert_from(envelope, 'UTF8')::json->>'type' AS text FROM outbox ORDER BY seq`)
}

func parts(t *testing.T, token secure.Secret) (header, claims map[string]any) {
	t.Helper()
	for i, to := range []*map[string]any{&header, &claims} {
		part, err := base64.RawURLEncoding.DecodeString(strings.Split(token.Reveal(), ".")[i])
		if err == nil {
			err = json.Unmarshal(part, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}

// docs/interface/accounts.md#password-reset: {"tid", "stt", "alg"} and {"exp", "jti"}, nothing else.
func TestAResetTokenSaysOnlyItsTenantAndItsEnd(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	header, claims := parts(t, b.token())
	if len(header) != 3 || header["alg"] != "HS256" || header["stt"] != "assertion" ||
		header["tid"] != b.signedUp.Tenant.ID.String() {
		t.Errorf("the header is %v", header)
	}
	if jti, _ := claims["jti"].(string); len(claims) != 2 ||
		claims["exp"] != float64(b.clock.Now().Add(24*time.Hour).Unix()) || len(jti) < 20 {
		t.Errorf("the claims are %v", claims)
	}
}

func TestAForgedResetTokenIsRefused(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	token := b.token().Reveal()
	header, claims := parts(t, secure.Secret(token))
	encode := func(v map[string]any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	unsigned := func(alg string) string {
		return encode(map[string]any{"alg": alg, "tid": header["tid"], "stt": header["stt"]}) + "." + encode(claims)
	}
	signature := token[strings.LastIndexByte(token, '.'):]
	other, err := secure.SignJWT(map[string]any{"tid": header["tid"], "stt": "assertion"}, claims, "another key")
	if err != nil {
		t.Fatal(err)
	}
	longer := map[string]any{"jti": claims["jti"], "exp": claims["exp"].(float64) + 3600}
	for what, forged := range map[string]string{
		"without a signature":       unsigned("none") + ".",
		"none with the signature":   unsigned("none") + signature,
		"another algorithm":         unsigned("HS512") + signature,
		"an asymmetric algorithm":   unsigned("RS256") + signature,
		"under another key":         other,
		"with a later end":          strings.SplitN(token, ".", 2)[0] + "." + encode(longer) + signature,
		"with a signature of zeros": token[:strings.LastIndexByte(token, '.')+1] + strings.Repeat("A", 43),
	} {
		if b.isGood(secure.Secret(forged)) || !errors.Is(b.spend(secure.Secret(forged), "Different1!"), apierr.NotFound) {
			t.Errorf("a token %s is accepted", what)
		}
	}
	if !b.isGood(secure.Secret(token)) {
		t.Error("the token itself is refused")
	}
}

func TestAResetTokenEndsAfterTheHoursOfItsPolicy(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	b.exec(`UPDATE password_policies SET reset_token_ttl = 2`)
	token := b.token()
	b.clock.Move(2*time.Hour - time.Second)
	if !b.isGood(token) {
		t.Error("the token is refused a second before its end")
	}
	b.clock.Move(time.Second)
	if b.isGood(token) || !errors.Is(b.spend(token, "Different1!"), apierr.NotFound) {
		t.Error("the token is good at its end")
	}
}

func TestAResetTokenIsVoidOnceWhatItIsForHasChanged(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	for _, c := range []struct {
		body   string
		status int
		void   bool
	}{
		{`{"password":"Different1!"}`, 200, true},
		{`{"email":"jo.doe@example.test"}`, 200, true},
		{`{"email":"jo@example.test"}`, 200, true},
		{`{"givenName":"Joanna","status":"DISABLED"}`, 200, false},
		{`{"password":"weak"}`, 400, false},
		{`{"email":"no address","password":"Different1!"}`, 400, false},
	} {
		login := b.Get(b.jo).Want(200).Text("email")
		made, err := b.ask(login)
		if err != nil {
			t.Fatal(err)
		}
		b.Post(b.jo, c.body).Want(c.status)
		if b.isGood(made.Token) == c.void {
			t.Errorf("after %s it is void: %v", c.body, !c.void)
		}
	}
}

func TestAResetTokenGoesWithItsAccount(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	token := b.token()
	b.Delete(b.jo).Want(204)
	if b.isGood(token) || !errors.Is(b.spend(token, "Different1!"), apierr.NotFound) {
		t.Error("the token is good after its account")
	}
}

func TestAResetTokenIsOnlyForItsOwnAccount(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	staff := base.To("directories", b.directory)
	sam := b.Post(staff+"/accounts", `{"email":"sam@example.test","password":"Changeme1!"}`).Want(201).Href()
	untouched := string(b.Get(sam).Want(200).Body)
	b.clock.Move(time.Minute)
	made, err := b.ask("sam@example.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.spend(b.token(), "Different1!"); err != nil {
		t.Fatal(err)
	}
	if body := string(b.Get(sam).Want(200).Body); body != untouched {
		t.Errorf("the other account became %s", body)
	}
	if !b.isGood(made.Token) {
		t.Error("the other account's token is void")
	}
	changed, now := b.Get(b.jo).Want(200), b.clock.Now().Format("2006-01-02T15:04:05.000Z")
	if changed.Text("passwordModifiedAt") != now || changed.Text("modifiedAt") != now ||
		changed.Text("status") != "ENABLED" {
		t.Errorf("at %s the account became %s", now, changed.Body)
	}
}

func TestAccountsOfMirrorsGetNoResetToken(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	mirror, _ := base.Parse(b.bench.directory("Mirror"))
	b.Post(base.To("directories", mirror.ID)+"/accounts", jo).Want(201)
	b.Post(base.To("directories", mirror.ID)+"/accounts", `{"email":"sam@example.test","password":"Changeme1!"}`).Want(201)
	b.exec(`UPDATE directories SET provider_id = 'ldap' WHERE id = $1`, mirror.ID)
	made, err := b.ask("jo@example.test", mirror.ID)
	if err != nil || base.To("accounts", made.Account.ID) != b.jo {
		t.Errorf("the next store should decide: %v", err)
	}
	if _, err := b.ask("sam@example.test", mirror.ID); !errors.Is(err, apierr.NoSuchResource) {
		t.Errorf("an account of the mirror matched: %v", err)
	}
}

func TestResetMailsGoOutWhereTheyAreOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reset, success string
		want           []string
	}{
		{"ENABLED", "ENABLED", []string{"PasswordResetRequested", "PasswordChanged", "PasswordReset"}},
		{"DISABLED", "ENABLED", []string{"PasswordChanged", "PasswordReset"}},
		{"ENABLED", "DISABLED", []string{"PasswordResetRequested", "PasswordChanged"}},
		{"DISABLED", "DISABLED", []string{"PasswordChanged"}},
	} {
		b := newResetBench(t)
		b.exec(`UPDATE password_policies SET reset_email_status = $1, reset_success_email_status = $2`, c.reset, c.success)
		before := len(b.events())
		token := b.token()
		if _, err := b.ask("nobody@example.test"); !errors.Is(err, apierr.NoSuchResource) {
			t.Fatal(err)
		}
		if err := b.spend(token, "weak"); !errors.Is(err, apierr.TooShort) {
			t.Fatal(err)
		}
		if err := b.spend(token, "Different1!"); err != nil {
			t.Fatal(err)
		}
		if err := b.spend(token, "Different2!"); !errors.Is(err, apierr.NotFound) {
			t.Fatal(err)
		}
		if got := b.events()[before:]; !slices.Equal(got, c.want) {
			t.Errorf("with %s and %s the events are %v, want %v", c.reset, c.success, got, c.want)
		}
	}
}

func TestAResetTokenIsNeverStoredOrSentInClear(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	token := b.token()
	_, claims := parts(t, token)
	for _, table := range []string{"tenants", "accounts", "password_resets", "outbox"} {
		for _, row := range b.texts(`SELECT t::text AS text FROM ` + table + ` t`) {
			if strings.Contains(row, token.Reveal()) || strings.Contains(row, claims["jti"].(string)) {
				t.Errorf("%s shows a token: %s", table, row)
			}
		}
	}
}

func TestTheFirstResetTokensOfATenantHaveOneKey(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	tokens := make([]secure.Secret, 20)
	var all sync.WaitGroup
	for i := range tokens {
		all.Go(func() {
			made, err := b.ask("jo@example.test")
			if err != nil {
				t.Error(err)
			}
			tokens[i] = made.Token
		})
	}
	all.Wait()
	for _, token := range tokens {
		if !b.isGood(token) {
			t.Error("a token is signed with a key that was not kept")
		}
	}
}

func TestExpiredResetsArePurged(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	token := b.token()
	const old = 2500 // more than two batches
	b.exec(`INSERT INTO password_resets (tenant_id, digest, account_id, application_id, expires_at, created_at)
		SELECT tenant_id, decode(lpad(n::text, 8, '0'), 'hex'), account_id, NULL, $1, $1
		FROM password_resets, generate_series(1, $2::int) AS n`, b.clock.Now().Add(-31*24*time.Hour), old)
	stop := worktest.Start(t, b.svc.Purger)
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for len(b.texts(`SELECT 'reset' AS text FROM password_resets`)) > 1 {
		select {
		case <-deadline.C:
			t.Fatal("expired resets are still there")
		default:
		}
	}
	stop()
	if !b.isGood(token) {
		t.Error("a reset that is good was purged")
	}
}

func (b *resetBench) askVerification(login string) error {
	_, err := b.svc.RequestVerification(b.Context(), directoryapi.RequestVerification{
		Tenant: b.signedUp.Tenant.ID, Login: login,
		Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: b.directory}},
	})
	return err
}

func TestAnotherVerificationMailHasTheSameToken(t *testing.T) {
	t.Parallel()
	b := newResetBench(t)
	policy := base.To("accountCreationPolicies", b.directory)
	if err := b.askVerification("jo@example.test"); !errors.Is(err, apierr.VerificationDisabled) {
		t.Fatalf("where the workflow is off: %v", err)
	}
	b.Post(policy, `{"verificationEmailStatus":"ENABLED"}`).Want(200)
	events := len(b.events())
	ask := func() string {
		t.Helper()
		if err := b.askVerification("jo@example.test"); err != nil {
			t.Fatal(err)
		}
		return b.Get(b.jo).Want(200).Href("emailVerificationToken")
	}
	former := ask()
	b.clock.Move(6 * 24 * time.Hour)
	token := ask()
	if token != former {
		t.Errorf("the second mail has the token %s, want that of the first, %s", token, former)
	}
	b.clock.Move(6 * 24 * time.Hour) // its lifetime has restarted
	b.Post(token, "").Want(200)
	if err := b.askVerification("jo@example.test"); err != nil {
		t.Fatalf("once the email is verified: %v", err)
	}
	if got, want := b.events()[events:],
		[]string{"VerificationRequested", "VerificationRequested", "AccountVerified"}; !slices.Equal(got, want) {
		t.Errorf("the events are %v, want %v", got, want)
	}
	if b.Get(b.jo).Want(200).Object()["emailVerificationToken"] != nil {
		t.Error("a verified email has a token")
	}
}
