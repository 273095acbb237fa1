package provider_test

import (
	"encoding/base64"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/provider"
	"github.com/doorward/doorward/services/directory/store"
)

// samlDirectory makes a directory whose identity provider signs with the key pair.
func samlDirectory(t *testing.T, svc *app.Service, tenant id.ID, pair saml.KeyPair,
	rules ...mappingrule.NewRule) id.ID {
	t.Helper()
	d, err := svc.CreateDirectoryIn(t.Context(), tenant, newDirectory(id.New(now()).String(), provider.NewProvider{
		ProviderID: field.Some("saml"), SSOLoginURL: field.Some("https://idp.test/sso"),
		SSOLogoutURL:                   field.Some("https://idp.test/slo"),
		EncodedX509SigningCert:         field.Some(pair.Certificate),
		AttributeStatementMappingRules: field.Some(mappingrule.Change{Items: field.Some(rules)}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	return d.ID
}

func samlKeys(t *testing.T, at time.Time) saml.KeyPair {
	t.Helper()
	pair, err := saml.NewKeyPair("idp", at)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// answer is a login that the identity provider begins.
func answer(t *testing.T, tenant, at id.ID, pair saml.KeyPair, nameID string,
	attributes ...saml.Attribute) directoryapi.FinishSAMLLogin {
	t.Helper()
	return answerOf(t, tenant, at, pair,
		saml.Response{NameID: nameID, NameIDFormat: saml.TransientNameID, Attributes: attributes, Now: now()})
}

// answerOf is answer with any name, attributes and time.
func answerOf(t *testing.T, tenant, at id.ID, pair saml.KeyPair, in saml.Response) directoryapi.FinishSAMLLogin {
	t.Helper()
	in.Issuer, in.Audience = "urn:idp", "urn:service:directory:"+at.String()+":provider:sp"
	in.ConsumerURL = "https://localhost:8443/v1/directories/" + at.String() + "/saml/sso/post"
	signed, err := in.Sign(pair, saml.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return directoryapi.FinishSAMLLogin{
		Tenant: tenant, Directory: at, Response: secure.Secret(base64.StdEncoding.EncodeToString(signed)),
	}
}

func TestWhatAnAssertionSaysOfAUser(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	pair := samlKeys(t, now())
	at := samlDirectory(t, svc, tenant, pair, rule("title", "customData.title"),
		rule("urn:x:mail", "customData.otherMail"),
		mappingrule.NewRule{NameFormat: field.Some("urn:f"), AccountAttributes: field.Some([]string{"middleName"})})
	attribute := func(name string, values ...string) saml.Attribute { return saml.Attribute{Name: name, Values: values} }
	for what, c := range map[string]struct {
		nameID                         string
		attributes                     []saml.Attribute
		email, given, surname, refusal string
	}{
		"the NameID is the email": {nameID: "jo@example.test", email: "jo@example.test"},
		"well-known names": {
			"x", []saml.Attribute{
				attribute("http://schemas/emailaddress", "a@example.test", "b@example.test"), attribute("x/givenName", "Jo"),
				attribute("sn", "Doe"),
			}, "a@example.test", "Jo", "Doe", "",
		},
		"an attribute before the NameID": {
			"n@example.test", []saml.Attribute{attribute("mail", "m@example.test")}, "m@example.test", "", "", "",
		},
		"a mapped name is not well known": {
			"u@example.test", []saml.Attribute{attribute("urn:x:mail", "m2@example.test")}, "u@example.test", "", "", "",
		},
		"names of Okta": {
			"x", []saml.Attribute{
				attribute("User.email", "o@example.test"), attribute("firstName", "Jo"), attribute("User.LastName", "Doe"),
			}, "o@example.test", "Jo", "Doe", "",
		},
		"a name of its own before a longer one": {
			"x", []saml.Attribute{
				attribute("backupEmail", "b2@example.test"), attribute("urn:x:Email", "o2@example.test"),
				attribute("nextOfKinLastName", "Roe"), attribute("lastname", "Doe"),
			}, "o2@example.test", "", "Doe", "",
		},
		"no email": {nameID: "x", refusal: "none"},
	} {
		t.Run(what, func(t *testing.T) {
			login, err := svc.FinishSAMLLogin(t.Context(), answer(t, tenant, at, pair, c.nameID, c.attributes...))
			if c.refusal != "" {
				if !errors.Is(err, apierr.ProviderIncomplete) {
					t.Errorf("the login returns %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			a, given, surname := login.Account, "", ""
			if a.GivenName != nil {
				given = *a.GivenName
			}
			if a.Surname != nil {
				surname = *a.Surname
			}
			if a.Email != c.email || given != c.given || surname != c.surname ||
				a.EmailVerificationStatus != directoryapi.Verified || login.Session.NameID != c.nameID {
				t.Errorf("the account is %+v, the session %+v", a, login.Session)
			}
		})
	}
	t.Run("rules by name and by format, and provider data at the top", func(t *testing.T) {
		formatted := saml.Attribute{Name: "any", NameFormat: "urn:f", Values: []string{"Mid"}}
		login, err := svc.FinishSAMLLogin(t.Context(),
			answer(t, tenant, at, pair, "r@example.test", attribute("title", "Dr"), formatted, attribute("groups", "a", "b")))
		if err != nil || login.Account.MiddleName == nil || *login.Account.MiddleName != "Mid" {
			t.Fatalf("the login is %+v, %v", login, err)
		}
		data, err := svc.ProviderData(t.Context(), id.Ref{Tenant: tenant, ID: login.Account.ID})
		if err != nil || string(data.Claims["title"]) != `"Dr"` || string(data.Claims["groups"]) != `["a", "b"]` {
			t.Errorf("the provider data is %v, %v", data.Claims, err)
		}
	})
}

// Of any number of parallel uses of an assertion one is a login.
func TestAnAssertionIsUsedOnce(t *testing.T) {
	t.Parallel()
	svc, db, _, tenant := sealing(t)
	pair := samlKeys(t, now())
	at := samlDirectory(t, svc, tenant, pair)
	in := answer(t, tenant, at, pair, "jo@example.test")
	var group sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		group.Go(func() { _, errs[i] = svc.FinishSAMLLogin(t.Context(), in) })
	}
	group.Wait()
	used := 0
	for _, err := range errs {
		switch {
		case err == nil:
			used++
		case !errors.Is(err, apierr.SAMLMalformed):
			t.Errorf("the second use returns %v", err)
		}
	}
	if used != 1 {
		t.Errorf("the assertion is used %d times", used)
	}
	if n, err := pg.Value[int](t.Context(), db, `SELECT count(*) FROM saml_assertions WHERE tenant_id = $1`,
		tenant); err != nil || n != 1 {
		t.Errorf("%d are kept, %v", n, err)
	}
	t.Run("also where the account may not log in", func(t *testing.T) {
		in := answer(t, tenant, at, pair, "sam@example.test")
		if _, err := svc.FinishSAMLLogin(t.Context(), answer(t, tenant, at, pair, "sam@example.test")); err != nil {
			t.Fatal(err)
		}
		set := func(status string) {
			t.Helper()
			if err := pg.MustChange(t.Context(), db,
				`UPDATE accounts SET status = $2 WHERE tenant_id = $1 AND email = 'sam@example.test'`,
				tenant, status); err != nil {
				t.Fatal(err)
			}
		}
		set(directoryapi.Disabled)
		if _, err := svc.FinishSAMLLogin(t.Context(), in); !errors.Is(err, apierr.AccountDisabled) {
			t.Errorf("the login of a disabled account returns %v", err)
		}
		set(directoryapi.Enabled)
		if _, err := svc.FinishSAMLLogin(t.Context(), in); !errors.Is(err, apierr.SAMLMalformed) {
			t.Errorf("after a refusal it returns %v", err)
		}
	})
	t.Run("another tenant's directory is none", func(t *testing.T) {
		other := in
		other.Tenant = id.New(now())
		if _, err := svc.FinishSAMLLogin(t.Context(), other); !errors.Is(err, apierr.NotSAML) {
			t.Errorf("the login at another tenant returns %v", err)
		}
	})
}

// A persistent NameID is the user, whatever the email says.
func TestAPersistentNameIDIsTheUser(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	pair := samlKeys(t, now())
	at := samlDirectory(t, svc, tenant, pair)
	login := func(format, name, email string) (directoryapi.SAMLLogin, error) {
		return svc.FinishSAMLLogin(t.Context(), answerOf(t, tenant, at, pair, saml.Response{
			NameID: name, NameIDFormat: format, Attributes: []saml.Attribute{{Name: "email", Values: []string{email}}},
			Now: now(),
		}))
	}
	want := func(what string, account directoryapi.Account, format, name, email, wantEmail string) {
		t.Helper()
		got, err := login(format, name, email)
		if err != nil || got.IsNew || got.Account.ID != account.ID || got.Account.Email != wantEmail {
			t.Errorf("%s returned %s, %s, new %v, %v", what, got.Account.ID, got.Account.Email, got.IsNew, err)
		}
	}
	jo, err := login(saml.EmailNameID, "jo@example.test", "jo@example.test")
	if err != nil {
		t.Fatal(err)
	}
	want("the first persistent NameID of a known email", jo.Account, saml.PersistentNameID, "id-1", "jo@example.test",
		"jo@example.test")
	want("the NameID with another email", jo.Account, saml.PersistentNameID, "id-1", "jo.doe@example.test",
		"jo.doe@example.test")
	want("a login without a persistent NameID", jo.Account, saml.EmailNameID, "jo.doe@example.test", "jo.doe@example.test",
		"jo.doe@example.test")
	want("the NameID after that", jo.Account, saml.PersistentNameID, "id-1", "jo@example.test", "jo@example.test")
	sam, err := login(saml.PersistentNameID, "id-2", "sam@example.test")
	if err != nil || sam.Account.ID == jo.Account.ID {
		t.Fatalf("another user is %+v, %v", sam, err)
	}
	want("the NameID with the email of another account", jo.Account, saml.PersistentNameID, "id-1", "sam@example.test",
		"jo@example.test")
	if got, err := login(saml.PersistentNameID, "id-3", "jo@example.test"); !errors.Is(err, apierr.SAMLMalformed) {
		t.Errorf("a known email with another persistent NameID returned %+v, %v", got.Account.ID, err)
	}
	if _, err := svc.UpdateProvider(t.Context(), id.Ref{Tenant: tenant, ID: at},
		provider.NewProvider{TrustsReusedEmails: field.Some(true)}); err != nil {
		t.Fatal(err)
	}
	want("with trustsReusedEmails, a known email with another persistent NameID", jo.Account, saml.PersistentNameID,
		"id-3", "jo@example.test",
		"jo@example.test")
	want("the NameID that took over", jo.Account, saml.PersistentNameID, "id-3", "jo@new.example.test",
		"jo@new.example.test")
}

// Clocks of well-kept identity providers are a minute or two off.
func TestTheClockOfAnIdentityProviderMayDiffer(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	pair := samlKeys(t, now())
	at := samlDirectory(t, svc, tenant, pair)
	// The assertion of saml.Response is valid for 5 minutes; it must not have been made in the future.
	login := func(ahead time.Duration) error {
		_, err := svc.FinishSAMLLogin(t.Context(), answerOf(t, tenant, at, pair, saml.Response{
			NameID: "jo@example.test", NameIDFormat: saml.EmailNameID, Now: now().Add(ahead),
		}))
		return err
	}
	check := func(skew time.Duration) {
		t.Helper()
		for ahead, isRefused := range map[time.Duration]bool{
			skew: false, skew + time.Second: true, -5*time.Minute - skew + time.Second: false, -5*time.Minute - skew: true,
		} {
			if err := login(ahead); (err != nil) != isRefused || err != nil && !errors.Is(err, apierr.SAMLMalformed) {
				t.Errorf("with a clockSkew of %s, a clock that is %s ahead returned %v", skew, ahead, err)
			}
		}
	}
	check(3 * time.Minute)
	for seconds, want := range map[int]error{-1: apierr.BelowMinimum, 301: apierr.AboveMaximum, 0: nil} {
		if _, err := svc.UpdateProvider(t.Context(), id.Ref{Tenant: tenant, ID: at},
			provider.NewProvider{ClockSkew: field.Some(seconds)}); !errors.Is(err, want) {
			t.Errorf("a clockSkew of %d returned %v, want %v", seconds, err, want)
		}
	}
	check(0)
}

// A certificate carries a key: its dates lock nobody out.
func TestTheDatesOfACertificateRefuseNoLogin(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	for state, made := range map[string]time.Time{
		saml.CertificateExpired: now().AddDate(-11, 0, 0), saml.CertificateNotYetValid: now().AddDate(1, 0, 0),
		saml.CertificateExpiresSoon: now().AddDate(-10, 0, 29), saml.CertificateValid: now(),
	} {
		pair := samlKeys(t, made)
		at := samlDirectory(t, svc, tenant, pair)
		if _, err := svc.FinishSAMLLogin(t.Context(), answer(t, tenant, at, pair, "jo@example.test")); err != nil {
			t.Errorf("a login with a certificate that is %s returned %v", state, err)
		}
		p, err := svc.Provider(t.Context(), id.Ref{Tenant: tenant, ID: at})
		if err != nil || p.CertificateStatus != state {
			t.Errorf("the certificateStatus is %s, %v, want %s", p.CertificateStatus, err, state)
		}
	}
}

func TestCertificatesThatEndAreCounted(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	ending, ended := samlKeys(t, now().AddDate(-10, 0, 20)), samlKeys(t, now().AddDate(-11, 0, 0))
	samlDirectory(t, svc, tenant, samlKeys(t, now().AddDate(1, 0, 0)))
	samlDirectory(t, svc, tenant, samlKeys(t, now()))
	samlDirectory(t, svc, tenant, ended)
	rolled := samlDirectory(t, svc, tenant, ending)
	check := func(wantEnding, wantEnded int64) {
		t.Helper()
		counts, err := provider.CheckSAMLCertificates(t.Context(), svc.Providers)
		if err != nil || counts[saml.CertificateExpiresSoon] != wantEnding || counts[saml.CertificateExpired] != wantEnded ||
			counts[saml.CertificateNotYetValid] != 1 {
			t.Errorf("the certificates are counted as %v, %v", counts, err)
		}
	}
	check(1, 1)
	if _, err := svc.UpdateProvider(t.Context(), id.Ref{Tenant: tenant, ID: rolled}, provider.NewProvider{
		EncodedX509SigningCertNext: field.Some(samlKeys(t, now()).Certificate),
	}); err != nil {
		t.Fatal(err)
	}
	check(0, 1)
}

// BenchmarkUseAssertion keeps the ids of assertions, each in a transaction of its own,
// as parallel logins do.
func BenchmarkUseAssertion(b *testing.B) {
	svc, _, _, tenant := sealing(b)
	p := store.Provider{TenantID: tenant, DirectoryID: id.New(now())}
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(loop *testing.PB) {
		for loop.Next() {
			login := saml.Login{AssertionID: secure.Token(32).Reveal(), ExpiresAt: now().Add(time.Hour)}
			if err := provider.UseAssertion(b.Context(), svc.Providers, p, login); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ids/s")
}
