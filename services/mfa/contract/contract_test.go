// Package contract_test tests what the contract of the mfa service (pkg/api/mfaapi) promises.
package contract_test

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/mfatest"
	"github.com/doorward/doorward/services/mfa/store"
)

// subject is the service, with what the contract has no method
// for. A login is that of an account.
type subject struct {
	API mfaapi.Contract

	// Account makes an account in a tenant of its own.
	Account func(*testing.T) (tenant, account id.ID)
	// Phone adds a verified SMS factor for a number to an account.
	Phone func(t *testing.T, tenant, account id.ID, number string)
	// Authenticator adds a verified authenticator to an account. It returns a function
	// that returns another code on each call.
	Authenticator func(t *testing.T, tenant, account id.ID, issuer string) (shown func() string)
	// Sent returns the code that was sent to an account last, or "".
	Sent func(t *testing.T, tenant, account id.ID) string
	// Challenge makes a challenge of the account's newest factor, outside a login.
	Challenge func(t *testing.T, tenant, account id.ID) href.Link
	// Advance moves the clock.
	Advance func(time.Duration)
}

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestContract(t *testing.T) {
	promises(t, func(t *testing.T) subject { return subjectOf(mfatest.Open(t)) })
}

func subjectOf(d *mfatest.Deployment) subject {
	return subject{
		API: mfaapi.Contract(d.Service),
		Account: func(*testing.T) (tenant, account id.ID) {
			a := d.Account(d.NewTenant(), "jo")
			return a.TenantID, a.ID
		},
		Phone: func(t *testing.T, tenant, account id.ID, number string) {
			factor := enrolFactor(t, d, id.Ref{Tenant: tenant, ID: account}, mfa.NewFactor{
				Type: field.Some("SMS"), Phone: field.Nullable[mfa.FactorPhone]{Present: true,
					Value: mfa.FactorPhone{PhoneBody: mfa.PhoneBody{Number: field.Some(number)}}}, WithChallenge: true,
			})
			answer(t, d, tenant, factor.ChallengeID, d.Code(mfatest.Base.To("challenges", factor.ChallengeID)))
		},
		Authenticator: func(t *testing.T, tenant, account id.ID, issuer string) func() string {
			factor := enrolFactor(t, d, id.Ref{Tenant: tenant, ID: account},
				mfa.NewFactor{Type: field.Some("google-authenticator"), FactorChange: mfa.FactorChange{Issuer: field.Some(issuer)},
					WithChallenge: true})
			shown := func() string {
				d.Move(30 * time.Second)
				code, err := totp.GenerateCode(factor.Secret.Reveal(), d.Now())
				if err != nil {
					t.Fatal(err)
				}
				return code
			}
			answer(t, d, tenant, factor.ChallengeID, shown())
			return shown
		},
		Sent: func(t *testing.T, tenant, account id.ID) (code string) {
			for _, event := range d.Sent() {
				if event.Tenant == tenant && event.Account == account {
					code = d.Code(mfatest.Base.To("challenges", event.Challenge))
				}
			}
			return code
		},
		Challenge: func(t *testing.T, tenant, account id.ID) href.Link {
			page, err := d.Service.AccountFactors(t.Context(), id.Ref{Tenant: tenant, ID: account}, list.Query{Limit: 100})
			if err != nil || len(page.Items) == 0 {
				t.Fatal(len(page.Items), err)
			}
			c, err := d.Service.CreateChallenge(t.Context(), id.Ref{Tenant: tenant, ID: page.Items[len(page.Items)-1].ID},
				mfa.NewChallenge{})
			if err != nil {
				t.Fatal(err)
			}
			return mfatest.Base.Link("challenges", c.ID)
		},
		Advance: d.Move,
	}
}

func enrolFactor(t *testing.T, d *mfatest.Deployment, account id.Ref, in mfa.NewFactor) store.Factor {
	t.Helper()
	d.Move(time.Millisecond) // factors are listed in the order of their making
	factor, err := d.Service.CreateFactor(t.Context(), account, in)
	if err != nil {
		t.Fatal(err)
	}
	return factor
}

func answer(t *testing.T, d *mfatest.Deployment, tenant, challenge id.ID, code string) {
	t.Helper()
	c, err := d.Service.AnswerChallenge(t.Context(), id.Ref{Tenant: tenant, ID: challenge},
		mfa.Answer{Code: field.Some(code)})
	if err != nil || c.Status != store.Success {
		t.Fatalf("the challenge is %s, %v", c.Status, err)
	}
}

func promises(t *testing.T, open func(*testing.T) subject) {
	for name, test := range map[string]func(*testing.T, login){
		"a user without a factor is to enrol one":           enroll,
		"a user with a phone gets the code":                 phone,
		"a user with an authenticator is asked for a code":  authenticator,
		"a user with several factors selects":               several,
		"a state is for one login":                          states,
		"a code is redeemed once":                           once,
		"wrong codes end":                                   failures,
		"a challenge can be redeemed by its href":           challenges,
		"a page lists and challenges factors":               factors,
		"a page enrolls the first factor":                   enrolls,
		"a factor that was left unverified passes no login": planted,
		"a user who is logged in passes a factor first":     addsFactor,
		"a factor of another type is a step-up":             stepsUp,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			tenant, account := s.Account(t)
			test(t, login{subject: s, tenant: tenant, account: account, application: newID(), organization: newID()})
		})
	}
}

const (
	number = "+18883910959"
	hinted = "xxx-xxx-0959"
)

// login is one whose first step has succeeded.
type login struct {
	subject
	tenant, account, application, organization id.ID
}

func (l login) demand(t *testing.T, types ...string) mfaapi.SecondStep {
	t.Helper()
	out, err := l.API.BeginSecondStep(t.Context(), mfaapi.BeginSecondStep{
		Tenant: l.tenant, Application: l.application, Account: l.account, Organization: l.organization, Types: types,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (l login) redeem(t *testing.T, state secure.Secret, code string) (mfaapi.CompletedLogin, error) {
	return l.API.VerifySecondStep(t.Context(),
		mfaapi.VerifySecondStep{Tenant: l.tenant, Application: l.application, State: state, Code: code})
}

// passes wants a code to complete the login.
func (l login) passes(t *testing.T, state secure.Secret, code string) {
	t.Helper()
	got, err := l.redeem(t, state, code)
	if want := (mfaapi.CompletedLogin{Account: l.account, Organization: l.organization}); err != nil || got != want {
		t.Errorf("the login is %+v, %v; want %+v", got, err, want)
	}
}

func (l login) refused(t *testing.T, state secure.Secret, code string, want error) {
	t.Helper()
	if got, err := l.redeem(t, state, code); !errors.Is(err, want) || got != (mfaapi.CompletedLogin{}) {
		t.Errorf("the login is %+v, %v; want %v", got, err, want)
	}
}

func enroll(t *testing.T, l login) {
	out := l.demand(t)
	if out.Action != mfaapi.Enroll || out.State == "" || len(out.Factors) != 0 ||
		!reflect.DeepEqual(out.AllowedFactorTypes, []string{mfaapi.SMS, mfaapi.Authenticator}) {
		t.Errorf("the demand is %+v", out)
	}
	l.refused(t, out.State, "123456", apierr.Reference)
	if out := l.demand(t, mfaapi.Authenticator); !reflect.DeepEqual(out.AllowedFactorTypes,
		[]string{mfaapi.Authenticator}) {
		t.Errorf("the demand is %+v", out)
	}
	l.Phone(t, l.tenant, l.account, number)
	if out := l.demand(t, mfaapi.Authenticator); out.Action != mfaapi.Challenge || len(out.Factors) != 1 ||
		out.Factors[0].Type != mfaapi.SMS {
		t.Errorf("a phone where none is allowed is no step-up: %+v", out)
	}
	for _, in := range []mfaapi.BeginSecondStep{
		{Tenant: l.tenant, Application: l.application, Account: newID()},
		{Tenant: newID(), Application: l.application, Account: l.account},
	} {
		if out, err := l.API.BeginSecondStep(t.Context(), in); !errors.Is(err, apierr.NotFound) {
			t.Errorf("a stranger's demand returns %+v, %v", out, err)
		}
	}
	if out, err := l.API.BeginSecondStep(t.Context(),
		mfaapi.BeginSecondStep{Tenant: l.tenant, Application: l.application, Account: l.account,
			Types: []string{"pigeon"}}); !errors.Is(err, apierr.Invalid) {
		t.Errorf("a type that does not exist returns %+v, %v", out, err)
	}
}

func phone(t *testing.T, l login) {
	l.Phone(t, l.tenant, l.account, number)
	out := l.demand(t, mfaapi.SMS)
	if out.Action != mfaapi.Challenge || out.State == "" || len(out.AllowedFactorTypes) != 0 ||
		!reflect.DeepEqual(out.Factors, []mfaapi.Factor{{Type: mfaapi.SMS, Hint: hinted}}) {
		t.Errorf("the demand is %+v", out)
	}
	code := l.Sent(t, l.tenant, l.account)
	l.refused(t, out.State, wrong(code), apierr.CodeWrong)
	l.refused(t, out.State, "no code", apierr.CodeWrong)
	l.passes(t, out.State, code)
	l.refused(t, out.State, code, apierr.ChallengeFinished)
	l.organization = id.ID{}
	l.passes(t, l.demand(t).State, l.Sent(t, l.tenant, l.account))
}

func authenticator(t *testing.T, l login) {
	shown := l.Authenticator(t, l.tenant, l.account, "Shop")
	out := l.demand(t)
	if out.Action != mfaapi.Challenge ||
		!reflect.DeepEqual(out.Factors, []mfaapi.Factor{{Type: mfaapi.Authenticator, Hint: "Shop"}}) {
		t.Errorf("the demand is %+v", out)
	}
	code := shown()
	l.refused(t, out.State, wrong(code), apierr.CodeWrong)
	l.passes(t, out.State, code)
	l.refused(t, out.State, code, apierr.ChallengeFinished)
	l.refused(t, l.demand(t).State, code, apierr.CodeWrong)
}

func several(t *testing.T, l login) {
	l.Phone(t, l.tenant, l.account, number)
	shown := l.Authenticator(t, l.tenant, l.account, "Shop")
	sent := l.Sent(t, l.tenant, l.account)
	out := l.demand(t)
	if out.Action != mfaapi.Select || out.State != "" || len(out.Factors) != 2 ||
		out.Factors[0].Type != mfaapi.SMS || out.Factors[0].Hint != hinted || out.Factors[1].Type != mfaapi.Authenticator ||
		out.Factors[1].Hint != "Shop" {
		t.Fatalf("the demand is %+v", out)
	}
	if l.Sent(t, l.tenant, l.account) != sent {
		t.Error("a code was sent before the user selected")
	}
	l.refused(t, out.Factors[0].State, "123456", apierr.Reference)
	l.passes(t, out.Factors[1].State, shown())
	if out := l.demand(t, mfaapi.SMS); out.Action != mfaapi.Challenge {
		t.Errorf("with one type there is a choice: %+v", out)
	}
}

func states(t *testing.T, l login) {
	l.Phone(t, l.tenant, l.account, number)
	state := l.demand(t).State
	code := l.Sent(t, l.tenant, l.account)
	other := l
	other.application = newID()
	other.refused(t, state, code, apierr.Reference)
	other = l
	other.tenant, other.account = l.Account(t)
	other.refused(t, state, code, apierr.Reference)
	parts := strings.Split(state.Reveal(), ".")
	for _, forged := range []string{
		"x", "..", parts[0] + "." + parts[1] + ".", parts[0] + "." + parts[1] + "A." + parts[2],
		"eyJhbGciOiJub25lIn0." + parts[1] + ".", parts[1] + "." + parts[1] + "." + parts[2],
	} {
		l.refused(t, secure.Secret(forged), code, apierr.Reference)
	}
	l.Advance(5*time.Minute + time.Second)
	l.refused(t, state, code, apierr.CodeExpired)
}

func once(t *testing.T, l login) {
	l.Phone(t, l.tenant, l.account, number)
	state := l.demand(t).State
	code := l.Sent(t, l.tenant, l.account)
	var passed, finished atomic.Int64
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			switch _, err := l.redeem(t, state, code); {
			case err == nil:
				passed.Add(1)
			case errors.Is(err, apierr.ChallengeFinished):
				finished.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if passed.Load() != 1 || finished.Load() != 49 {
		t.Errorf("of 50 tries %d passed, %d came late", passed.Load(), finished.Load())
	}
}

func failures(t *testing.T, l login) {
	l.Phone(t, l.tenant, l.account, number)
	state := l.demand(t).State
	code := l.Sent(t, l.tenant, l.account)
	for range 5 {
		l.refused(t, state, wrong(code), apierr.CodeWrong)
	}
	l.refused(t, state, code, apierr.ChallengeFailures)
}

func challenges(t *testing.T, l login) {
	l.Phone(t, l.tenant, l.account, number)
	challenge := l.Challenge(t, l.tenant, l.account)
	code := l.Sent(t, l.tenant, l.account)
	try := func(tenant id.ID, challenge href.Link) (mfaapi.CompletedLogin, error) {
		in := mfaapi.VerifySecondStep{Tenant: tenant, Application: l.application, Challenge: challenge, Code: code}
		return l.API.VerifySecondStep(t.Context(), in)
	}
	stranger, _ := l.Account(t)
	for _, c := range []struct {
		what   string
		tenant id.ID
		href   string
	}{
		{"another tenant's", stranger, challenge.Href},
		{"no challenge", l.tenant, strings.Replace(challenge.Href, "/challenges/", "/factors/", 1)},
		{"an unknown one", l.tenant, challenge.Href[:len(challenge.Href)-22] + newID().String()},
		{"nothing", l.tenant, ""},
		{"a text", l.tenant, "x"},
	} {
		if got, err := try(c.tenant, href.Link{Href: c.href}); !errors.Is(err, apierr.Reference) {
			t.Errorf("%s: %+v, %v", c.what, got, err)
		}
	}
	if got, err := try(l.tenant, challenge); err != nil || got != (mfaapi.CompletedLogin{Account: l.account}) {
		t.Errorf("the login is %+v, %v", got, err)
	}
	if got, err := try(l.tenant, challenge); !errors.Is(err, apierr.ChallengeFinished) {
		t.Errorf("the second time it is %+v, %v", got, err)
	}
	shown := l.Authenticator(t, l.tenant, l.account, "Shop")
	challenge = l.Challenge(t, l.tenant, l.account)
	code = shown()
	if got, err := try(l.tenant, challenge); err != nil || got != (mfaapi.CompletedLogin{Account: l.account}) {
		t.Errorf("the login by an authenticator's challenge is %+v, %v", got, err)
	}
}

// wrong returns a code that is not the one.
func wrong(code string) string {
	if code[0] == '0' {
		return "1" + code[1:]
	}
	return "0" + code[1:]
}

func newID() id.ID { return id.New(time.Now()) }
