package directory_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/store"
)

// signUps is a service, and what its mails of sign-ups would have.
type signUps struct {
	*app.Service
	db   *pg.DB
	ring *secure.Keyring
}

func newSignUps(t *testing.T) signUps {
	t.Helper()
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Open(t, store.Config)
	return signUps{newService(store.New(db, now), ring, cheap), db, ring}
}

func newOwner(email string) directoryapi.RequestSignUp {
	return directoryapi.RequestSignUp{Tenant: id.New(now()), Account: id.New(now()), Owner: directoryapi.NewAccount{
		Email: field.Some(email), GivenName: field.Some("Jo"), Surname: field.Some("Doe"), Password: field.Some("Changeme1"),
	}}
}

// mails are the tokens of the requested mails, by account.
func (s signUps) mails(t *testing.T) map[id.ID]secure.Secret {
	t.Helper()
	payloads, err := pg.Values[string](t.Context(), s.db, `SELECT convert_from(envelope, 'UTF8')::json->>'data' FROM outbox
		WHERE convert_from(envelope, 'UTF8')::json->>'type' = 'SignUpRequested'`)
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[id.ID]secure.Secret{}
	for _, payload := range payloads {
		var e events.SignUpRequested
		if err := json.Unmarshal([]byte(payload), &e); err != nil {
			t.Fatal(err)
		}
		token, err := s.ring.Open(e.Token, events.MailTokenPurpose(e.Account))
		if err != nil {
			t.Fatal(err)
		}
		tokens[e.Account] = token
	}
	return tokens
}

func (s signUps) request(ctx context.Context, in directoryapi.RequestSignUp) error {
	_, err := s.RequestSignUp(ctx, in)
	return err
}

func TestASignUpWaitsForItsMail(t *testing.T) {
	t.Parallel()
	s := newSignUps(t)
	in := newOwner("Owner@Example.test")
	if err := s.request(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tenant(t.Context(), id.Ref{Tenant: in.Tenant, ID: in.Tenant}); !errors.Is(err, apierr.NotFound) {
		t.Errorf("before the mail is answered there is a tenant: %v", err)
	}
	token := s.mails(t)[in.Account]
	pending, err := s.PendingSignUp(t.Context(), directoryapi.SignUpToken{Token: token})
	if want := (directoryapi.PendingSignUp{
		Tenant: in.Tenant, Account: in.Account, Email: "Owner@Example.test",
	}); err != nil ||
		pending != want {
		t.Errorf("the token leads to %+v, %v", pending, err)
	}
	mail, err := s.Mail(t.Context(),
		directoryapi.MailOf{Tenant: in.Tenant, Account: in.Account, Workflow: directoryapi.SigningUp})
	if err != nil || mail.Account.Email != "Owner@Example.test" || mail.Template.Workflow != directoryapi.SigningUp ||
		!mail.Template.Unchanged {
		t.Errorf("the mail is %+v, %v", mail, err)
	}
	signUp := directoryapi.SignUp{Tenant: in.Tenant, Directory: id.New(now()), Owner: in.Account, Key: "calm-otter",
		DirectoryName: "Administrators", Pending: true}
	for range 2 {
		made, err := s.SignUp(t.Context(), signUp)
		if err != nil || made.Owner.Email != "Owner@Example.test" ||
			made.Owner.EmailVerificationStatus != directoryapi.Verified ||
			*made.Owner.GivenName != "Jo" {
			t.Fatalf("the tenant is %+v, %v", made, err)
		}
	}
	if _, err := s.Authenticate(t.Context(), directoryapi.Authenticate{
		Tenant: in.Tenant, Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: signUp.Directory}},
		Login: "owner@example.test", Password: "Changeme1",
	}); err != nil {
		t.Errorf("the owner cannot log in: %v", err)
	}
	policy, err := s.RegistrationRules(t.Context(), id.Ref{Tenant: in.Tenant, ID: signUp.Directory})
	if err != nil || !policy.Builtin || policy.MinLength != 8 || policy.MaxLength != 100 || policy.MinLowerCase != 1 ||
		policy.MinUpperCase != 1 ||
		policy.MinNumeric != 1 || policy.MinSymbol != 0 || policy.MinDiacritic != 0 {
		t.Errorf("the strength that a sign-up asks for is not that of the directory: %+v, %v", policy, err)
	}

	var ended atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			switch _, err := s.EndSignUp(t.Context(), directoryapi.SignUpToken{Token: token}); {
			case err == nil:
				ended.Add(1)
			case !errors.Is(err, apierr.NotFound):
				t.Errorf("a parallel call ends with %v", err)
			}
		})
	}
	all.Wait()
	if ended.Load() != 1 {
		t.Errorf("%d of 50 calls spent the token", ended.Load())
	}
	for _, token := range []secure.Secret{token, "", "another"} {
		if _, err := s.PendingSignUp(t.Context(), directoryapi.SignUpToken{Token: token}); !errors.Is(err, apierr.NotFound) {
			t.Errorf("a token that is not good leads to %v", err)
		}
	}
	signUp.Tenant, signUp.Owner = id.New(now()), id.New(now())
	if _, err := s.SignUp(t.Context(), signUp); !errors.Is(err, apierr.NotFound) {
		t.Errorf("a tenant without a sign-up is made: %v", err)
	}
}

func TestASignUpIsRefusedAsAnAccountIs(t *testing.T) {
	t.Parallel()
	s := newSignUps(t)
	for name, c := range map[string]struct {
		change func(*directoryapi.NewAccount)
		want   *apierr.Error
	}{
		"no email":         {func(a *directoryapi.NewAccount) { a.Email = field.Text{} }, apierr.Required},
		"no address":       {func(a *directoryapi.NewAccount) { a.Email = field.Some("jo") }, apierr.Format},
		"no given name":    {func(a *directoryapi.NewAccount) { a.GivenName = field.Text{} }, apierr.Required},
		"no surname":       {func(a *directoryapi.NewAccount) { a.Surname = field.Text{} }, apierr.Required},
		"no password":      {func(a *directoryapi.NewAccount) { a.Password = field.Text{} }, apierr.Required},
		"a short password": {func(a *directoryapi.NewAccount) { a.Password = field.Some("Ab1") }, apierr.TooShort},
		"a weak password":  {func(a *directoryapi.NewAccount) { a.Password = field.Some("changeme") }, apierr.BadRequest},
	} {
		in := newOwner("owner@example.test")
		c.change(&in.Owner)
		if err := s.request(t.Context(), in); !errors.Is(err, c.want) {
			t.Errorf("%s ends with %v", name, err)
		}
	}
	if mails := s.mails(t); len(mails) != 0 {
		t.Errorf("%d mails go out", len(mails))
	}
}

// Beyond the rate limit of an email, the answer is the same as before; beyond that of a network, a
// sign-up is refused.
func TestSignUpsAreLimited(t *testing.T) {
	t.Parallel()
	s := newSignUps(t)
	for i := range 5 {
		email := "victim@example.test"
		if i%2 == 1 {
			email = "VICTIM@Example.test"
		}
		if err := s.request(t.Context(), newOwner(email)); err != nil {
			t.Errorf("sign-up %d of the same email ends with %v", i, err)
		}
	}
	if mails := s.mails(t); len(mails) != 3 {
		t.Errorf("%d mails go to one address, want 3", len(mails))
	}
	for _, network := range [][2]string{{"203.0.113.7", "203.0.113.7"}, {"2001:db8::1", "2001:db8::ffff:2"}} {
		var refused int
		for i := range 12 {
			ctx := caller.Into(t.Context(), caller.Caller{Address: netip.MustParseAddr(network[i%2])})
			if err := s.request(ctx, newOwner(string(rune('a'+i))+network[0][:3]+"@example.test")); errors.Is(err,
				apierr.TooMany) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused != 2 {
			t.Errorf("%d of 12 sign-ups from %s are refused, want 2", refused, network[0])
		}
	}
	ctx := caller.Into(t.Context(), caller.Caller{Address: netip.MustParseAddr("203.0.113.8")})
	if err := s.request(ctx, newOwner("other@example.test")); err != nil {
		t.Errorf("another network is refused: %v", err)
	}
}

// signUp creates a tenant.
func (s signUps) signUp(t *testing.T, key string) directoryapi.SignedUp {
	t.Helper()
	made, err := s.SignUp(t.Context(), directoryapi.SignUp{
		Tenant: id.New(now()), Directory: id.New(now()), Owner: id.New(now()), Key: key, DirectoryName: "Administrators",
		Email: "owner@example.test",
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (s signUps) invite(t *testing.T, tenant id.ID, email string) error {
	t.Helper()
	_, err := s.Invite(t.Context(), id.Ref{Tenant: tenant, ID: tenant}, directory.NewInvitation{Email: field.Some(email)})
	return err
}

func TestTheRateLimitsOfInvitationsAndSignUpsAreSeparate(t *testing.T) {
	t.Parallel()
	s := newSignUps(t)
	const email = "new@example.test"
	signUpMails := func() (mails int) {
		t.Helper()
		before := len(s.mails(t))
		for i := range 4 {
			if err := s.request(t.Context(), newOwner(email)); err != nil {
				t.Errorf("sign-up %d ends with %v", i, err)
			}
		}
		return len(s.mails(t)) - before
	}
	if mails := signUpMails(); mails != 3 {
		t.Errorf("%d mails of sign-ups go to one address, want 3", mails)
	}
	for _, key := range []string{"calm-otter", "brave-heron"} {
		tenant := s.signUp(t, key).Tenant.ID
		for i := range 3 {
			if err := s.invite(t, tenant, email); err != nil {
				t.Errorf("invitation %d of %s, after sign-ups and invitations of others, ends with %v", i, key, err)
			}
		}
		if err := s.invite(t, tenant, "NEW@example.test"); !errors.Is(err, apierr.TooMany) {
			t.Errorf("the fourth invitation of %s ends with %v", key, err)
		}
		if err := s.invite(t, tenant, "other@example.test"); err != nil {
			t.Errorf("the invitation of another address ends with %v", err)
		}
	}
	if mails := signUpMails(); mails != 0 {
		t.Errorf("after the invitations, %d more mails of sign-ups go to the address", mails)
	}
	for i := range 4 {
		if err := s.invite(t, s.signUp(t, "tenant-"+string(rune('a'+i))).Tenant.ID, "invited@example.test"); err != nil {
			t.Error(err)
		}
	}
	before := len(s.mails(t))
	if err := s.request(t.Context(), newOwner("invited@example.test")); err != nil || len(s.mails(t)) != before+1 {
		t.Errorf("the sign-up of an invited address ends with %v and %d mails", err, len(s.mails(t))-before)
	}
}

func TestAnInvitedAdministratorHasTheEmailOfTheInvitation(t *testing.T) {
	t.Parallel()
	s := newSignUps(t)
	made := s.signUp(t, "calm-otter")
	tenant := made.Tenant.ID
	invite := func(email string) error { return s.invite(t, tenant, email) }
	if err := invite("Owner@example.test"); !errors.Is(err, apierr.Exists) {
		t.Errorf("an administrator is invited: %v", err)
	}
	if err := invite("none"); !errors.Is(err, apierr.Format) {
		t.Errorf("no address is invited: %v", err)
	}
	if _, err := s.Invite(t.Context(), id.Ref{Tenant: id.New(now()), ID: tenant},
		directory.NewInvitation{Email: field.Some("x@example.test")}); !errors.Is(err, apierr.NotFound) {
		t.Errorf("another tenant invites: %v", err)
	}
	for i := range 4 {
		if err := invite("new@example.test"); (i < 3) != (err == nil) || i == 3 && !errors.Is(err, apierr.TooMany) {
			t.Errorf("invitation %d of one address ends with %v", i, err)
		}
	}
	var token secure.Secret
	for _, token = range s.mails(t) {
		break
	}
	if pending, err := s.PendingSignUp(t.Context(), directoryapi.SignUpToken{Token: token}); err != nil ||
		!pending.Invitation ||
		pending.Tenant != tenant {
		t.Fatalf("the token leads to %+v, %v", pending, err)
	}
	accept := func(email, password string) (directoryapi.Account, error) {
		return s.AcceptInvitation(t.Context(), directoryapi.AcceptInvitation{Token: token, Account: directoryapi.NewAccount{
			Email: field.Some(email), GivenName: field.Some("Jo"), Surname: field.Some("Doe"), Password: field.Some(password),
		}})
	}
	if _, err := accept("other@example.test", "Changeme1"); !errors.Is(err, apierr.OtherInvitee) {
		t.Errorf("another email ends with %v", err)
	}
	if _, err := accept("new@example.test", "weak"); !errors.Is(err, apierr.TooShort) {
		t.Errorf("a weak password ends with %v", err)
	}
	var accepted atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			a, err := accept("NEW@example.test", "Changeme1")
			if err == nil {
				accepted.Add(1)
				if a.DirectoryID != made.Directory.ID || a.Status != directoryapi.Enabled ||
					a.EmailVerificationStatus != directoryapi.Verified || a.Owner {
					t.Errorf("the administrator is %+v", a)
				}
			} else if !errors.Is(err, apierr.NotFound) {
				t.Errorf("a parallel call ends with %v", err)
			}
		})
	}
	all.Wait()
	if accepted.Load() != 1 {
		t.Errorf("%d of 20 calls accepted the invitation", accepted.Load())
	}
	signUp := newOwner("second@example.test")
	if err := s.request(t.Context(), signUp); err != nil {
		t.Fatal(err)
	}
	if token = s.mails(t)[signUp.Account]; token == "" {
		t.Fatal("there is no mail")
	}
	if _, err := accept("second@example.test", "Changeme1"); !errors.Is(err, apierr.NotFound) {
		t.Errorf("the token of a sign-up accepts an invitation: %v", err)
	}
}
