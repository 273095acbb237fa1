package mfa_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/mfatest"
	"github.com/doorward/doorward/services/mfa/store"
)

// ruled is an account with usable factors of some types, and how its owner makes their codes.
type ruled struct {
	*mfatest.Deployment
	t           *testing.T
	application id.ID
	secret      string // of the authenticator
	factors     map[string]id.ID
}

func openRuled(t *testing.T, has []string) *ruled {
	t.Helper()
	r := &ruled{Deployment: mfatest.Open(t), t: t, factors: map[string]id.ID{}}
	r.application = id.New(r.Now())
	if slices.Contains(has, mfaapi.SMS) {
		factor, _ := withPhone(r.Deployment, r.Jo, "+18883910959")
		r.factors[mfaapi.SMS] = r.Ref(factor).ID
	}
	if slices.Contains(has, mfaapi.Authenticator) {
		made := r.Post(mfatest.Of(r.Jo)+"/factors", `{"type":"google-authenticator","issuer":"Shop"}`).Want(201)
		r.secret, r.factors[mfaapi.Authenticator] = made.Text("secret"), r.Ref(made.Href()).ID
		r.Post(made.Href()+"/challenges", `{"code":"`+r.code(mfaapi.Authenticator)+`"}`).Want(201)
	}
	return r
}

// code returns the next code of the account's factor of a type.
func (r *ruled) code(kind string) string {
	r.t.Helper()
	if kind == mfaapi.SMS {
		return last(r.Deployment)
	}
	r.Move(time.Minute)
	code, err := totp.GenerateCode(r.secret, r.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return code
}

// expect checks the error of a call.
func (r *ruled) expect(what string, err, want error) {
	r.t.Helper()
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		r.t.Errorf("%s returns %v, want %v", what, err, want)
	}
}

// enroll enrolls a stranger's phone, or an authenticator.
func (r *ruled) enroll(in mfaapi.EnrollFactor, kind string) (mfaapi.EnrolledFactor, error) {
	in.Tenant, in.Application, in.Type, in.Challenge = r.Tenant, r.application, kind, true
	if kind == mfaapi.SMS {
		in.Number = "+12675550177"
	}
	return r.Service.EnrollFactor(r.t.Context(), in)
}

// The password alone adds no factor to an account that has one, of whatever type, at whatever door.
func TestThePasswordAloneAddsNoFactor(t *testing.T) {
	t.Parallel()
	sets := [][]string{nil, {mfaapi.SMS}, {mfaapi.Authenticator}, {mfaapi.SMS, mfaapi.Authenticator}}
	for _, has := range sets {
		for _, allows := range sets[1:] {
			usable := slices.DeleteFunc(slices.Clone(has), func(kind string) bool { return !slices.Contains(allows, kind) })
			for door, test := range map[string]func(r *ruled, allows, usable []string){
				"hosted page": (*ruled).hostedPage, "Client API": (*ruled).clientAPI, "access token": (*ruled).accessToken,
			} {
				t.Run(fmt.Sprintf("owner has %v, login allows %v, %s", has, allows, door), func(t *testing.T) {
					t.Parallel()
					test(openRuled(t, has), allows, usable)
				})
			}
		}
	}
}

// hostedPage is a login by a hosted page with require_mfa.
func (r *ruled) hostedPage(allows, usable []string) {
	login := mfaapi.EnrollFactor{Account: r.Jo.ID, Types: allows}
	if len(r.factors) == 0 {
		for _, kind := range mfaapi.Types {
			_, err := r.enroll(login, kind)
			r.expect("the first factor, "+kind, err, refusalOf(kind, allows))
		}
		return
	}
	for _, kind := range mfaapi.Types {
		_, err := r.enroll(login, kind)
		r.expect("with the password alone a factor, "+kind, err, apierr.Forbidden)
	}
	for kind, factor := range r.factors {
		challenge := mfaapi.ChallengeFactor{Tenant: r.Tenant, Account: r.Jo.ID, Factor: factor, Types: allows}
		made, err := r.Service.ChallengeFactor(r.t.Context(), challenge)
		if len(usable) > 0 && !slices.Contains(usable, kind) {
			r.expect("a challenge of a factor that is not allowed, beside one that is,", err, apierr.Forbidden)
			continue
		}
		r.expect("a challenge of the factor "+kind, err, nil)
		got, err := r.Service.AnswerFactor(r.t.Context(), mfaapi.AnswerFactor{
			Tenant: r.Tenant, Account: r.Jo.ID, Challenge: made.ID, Code: r.code(kind), Types: allows,
		})
		if err != nil || got.Status != store.Success || got.StepUp != (len(usable) == 0) {
			r.t.Errorf("the code of the factor %s is %+v, %v; want a step-up where no factor is allowed", kind, got, err)
		}
	}
	login.SecondFactor = true
	for _, kind := range mfaapi.Types {
		made, err := r.enroll(login, kind)
		r.expect("after a factor was passed another one, "+kind, err, refusalOf(kind, allows))
		if made.State != "" {
			r.t.Error("a hosted page gets a state")
		}
	}
}

// refusalOf is the error for an enrollment of a type after all else allows it.
func refusalOf(kind string, allows []string) error {
	if slices.Contains(allows, kind) {
		return nil
	}
	return apierr.Unsupported
}

// clientAPI is a login by the password grant of an application that requires a factor.
func (r *ruled) clientAPI(allows, usable []string) {
	out, err := demand(r.Deployment, r.application, allows...)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(r.factors) == 0 {
		if out.Action != mfaapi.Enroll {
			r.t.Fatalf("without a factor the demand is %+v", out)
		}
		r.enrollAndLogIn(out, allows)
		return
	}
	offered := usable
	if len(usable) == 0 {
		offered = slices.Collect(maps.Keys(r.factors))
	}
	if (out.Action == mfaapi.Challenge) != (len(offered) == 1) || len(out.Factors) != len(offered) {
		r.t.Fatalf("the demand is %+v, want the factors %v", out, offered)
	}
	for _, f := range out.Factors {
		state := out.State
		if out.Action == mfaapi.Select {
			state = f.State
		}
		_, err := r.enroll(mfaapi.EnrollFactor{State: state}, allows[0])
		r.expect("with the state of a challenge a factor", err, apierr.Forbidden)
		if out.Action == mfaapi.Select && f.Type == mfaapi.SMS {
			made, err := r.Service.ChallengeFactor(r.t.Context(),
				mfaapi.ChallengeFactor{Tenant: r.Tenant, Application: r.application, State: state})
			r.expect("a challenge of the selected phone", err, nil)
			state = made.State
		}
		done, err := r.Service.VerifySecondStep(r.t.Context(), mfaapi.VerifySecondStep{
			Tenant: r.Tenant, Application: r.application, State: state, Code: r.code(f.Type),
		})
		if err != nil || done.Account.IsZero() != (len(usable) == 0) || (done.Next == nil) != (len(usable) > 0) {
			r.t.Fatalf("the code of the factor %s returns %+v, %v; want a completed login where it is allowed", f.Type, done,
				err)
		}
		if done.Next != nil {
			r.enrollAndLogIn(*done.Next, allows)
		}
	}
}

// enrollAndLogIn enrolls a factor in a login that demands one, and completes the login with it.
func (r *ruled) enrollAndLogIn(demanded mfaapi.SecondStep, allows []string) {
	r.t.Helper()
	if demanded.Action != mfaapi.Enroll || !slices.Equal(demanded.AllowedFactorTypes, allows) {
		r.t.Fatalf("the demand is %+v, want the enrollment of %v", demanded, allows)
	}
	for _, kind := range mfaapi.Types {
		made, err := r.enroll(mfaapi.EnrollFactor{State: demanded.State}, kind)
		r.expect("the demanded enrollment of "+kind, err, refusalOf(kind, allows))
		if err != nil || kind != allows[0] {
			continue
		}
		if kind == mfaapi.Authenticator {
			r.secret = made.Secret.Reveal()
		}
		done, err := r.Service.VerifySecondStep(r.t.Context(), mfaapi.VerifySecondStep{
			Tenant: r.Tenant, Application: r.application, State: made.State, Code: r.code(kind),
		})
		if err != nil || done.Account != r.Jo.ID {
			r.t.Errorf("the code of the enrolled factor returns %+v, %v; want a login", done, err)
		}
		return
	}
}

// accessToken is a user who is logged in; what an application allows is no matter then.
func (r *ruled) accessToken(_, _ []string) {
	login := mfaapi.EnrollFactor{Account: r.Jo.ID}
	for _, kind := range mfaapi.Types {
		_, err := r.enroll(login, kind)
		if len(r.factors) == 0 {
			r.expect("without a factor the enrollment of "+kind, err, nil)
			continue
		}
		r.expect("with the password alone a factor, "+kind, err, apierr.Forbidden)
	}
	for kind, factor := range r.factors {
		opened, err := r.Service.ChallengeFactor(r.t.Context(), mfaapi.ChallengeFactor{
			Tenant: r.Tenant, Application: r.application, Account: r.Jo.ID, Factor: factor,
		})
		r.expect("a challenge of the factor "+kind, err, nil)
		_, err = r.enroll(mfaapi.EnrollFactor{State: opened.State}, kind)
		r.expect("with an open challenge a factor, "+kind, err, apierr.Forbidden)
		passed, err := r.Service.ChallengeFactor(r.t.Context(), mfaapi.ChallengeFactor{
			Tenant: r.Tenant, Application: r.application, State: opened.State, Code: r.code(kind),
		})
		if err != nil || passed.Status != store.Success {
			r.t.Fatalf("the code is %+v, %v", passed, err)
		}
		other := mfaapi.Types[1-slices.Index(mfaapi.Types, kind)]
		_, err = r.enroll(mfaapi.EnrollFactor{State: passed.State}, other)
		r.expect("after the factor "+strings.ToUpper(kind)+" another one, "+other, err, nil)
		return
	}
}
