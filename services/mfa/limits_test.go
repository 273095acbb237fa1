package mfa_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/mfatest"
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
	var newest mfaapi.EnrolledFactor
	for i := range mfatest.Limits.AccountMessages {
		made, err := enroll(d, al, sms(fmt.Sprintf("+12675555%03d", i)))
		if err != nil {
			t.Fatal(err)
		}
		newest = made
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
		_, err = d.Service.ChallengeFactor(t.Context(),
			mfaapi.ChallengeFactor{Tenant: d.Tenant, Account: al.ID, Factor: newest.Factor.ID})
		refuse(err)
		d.Post(mfatest.Of(al)+"/factors?challenge=true",
			fmt.Sprintf(`{"type":"SMS","phone":{"number":"+44740013%04d"}}`, i)).WantError(429, 429)
	}
	if len(d.Sent()) != sent || d.Rows("factors") != factors || d.Rows("phones") != phones {
		t.Error("what is refused leaves something behind")
	}
	t.Run("others have what is left of the limits that all share", func(t *testing.T) {
		for i := range mfatest.Limits.CountryMessages - mfatest.Limits.AccountMessages {
			if _, err := enroll(d, d.Account(d.Tenant, fmt.Sprintf("us%d", i)),
				sms(fmt.Sprintf("+12675556%03d", i))); err != nil {
				t.Error(err)
			}
		}
		for i := range mfatest.Limits.TenantMessages - mfatest.Limits.CountryMessages {
			if _, err := enroll(d, d.Account(d.Tenant, fmt.Sprintf("uk%d", i)),
				sms(fmt.Sprintf("+44740014%04d", i))); err != nil {
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

// Anybody can register and enroll the phones of strangers, which must not use up the messages by which
// users log in.
func TestEnrollmentsHaveMessagesOfTheirOwn(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	withPhone(d, d.Jo, "+18883915282")
	from := func(address string) context.Context {
		return caller.Into(t.Context(), caller.Caller{Tenant: d.Tenant, Address: netip.MustParseAddr(address)})
	}
	enrollFrom := func(address string, n int) (mfaapi.EnrolledFactor, error) {
		in := sms(fmt.Sprintf("+44740012%04d", n))
		in.Tenant, in.Application, in.Account = d.Tenant, id.New(d.Now()), d.Account(d.Tenant, fmt.Sprintf("user%d", n)).ID
		return d.Service.EnrollFactor(from(address), in)
	}
	for n := range mfatest.Limits.EnrollAddressMessages {
		if _, err := enrollFrom("203.0.113.1", n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := enrollFrom("203.0.113.1", 99); !errors.Is(err, apierr.TooMany) {
		t.Errorf("an enrollment beyond those of one address returns %v", err)
	}
	n := mfatest.Limits.EnrollAddressMessages
	for ; n < 100; n++ {
		if _, err := enrollFrom(fmt.Sprintf("203.0.113.%d", n), n); err != nil {
			if !errors.Is(err, apierr.TooMany) {
				t.Fatal(err)
			}
			break
		}
	}
	if n > mfatest.Limits.EnrollTenantMessages {
		t.Errorf("%d enrollments of a tenant get a message, want at most %d", n, mfatest.Limits.EnrollTenantMessages)
	}
	for range mfatest.Limits.NumberMessages {
		if out, err := demand(d, id.New(d.Now())); err != nil || out.Action != mfaapi.Challenge {
			t.Fatalf("beside the enrollments a login returns %+v, %v; want its code sent", out, err)
		}
	}
}

// A user who has mistyped a number enrolls another one. What is verified stays.
func TestAnAccountHasOneUnverifiedPhone(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	for _, number := range []string{"+12675555001", "+12675555002", "+12675555003"} {
		if _, err := enroll(d, d.Jo, sms(number)); err != nil {
			t.Fatal(err)
		}
	}
	list, err := d.Service.FactorsOf(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Jo.ID})
	if err != nil || len(list.Items) != 1 || list.Items[0].Number != "+12675555003" || d.Rows("phones") != 1 {
		t.Errorf("after three enrollments the factors are %+v, %v, on %d phones; want the newest", list, err,
			d.Rows("phones"))
	}
	d.Post(mfatest.Of(d.Jo)+"/phones", `{"number":"+12675555004"}`).Want(201)
	withPhone(d, d.Jo, "+18883915282")
	in := sms("+12675555005")
	in.SecondFactor = true
	if _, err := enroll(d, d.Jo, in); err != nil {
		t.Fatal(err)
	}
	if factors, phones := d.Rows("factors"), d.Rows("phones"); factors != 2 || phones != 3 {
		t.Errorf("there are %d factors and %d phones; want the verified factor, the newest, and the phone without a factor",
			factors, phones)
	}
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
	if _, err := enroll(d, d.Jo, mfaapi.EnrollFactor{Type: mfaapi.SMS, Number: "+12675555555"}); !errors.Is(err,
		apierr.Forbidden) {
		t.Errorf("another type is answered %v", err)
	}
	d.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"google-authenticator"}`).Want(201) // by the tenant itself
	t.Run("phones without factors count", func(t *testing.T) {
		al := d.Account(d.Tenant, "al")
		for i := range 50 {
			d.Post(mfatest.Of(al)+"/phones", fmt.Sprintf(`{"number":"+12675555%03d"}`, i)).Want(201)
		}
		if _, err := enroll(d, al, mfaapi.EnrollFactor{Type: mfaapi.SMS, Number: "+12675556000"}); !errors.Is(err,
			apierr.Forbidden) {
			t.Errorf("another phone is answered %v", err)
		}
		if _, err := enroll(d, al, authenticator); err != nil {
			t.Error(err)
		}
	})
}
