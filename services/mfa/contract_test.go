package mfa_test

import (
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/doorward/doorward/pkg/api/mfaapi/apitest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/mfatest"
	"github.com/doorward/doorward/services/mfa/store"
)

func TestContract(t *testing.T) {
	apitest.Run(t, func(t *testing.T) apitest.Subject { return subject(mfatest.Open(t)) })
}

func subject(d *mfatest.Deployment) apitest.Subject {
	return apitest.Subject{
		API: d.Service,
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
			c, err := d.Service.CreateChallenge(t.Context(), id.Ref{Tenant: tenant, ID: page.Items[len(page.Items)-1].ID}, mfa.NewChallenge{})
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
	c, err := d.Service.AnswerChallenge(t.Context(), id.Ref{Tenant: tenant, ID: challenge}, mfa.Answer{Code: field.Some(code)})
	if err != nil || c.Status != store.Success {
		t.Fatalf("the challenge is %s, %v", c.Status, err)
	}
}
