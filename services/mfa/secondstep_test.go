package mfa_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/mfatest"
	"github.com/doorward/doorward/services/mfa/store"
)

// withPhone adds a verified SMS factor to an account.
func withPhone(d *mfatest.Deployment, a directoryapi.Account, number string) (factor, phone string) {
	d.T.Helper()
	made := d.Post(mfatest.Of(a)+"/factors?challenge=true&expand=phone", `{"type":"sms","phone":{"number":"`+number+
		`"}}`).Want(201)
	challenge := made.Href("mostRecentChallenge")
	d.Post(challenge, `{"code":"`+d.Code(challenge)+`"}`).Want(200)
	return made.Href(), made.Href("phone")
}

func demand(d *mfatest.Deployment, application id.ID, types ...string) (mfaapi.SecondStep, error) {
	return d.Service.BeginSecondStep(d.T.Context(),
		mfaapi.BeginSecondStep{Tenant: d.Tenant, Application: application, Account: d.Jo.ID, Types: types})
}

func redeem(d *mfatest.Deployment, s *mfa.Service, application id.ID, state secure.Secret, code string) error {
	_, err := s.VerifySecondStep(d.T.Context(),
		mfaapi.VerifySecondStep{Tenant: d.Tenant, Application: application, State: state, Code: code})
	return err
}

// begun is a login that waits for the code of a phone.
func begun(t *testing.T) (d *mfatest.Deployment, application id.ID, out mfaapi.SecondStep) {
	t.Helper()
	d = mfatest.Open(t)
	withPhone(d, d.Jo, "+18883915282")
	application = id.New(d.Now())
	out, err := demand(d, application)
	if err != nil {
		t.Fatal(err)
	}
	return d, application, out
}

// last returns the code that was sent last.
func last(d *mfatest.Deployment) string {
	sent := d.Sent()
	return d.Code(mfatest.Base.To("challenges", sent[len(sent)-1].Challenge))
}

func TestALoginAsksForWhatIsEnabledAndVerified(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *mfatest.Deployment, factor, phone string)
		want   string
	}{
		"a verified factor": {func(*mfatest.Deployment, string, string) {}, mfaapi.Challenge},
		"a disabled factor": {func(d *mfatest.Deployment, factor,
			_ string) {
			d.Post(factor, `{"status":"DISABLED"}`).Want(200)
		}, mfaapi.Enroll}, "a disabled phone": {func(d *mfatest.Deployment, _,
			phone string) {
			d.Post(phone, `{"status":"DISABLED"}`).Want(200)
		}, mfaapi.Enroll}, "a phone that is verified no more": {func(d *mfatest.Deployment, _, phone string) {
			d.Post(phone, `{"verificationStatus":"UNVERIFIED"}`).Want(200)
		}, mfaapi.Enroll},
		"a number that was changed": {func(d *mfatest.Deployment, _, phone string) {
			d.Post(phone, `{"verificationStatus":"UNVERIFIED"}`).Want(200)
			d.Post(phone, `{"number":"+12675555555"}`).Want(200)
		}, mfaapi.Enroll},
		"a factor that is gone": {func(d *mfatest.Deployment, factor, _ string) { d.Delete(factor).Want(204) },
			mfaapi.Enroll},
		"another that is not verified": {func(d *mfatest.Deployment, _, _ string) {
			d.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"google-authenticator"}`).Want(201)
		}, mfaapi.Challenge},
	} {
		t.Run(name, func(t *testing.T) {
			d := mfatest.Open(t)
			factor, phone := withPhone(d, d.Jo, "+18883915282")
			c.change(d, factor, phone)
			out, err := demand(d, id.New(d.Now()))
			if err != nil || out.Action != c.want {
				t.Errorf("the demand is %+v, %v; want %s", out, err, c.want)
			}
		})
	}
}

func TestALimitOfMessagesAnswersALogin(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	withPhone(d, d.Jo, "+18883915282")
	application := id.New(d.Now())
	for range mfatest.Limits.NumberMessages {
		if _, err := demand(d, application); err != nil {
			t.Fatal(err)
		}
	}
	sent, challenges := len(d.Sent()), d.Rows("challenges")
	_, err := demand(d, application)
	if refusal := apierr.From(err); !errors.Is(err, apierr.TooMany) || refusal.Status != 429 || refusal.RetryAfter <= 0 {
		t.Errorf("the demand returns %v", err)
	}
	if len(d.Sent()) != sent || d.Rows("challenges") != challenges {
		t.Error("what is refused leaves something behind")
	}
	d.Move(time.Hour)
	if out, err := demand(d, application); err != nil || out.Action != mfaapi.Challenge {
		t.Errorf("an hour later the demand is %+v, %v", out, err)
	}
}

func TestAnotherLoginResetsNoAttempts(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	withPhone(d, d.Jo, "+18883915282")
	application := id.New(d.Now())
	for range 2 {
		out, err := demand(d, application)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := redeem(d, d.Service, application, out.State, mfatest.Wrong(last(d))); !errors.Is(err, apierr.CodeWrong) {
				t.Fatal(err)
			}
		}
	}
	_, err := demand(d, application)
	if !errors.Is(err, apierr.ChallengeFailures) || apierr.From(err).RetryAfter <= 0 {
		t.Errorf("after ten wrong codes the demand returns %v", err)
	}

	t.Run("a factor that is out of tries leaves the others", func(t *testing.T) {
		withPhone(d, d.Jo, "+18883910959")
		out, err := demand(d, application)
		if err != nil || out.Action != mfaapi.Challenge || out.Factors[0].Hint != "xxx-xxx-0959" {
			t.Fatalf("the demand is %+v, %v", out, err)
		}
		if err := redeem(d, d.Service, application, out.State, last(d)); err != nil {
			t.Error(err)
		}
	})
}

func TestAStateIsSignedForItsTenantAndPurpose(t *testing.T) {
	t.Parallel()
	d, application, out := begun(t)
	code := last(d)
	_, claims, err := secure.ParseJWT(out.State.Reveal(), func(map[string]any, secure.Claims) (secure.Secret, error) {
		return d.Ring.Derived("k1", "mfa.state/"+d.Tenant.String())
	})
	if err != nil || claims["sub"] != d.Jo.ID.String() || claims["app"] != application.String() {
		t.Fatalf("the state says %v, %v", claims, err)
	}
	for name, purpose := range map[string]string{
		"a token of another kind":   "oauth.token/" + d.Tenant.String(),
		"a state of another tenant": "mfa.state/" + id.New(d.Now()).String(),
	} {
		kid, key := d.Ring.Derive(purpose)
		forged, err := secure.SignJWT(map[string]any{"kid": kid}, claims, key)
		if err != nil {
			t.Fatal(err)
		}
		if err := redeem(d, d.Service, application, secure.Secret(forged), code); !errors.Is(err, apierr.Reference) {
			t.Errorf("%s returns %v", name, err)
		}
	}
	for name, text := range map[string]string{"the code": code, "the number": "8883915282"} {
		if strings.Contains(out.State.Reveal(), text) {
			t.Errorf("the state shows %s", name)
		}
	}

	t.Run("it outlives a new master key", func(t *testing.T) {
		next := d.Under(secure.NewMasterKey("k2") + "," + d.Master)
		if err := redeem(d, next, application, out.State, code); err != nil {
			t.Error(err)
		}
	})
}

// Whoever sets a new password may have been robbed of the old one, with which a login may
// be half done.
func TestANewPasswordEndsALogin(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	application := id.New(d.Now())
	setPassword := func() {
		d.Directory.Change(t, id.Ref{Tenant: d.Tenant, ID: d.Jo.ID},
			directoryapi.NewAccount{Password: field.Some("Changeme2!")})
		d.Move(time.Second)
	}
	setPassword()
	enrol, err := demand(d, application)
	if err != nil || enrol.Action != mfaapi.Enroll {
		t.Fatalf("the demand is %+v, %v", enrol, err)
	}
	setPassword()
	in := mfaapi.EnrollFactor{Tenant: d.Tenant, Application: application, State: enrol.State, Type: mfaapi.Authenticator}
	if _, err := d.Service.EnrollFactor(t.Context(), in); !errors.Is(err, apierr.CodeExpired) {
		t.Errorf("a state of before the password enrols a factor: %v", err)
	}
	withPhone(d, d.Jo, "+18883915282")
	out, err := demand(d, application)
	if err != nil {
		t.Fatal(err)
	}
	setPassword()
	if err := redeem(d, d.Service, application, out.State, last(d)); !errors.Is(err, apierr.CodeExpired) {
		t.Errorf("a state of before the password is redeemed: %v", err)
	}
	challenge := mfaapi.ChallengeFactor{Tenant: d.Tenant, Application: application, State: out.State}
	if _, err := d.Service.ChallengeFactor(t.Context(), challenge); !errors.Is(err, apierr.CodeExpired) {
		t.Errorf("a state of before the password gets another challenge: %v", err)
	}

	t.Run("a factor that was begun with an access token too", func(t *testing.T) {
		jo := d.Jo
		d.Jo = d.Account(d.Tenant, "al")
		// As a copy has that account linking has made of an account of a provider.
		if err := pg.MustChange(t.Context(), d.Directory.DB, `UPDATE accounts
			SET password_hash = '', password_modified_at = NULL
			WHERE tenant_id = $1 AND id = $2`, d.Tenant, d.Jo.ID); err != nil {
			t.Fatal(err)
		}
		for _, had := range []string{"no password", "a password"} {
			made, err := d.Service.EnrollFactor(t.Context(), mfaapi.EnrollFactor{
				Tenant: d.Tenant, Application: application, Account: d.Jo.ID, Type: mfaapi.Authenticator, Challenge: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			setPassword()
			in := mfaapi.ChallengeFactor{Tenant: d.Tenant, Application: application, State: made.State, Code: "123456"}
			if _, err := d.Service.ChallengeFactor(t.Context(), in); !errors.Is(err, apierr.CodeExpired) {
				t.Errorf("after a new password for an account with %s the state returns %v, want CodeExpired", had, err)
			}
		}
		d.Jo = jo
	})
}

func TestALoginExpiresHoweverManyStatesFollow(t *testing.T) {
	t.Parallel()
	d, application, out := begun(t)
	challenge := mfaapi.ChallengeFactor{Tenant: d.Tenant, Application: application, State: out.State}
	for minutes := 4; minutes < 30; minutes += 4 {
		d.Move(4 * time.Minute)
		next, err := d.Service.ChallengeFactor(t.Context(), challenge)
		if err != nil {
			t.Fatalf("after %d minutes: %v", minutes, err)
		}
		challenge.State = next.State
	}
	d.Move(2*time.Minute + time.Second)
	if _, err := d.Service.ChallengeFactor(t.Context(), challenge); !errors.Is(err, apierr.CodeExpired) {
		t.Errorf("half an hour after the first step: %v", err)
	}
}

func TestTheCodeOfADeletedFactorIsRefused(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor, _ := withPhone(d, d.Jo, "+18883915282")
	application := id.New(d.Now())
	out, err := demand(d, application)
	if err != nil {
		t.Fatal(err)
	}
	d.Post(factor, `{"status":"DISABLED"}`).Want(200)
	if err := redeem(d, d.Service, application, out.State, last(d)); !errors.Is(err, apierr.FactorDisabled) {
		t.Errorf("the code of a disabled factor returns %v", err)
	}
	code := last(d)
	d.Delete(factor).Want(204)
	if err := redeem(d, d.Service, application, out.State, code); !errors.Is(err, apierr.Reference) {
		t.Errorf("the code of a factor that is gone returns %v", err)
	}
}

func TestSMSReportedSetsTheStateOfAChallenge(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := d.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"sms","phone":{"number":"8883915282"}}`).Want(201).Href()
	tell := func(challenge id.ID, news events.SMSStatus) {
		t.Helper()
		event := events.TextReported{Tenant: d.Tenant, Account: d.Jo.ID, Challenge: challenge, Status: news}
		if err := d.Service.SMSReported(t.Context(), events.Envelope{ID: id.New(d.Now()), Tenant: d.Tenant},
			event); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		news []events.SMSStatus
		want string
	}{
		{[]events.SMSStatus{events.SMSAccepted}, store.WaitingForProvider},
		{[]events.SMSStatus{events.SMSAccepted, events.SMSDelivered, events.SMSDelivered, events.SMSFailed},
			store.WaitingForValidation},
		{[]events.SMSStatus{events.SMSAccepted, events.SMSFailed, events.SMSDelivered}, store.Undelivered},
		{[]events.SMSStatus{events.SMSUnsendable, events.SMSAccepted}, store.Error},
		{[]events.SMSStatus{"NEWER THAN THIS RELEASE"}, store.Created},
	} {
		challenge := d.Post(factor+"/challenges", "").Want(201).Href()
		for _, news := range c.news {
			tell(d.Ref(challenge).ID, news)
		}
		if got := d.Get(challenge).Text("status"); got != c.want {
			t.Errorf("after %v the challenge is %s, want %s", c.news, got, c.want)
		}
	}
	tell(id.New(d.Now()), events.SMSAccepted) // of a challenge that is gone
}
