package mfa_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/internal/mfatest"
)

// enroll adds a factor for a user who is logged in.
func enroll(d *mfatest.Deployment, a directoryapi.Account, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	in.Tenant, in.Application, in.Account = d.Tenant, id.New(d.Now()), a.ID
	return d.Service.EnrollFactor(d.T.Context(), in)
}

func sms(number string) mfaapi.EnrollFactor {
	return mfaapi.EnrollFactor{Type: mfaapi.SMS, Number: number, Challenge: true}
}

// One user with many numbers must not use up the messages of the tenant, in
// whichever way they are sent.
func TestTheMessagesOfOneAccountAreLimited(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	al := d.Account(d.Tenant, "al")
	var first mfaapi.EnrolledFactor
	for i := range mfatest.Limits.AccountMessages {
		made, err := enroll(d, al, sms(fmt.Sprintf("+12675555%03d", i)))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = made
		}
	}
	sent, factors, phones := len(d.Sent()), d.Rows("factors"), d.Rows("phones")
	refuse := func(err error) {
		t.Helper()
		if refusal := apierr.From(err); !errors.Is(err, apierr.TooMany) || refusal.RetryAfter <= 0 {
			t.Errorf("beyond the limit the answer is %v", err)
		}
	}
	for i := range 20 {
		_, err := enroll(d, al, sms(fmt.Sprintf("+44740012%04d", i)))
		refuse(err)
		_, err = d.Service.ChallengeFactor(t.Context(), mfaapi.ChallengeFactor{Tenant: d.Tenant, Account: al.ID, Factor: first.Factor.ID})
		refuse(err)
		d.Post(mfatest.Of(al)+"/factors?challenge=true", fmt.Sprintf(`{"type":"SMS","phone":{"number":"+44740013%04d"}}`, i)).WantError(429, 429)
	}
	if len(d.Sent()) != sent || d.Rows("factors") != factors || d.Rows("phones") != phones {
		t.Error("what is refused leaves something behind")
	}
	t.Run("others have what is left of the limits that all share", func(t *testing.T) {
		for i := range mfatest.Limits.CountryMessages - mfatest.Limits.AccountMessages {
			if _, err := enroll(d, d.Account(d.Tenant, fmt.Sprintf("us%d", i)), sms(fmt.Sprintf("+12675556%03d", i))); err != nil {
				t.Error(err)
			}
		}
		for i := range mfatest.Limits.TenantMessages - mfatest.Limits.CountryMessages {
			if _, err := enroll(d, d.Account(d.Tenant, fmt.Sprintf("uk%d", i)), sms(fmt.Sprintf("+44740014%04d", i))); err != nil {
				t.Error(err)
			}
		}
		_, err := enroll(d, d.Account(d.Tenant, "last"), sms("+447400149999"))
		refuse(err)
	})
	t.Run("after an hour it goes on", func(t *testing.T) {
		d.Move(time.Hour)
		if _, err := enroll(d, al, sms("+447400129999")); err != nil {
			t.Error(err)
		}
	})
}

func TestAUserEnrollsNoFurtherFactorsThanTheMaximum(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	authenticator := mfaapi.EnrollFactor{Type: mfaapi.Authenticator}
	enrolled := 0
	var err error
	for ; err == nil && enrolled <= 100; enrolled++ {
		_, err = enroll(d, d.Jo, authenticator)
	}
	if enrolled--; enrolled != 50 || !errors.Is(err, apierr.Forbidden) {
		t.Fatalf("after %d factors the answer is %v", enrolled, err)
	}
	if _, err := enroll(d, d.Jo, mfaapi.EnrollFactor{Type: mfaapi.SMS, Number: "+12675555555"}); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("another type is answered %v", err)
	}
	d.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"google-authenticator"}`).Want(201) // by the tenant itself
	t.Run("phones without factors count", func(t *testing.T) {
		al := d.Account(d.Tenant, "al")
		for i := range 50 {
			d.Post(mfatest.Of(al)+"/phones", fmt.Sprintf(`{"number":"+12675555%03d"}`, i)).Want(201)
		}
		if _, err := enroll(d, al, mfaapi.EnrollFactor{Type: mfaapi.SMS, Number: "+12675556000"}); !errors.Is(err, apierr.Forbidden) {
			t.Errorf("another phone is answered %v", err)
		}
		if _, err := enroll(d, al, authenticator); err != nil {
			t.Error(err)
		}
	})
}
