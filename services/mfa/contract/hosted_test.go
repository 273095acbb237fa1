package contract_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// challenged wants a challenge of that status.
func (l login) challenged(t *testing.T, got mfaapi.Challenged, err error, status string) mfaapi.Challenged {
	t.Helper()
	if err != nil || got.Status != status || got.Account != l.account {
		t.Fatalf("the challenge is %+v, %v; want %s", got, err, status)
	}
	return got
}

func factors(t *testing.T, l login) {
	l.Phone(t, l.tenant, l.account, number)
	shown := l.Authenticator(t, l.tenant, l.account, "Shop")
	list, err := l.API.FactorsOf(t.Context(), id.Ref{Tenant: l.tenant, ID: l.account})
	if err != nil || len(list.Items) != 2 || list.Items[0].Type != mfaapi.SMS ||
		list.Items[1].Type != mfaapi.Authenticator ||
		!list.Items[0].Usable || !list.Items[1].Usable {
		t.Fatalf("the factors are %+v, %v", list, err)
	}
	phone := mfaapi.ChallengeFactor{Tenant: l.tenant, Account: l.account, Factor: list.Items[0].ID}
	got, err := l.API.ChallengeFactor(t.Context(), phone)
	made := l.challenged(t, got, err, "CREATED")
	code := l.Sent(t, l.tenant, l.account)
	answer := mfaapi.AnswerFactor{Tenant: l.tenant, Account: l.account, Challenge: made.ID, Code: wrong(code)}
	got, err = l.API.AnswerFactor(t.Context(), answer)
	l.challenged(t, got, err, "FAILED")
	answer.Code = code
	got, err = l.API.AnswerFactor(t.Context(), answer)
	l.challenged(t, got, err, "SUCCESS")
	if _, err := l.API.AnswerFactor(t.Context(), answer); !errors.Is(err, apierr.ChallengeFinished) {
		t.Errorf("the second time it is %v", err)
	}
	answer.Account = newID()
	if _, err := l.API.AnswerFactor(t.Context(), answer); !errors.Is(err, apierr.NotFound) {
		t.Errorf("another account is answered %v", err)
	}
	got, err = l.API.ChallengeFactor(t.Context(), mfaapi.ChallengeFactor{
		Tenant: l.tenant, Account: l.account, Factor: list.Items[1].ID, Code: shown(),
	})
	l.challenged(t, got, err, "SUCCESS")
	phone.Account = newID()
	if _, err := l.API.ChallengeFactor(t.Context(), phone); !errors.Is(err, apierr.NotFound) {
		t.Errorf("a factor of another account is challenged: %v", err)
	}
}

func enrolls(t *testing.T, l login) {
	in := mfaapi.EnrollFactor{Tenant: l.tenant, Application: l.application, Type: "SMS", Number: number, Challenge: true}
	in.State = "x"
	if _, err := l.API.EnrollFactor(t.Context(), in); !errors.Is(err, apierr.Reference) {
		t.Errorf("a foreign state ends with %v", err)
	}
	in.State = l.demand(t).State
	made, err := l.API.EnrollFactor(t.Context(), in)
	if err != nil || made.Factor.Usable || made.State == "" || made.Challenge.IsZero() {
		t.Fatalf("the factor is %+v, %v", made, err)
	}
	got, err := l.API.ChallengeFactor(t.Context(), mfaapi.ChallengeFactor{
		Tenant: l.tenant, Application: l.application, State: made.State, Code: l.Sent(t, l.tenant, l.account),
	})
	l.challenged(t, got, err, "SUCCESS")
	list, err := l.API.FactorsOf(t.Context(), id.Ref{Tenant: l.tenant, ID: l.account})
	if err != nil || len(list.Items) != 1 || !list.Items[0].Usable {
		t.Errorf("the factors are %+v, %v", list, err)
	}
	in.State = l.demand(t).State
	if _, err := l.API.EnrollFactor(t.Context(), in); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the password alone adds a second factor: %v", err)
	}
}

// planted is a factor that whoever knew the password enrolled before the account had another.
func planted(t *testing.T, l login) {
	in := mfaapi.EnrollFactor{
		Tenant: l.tenant, Application: l.application, State: l.demand(t).State, Type: "SMS", Number: number, Challenge: true,
	}
	made, err := l.API.EnrollFactor(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	page := mfaapi.ChallengeFactor{
		Tenant: l.tenant, Account: l.account, Factor: made.Factor.ID, Types: []string{mfaapi.SMS, mfaapi.Authenticator},
	}
	got, err := l.API.ChallengeFactor(t.Context(), page)
	challenge := l.challenged(t, got, err, "CREATED")
	code := l.Sent(t, l.tenant, l.account)
	l.Authenticator(t, l.tenant, l.account, "Shop")

	answer := mfaapi.AnswerFactor{Tenant: l.tenant, Account: l.account, Challenge: challenge.ID, Code: code,
		Types: page.Types}
	if _, err := l.API.AnswerFactor(t.Context(), answer); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the code of a page is answered %v", err)
	}
	if _, err := l.API.ChallengeFactor(t.Context(), page); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("a challenge for a page ends with %v", err)
	}
	byState := mfaapi.ChallengeFactor{Tenant: l.tenant, Application: l.application, State: made.State, Code: code}
	if _, err := l.API.ChallengeFactor(t.Context(), byState); !errors.Is(err, apierr.CodeExpired) {
		t.Errorf("the code of a state is answered %v", err)
	}
	if _, err := l.redeem(t, made.State, code); !errors.Is(err, apierr.CodeExpired) {
		t.Errorf("the grant is answered %v", err)
	}
	page.Types = []string{mfaapi.SMS}
	if got, err = l.API.ChallengeFactor(t.Context(), page); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("where the login does not allow the other factor the challenge is %+v, %v", got, err)
	}
	answer.Types = nil
	if _, err := l.API.AnswerFactor(t.Context(), answer); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the code of a user who is logged in is answered %v", err)
	}
	answer.SecondFactor = true
	got, err = l.API.AnswerFactor(t.Context(), answer)
	l.challenged(t, got, err, "SUCCESS")
}

// stepsUp is a login that does not allow the type of the account's only factor: its code completes
// nothing, but lets the user enroll a factor that the login allows.
func stepsUp(t *testing.T, l login) {
	shown := l.Authenticator(t, l.tenant, l.account, "Shop")
	out := l.demand(t, mfaapi.SMS)
	if out.Action != mfaapi.Challenge ||
		!reflect.DeepEqual(out.Factors, []mfaapi.Factor{{Type: mfaapi.Authenticator, Hint: "Shop"}}) {
		t.Fatalf("the demand is %+v", out)
	}
	in := mfaapi.EnrollFactor{
		Tenant: l.tenant, Application: l.application, State: out.State, Type: "SMS", Number: number, Challenge: true,
	}
	if _, err := l.API.EnrollFactor(t.Context(), in); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("before the step-up the enrollment returns %v, want Forbidden", err)
	}
	passed, err := l.redeem(t, out.State, shown())
	if err != nil || !passed.Account.IsZero() || passed.Next == nil || passed.Next.Action != mfaapi.Enroll ||
		!reflect.DeepEqual(passed.Next.AllowedFactorTypes, []string{mfaapi.SMS}) {
		t.Fatalf("the code of a step-up returns %+v, %v", passed, err)
	}
	in.State, in.Type = passed.Next.State, mfaapi.Authenticator
	if _, err := l.API.EnrollFactor(t.Context(), in); !errors.Is(err, apierr.Unsupported) {
		t.Errorf("after the step-up a type that the login does not allow returns %v, want Unsupported", err)
	}
	in.Type = mfaapi.SMS
	made, err := l.API.EnrollFactor(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	l.passes(t, made.State, l.Sent(t, l.tenant, l.account))

	page := mfaapi.ChallengeFactor{Tenant: l.tenant, Account: l.account, Factor: made.Factor.ID,
		Types: []string{mfaapi.Authenticator}}
	if _, err := l.API.ChallengeFactor(t.Context(), page); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("a page whose login allows a factor of the account challenges another one: %v", err)
	}
	l.tenant, l.account = l.subject.Account(t)
	l.Phone(t, l.tenant, l.account, number)
	list, err := l.API.FactorsOf(t.Context(), id.Ref{Tenant: l.tenant, ID: l.account})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	page.Tenant, page.Account, page.Factor = l.tenant, l.account, list.Items[0].ID
	got, err := l.API.ChallengeFactor(t.Context(), page)
	answer := mfaapi.AnswerFactor{
		Tenant: l.tenant, Account: l.account, Challenge: l.challenged(t, got, err, "CREATED").ID,
		Code:  l.Sent(t, l.tenant, l.account),
		Types: page.Types,
	}
	got, err = l.API.AnswerFactor(t.Context(), answer)
	if got = l.challenged(t, got, err, "SUCCESS"); !got.StepUp || got.Type != mfaapi.SMS {
		t.Errorf("the code of a step-up on a page is %+v", got)
	}
}

// addsFactor is a user who is logged in, whose account has a factor, and who adds another one.
func addsFactor(t *testing.T, l login) {
	in := mfaapi.EnrollFactor{Tenant: l.tenant, Application: l.application, Account: l.account, Type: "SMS",
		Number: number, Challenge: true}
	planted, err := l.API.EnrollFactor(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	code := l.Sent(t, l.tenant, l.account)
	shown := l.Authenticator(t, l.tenant, l.account, "Shop")
	answer := mfaapi.ChallengeFactor{Tenant: l.tenant, Application: l.application, State: planted.State, Code: code}
	if _, err := l.API.ChallengeFactor(t.Context(), answer); !errors.Is(err, apierr.CodeExpired) {
		t.Errorf("the password alone verifies a factor by a state: %v", err)
	}
	byToken := mfaapi.ChallengeFactor{Tenant: l.tenant, Application: l.application, Account: l.account,
		Factor: planted.Factor.ID}
	if _, err := l.API.ChallengeFactor(t.Context(), byToken); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the password alone challenges a factor that is not verified: %v", err)
	}
	other := mfaapi.EnrollFactor{Tenant: l.tenant, Application: l.application, Account: l.account,
		Type: mfaapi.Authenticator}
	if _, err := l.API.EnrollFactor(t.Context(), other); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the password alone adds a second factor: %v", err)
	}
	list, err := l.API.FactorsOf(t.Context(), id.Ref{Tenant: l.tenant, ID: l.account})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("the factors are %+v, %v", list, err)
	}
	byToken.Factor = list.Items[1].ID
	opened, err := l.API.ChallengeFactor(t.Context(), byToken)
	l.challenged(t, opened, err, "CREATED")
	other.State, other.Account = opened.State, id.ID{}
	if _, err := l.API.EnrollFactor(t.Context(), other); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("a challenge that is open adds a factor: %v", err)
	}
	passed, err := l.API.ChallengeFactor(t.Context(), mfaapi.ChallengeFactor{
		Tenant: l.tenant, Application: l.application, State: opened.State, Code: shown(),
	})
	l.challenged(t, passed, err, "SUCCESS")
	if _, err := l.redeem(t, passed.State, shown()); err == nil {
		t.Error("the state of a user who is logged in completes a login")
	}
	other.State = passed.State
	made, err := l.API.EnrollFactor(t.Context(), other)
	if err != nil || made.State == "" {
		t.Fatalf("after a challenge that was passed: %+v, %v", made, err)
	}
	answer = mfaapi.ChallengeFactor{Tenant: l.tenant, Application: l.application, State: made.State}
	opened, err = l.API.ChallengeFactor(t.Context(), answer)
	l.challenged(t, opened, err, "CREATED")
	other.State, other.Account, other.SecondFactor = "", l.account, true
	if _, err := l.API.EnrollFactor(t.Context(), other); err != nil {
		t.Errorf("after a login with a second factor: %v", err)
	}
}
