package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// selfMade returns the header and the claims of an assertion as the SDKs for servers sign it:
// without stt, and with a fraction in iat.
func selfMade(d *oauthtest.Deployment, s oauthtest.Site) (header, claims object) {
	now := float64(d.Clock.Now().Unix())
	return object{"typ": "JWT", "alg": "HS256", "kid": s.Key}, object{
		"iss": oauthtest.Base.To("applications", s.Application), "sub": oauthtest.Base.To("accounts", s.Account), "aud": s.Key,
		"status": "AUTHENTICATED", "iat": now + 0.25, "exp": now + 60, "jti": secure.Token(20).Reveal(),
	}
}

// exchange requests tokens for an assertion.
func exchange(ctx context.Context, svc *oauth.Service, s oauthtest.Site, assertion secure.Secret) (oauth.IssuedTokens, error) {
	return svc.Token(ctx, s.Request("grant_type", "service_token", "token", assertion.Reveal()))
}

// exchanged checks that an assertion is exchanged for tokens of the account.
func exchanged(t *testing.T, d *oauthtest.Deployment, s oauthtest.Site, assertion secure.Secret) {
	t.Helper()
	issued, err := exchange(t.Context(), d.Service, s, assertion)
	if err != nil {
		t.Fatal(err)
	}
	_, access := decodeJWT(t, issued.Access)
	if access["sub"] != oauthtest.Base.To("accounts", s.Account) || issued.Refresh == "" || access["org"] != nil {
		t.Errorf("the claims are %v", access)
	}
	validate(t, d, s, issued.Access, nil)
}

func TestAnAssertionIsExchanged(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	second, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, d.Administrator, oauth.NewAPIKey{})
	if err != nil {
		t.Fatal(err)
	}
	hosted := func(header, claims object) {
		header["stt"], claims["iss"] = "assertion", "https://calm-otter.id.localhost:8443"
	}
	for name, change := range map[string]func(header, claims object){
		"one that a client made":                func(object, object) {},
		"one without typ":                       func(header, _ object) { delete(header, "typ") },
		"one that names its key as audience":    func(header, _ object) { delete(header, "kid") },
		"one with a list as audience":           func(_, claims object) { claims["aud"] = []string{d.Key} },
		"one that names its key in the header":  func(_, claims object) { delete(claims, "aud") },
		"one by the calling key, without names": func(header, claims object) { delete(header, "kid"); delete(claims, "aud") },
		"one of a new registration":             func(_, claims object) { claims["status"] = "REGISTERED" },
		"one without a jti":                     func(_, claims object) { delete(claims, "jti") },
		"one without exp":                       func(_, claims object) { delete(claims, "exp") },
		"one that goes on for years":            func(_, claims object) { claims["exp"] = claims["exp"].(float64) + 1e9 },
		"one from a clock that is a minute ahead": func(_, claims object) {
			claims["iat"] = float64(d.Clock.Now().Add(time.Minute).Unix())
		},
		"one of the hosted login":         hosted,
		"one of the service":              func(header, _ object) { header["stt"] = "assertion" },
		"one with a jti of great length":  func(_, claims object) { claims["jti"] = secure.Token(2000).Reveal() },
		"one that says nothing of an org": func(_, claims object) { claims["org"] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			header, claims := selfMade(d, d.Site)
			change(header, claims)
			exchanged(t, d, d.Site, signForgedJWT(t, header, claims, d.Secret))
		})
	}
	t.Run("by another key than the caller's", func(t *testing.T) {
		header, claims := selfMade(d, d.Site)
		exchanged(t, d, d.Site, signForgedJWT(t, with(header, "kid", second.ID), with(claims, "aud", second.ID), second.Secret))
	})
}

// The refusals of docs/interface/oauth.md#assertions, and attacks with malformed assertions.
func TestAnAssertionIsRefused(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	foreign := d.NewSite(t)
	login := d.LogIn(t, d.Site)
	key := func(account id.ID) (string, secure.Secret) {
		k, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, account, oauth.NewAPIKey{})
		if err != nil {
			t.Fatal(err)
		}
		return k.ID, k.Secret
	}
	endUser, endUserSecret := key(d.Account)
	disabled, disabledSecret := key(d.Administrator)
	disable := oauth.APIKeyChange{Status: field.Some(directoryapi.Disabled)}
	if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, disabled, disable); err != nil {
		t.Fatal(err)
	}
	former := d.NewAccount(d.Tenant, d.Administrators, "former@example.test", oauthtest.Password)
	formerKey, formerSecret := key(former)
	d.SetStatus(d.Tenant, former, directoryapi.Disabled)
	neighbour := d.NewAccount(d.Tenant, d.Directory, "sam@example.test", oauthtest.Password)
	stranger := d.NewAccount(d.Tenant, d.NewDirectory(d.Tenant), "ann@example.test", oauthtest.Password)
	idle := d.NewAccount(d.Tenant, d.Directory, "idle@example.test", oauthtest.Password)
	d.SetStatus(d.Tenant, idle, directoryapi.Disabled)
	fresh := d.NewAccount(d.Tenant, d.Directory, "new@example.test", oauthtest.Password)
	d.SetStatus(d.Tenant, fresh, directoryapi.Unverified)
	other := d.NewApplication(d.Tenant, d.Directory)
	now := float64(d.Clock.Now().Unix())
	account := func(v id.ID) string { return oauthtest.Base.To("accounts", v) }
	_, accessClaims := decodeJWT(t, login.Access)

	set := func(name string, value any) func(object, object) {
		return func(_, claims object) {
			claims[name] = value
			if value == nil {
				delete(claims, name)
			}
		}
	}
	head := func(name string, value any) func(object, object) {
		return func(header, _ object) { header[name] = value }
	}
	by := func(key string) func(object, object) {
		return func(header, claims object) { header["kid"], claims["aud"] = key, key }
	}
	for _, c := range []struct {
		name   string
		change func(header, claims object)
		secret secure.Secret // that signs; empty: the caller's
		want   *apierr.Error
	}{
		{"a bad signature", func(object, object) {}, "another secret", apierr.TokenSignature},
		{"a key of an end user, for somebody else", func(header, claims object) {
			by(endUser)(header, claims)
			claims["sub"] = account(neighbour)
		}, endUserSecret, apierr.TokenSignature},
		{"a key of an end user, for itself", by(endUser), endUserSecret, apierr.TokenSignature},
		{"a disabled key", by(disabled), disabledSecret, apierr.TokenSignature},
		{"a key of a disabled administrator", by(formerKey), formerSecret, apierr.TokenSignature},
		{"a key of another tenant", by(foreign.Key), foreign.Secret, apierr.TokenSignature},
		{"a key that never was", by("NOBODY"), d.Secret, apierr.TokenSignature},
		{"a kid that is a path", head("kid", "../../dev/null"), "", apierr.TokenSignature},
		{"a kid that is SQL", head("kid", "' OR ''='"), "", apierr.TokenSignature},
		{"a kid that is a URL", head("kid", "https://evil.example/key"), "", apierr.TokenSignature},
		{"a kid that is a number", head("kid", 7), "", apierr.TokenSignature},
		{"a kid that is empty does not lead to the audience", head("kid", ""), "", apierr.TokenSignature},
		{"a kid that is null does not lead to the audience", head("kid", nil), "", apierr.TokenSignature},
		{"an audience that is another key", set("aud", endUser), "", apierr.TokenSignature},
		{"an audience that is no key", set("aud", "https://app.localhost"), "", apierr.TokenSignature},
		{"two audiences", set("aud", []string{d.Key, endUser}), "", apierr.TokenSignature},
		{"an audience that is a number", set("aud", 7), "", apierr.TokenSignature},
		{"an stt of an access token", head("stt", "access"), "", apierr.TokenSignature},
		{"an stt of a refresh token", head("stt", "refresh"), "", apierr.TokenSignature},
		{"an stt in other letters", head("stt", "Assertion"), "", apierr.TokenSignature},
		{"an stt that is null", head("stt", nil), "", apierr.TokenSignature},
		{"an stt that is a list", head("stt", []string{"assertion"}), "", apierr.TokenSignature},
		{"another type", head("typ", "at+jwt"), "", apierr.TokenSignature},
		{"a header that must be understood", head("crit", []string{"x"}), "", apierr.TokenSignature},
		{"no iat", set("iat", nil), "", apierr.TokenSignature},
		{"an iat that is text", set("iat", "1"), "", apierr.TokenSignature},
		{"an exp that is text", set("exp", "9999999999"), "", apierr.TokenSignature},
		{"a jti that is a number", set("jti", 7), "", apierr.TokenSignature},
		{"a jti that is empty", set("jti", ""), "", apierr.TokenSignature},
		{"no jti, of the service's own", func(header, claims object) { header["stt"] = "assertion"; delete(claims, "jti") }, "",
			apierr.TokenSignature},

		{"no issuer", set("iss", nil), "", apierr.TokenOtherApplication},
		{"another application's", set("iss", oauthtest.Base.To("applications", other)), "", apierr.TokenOtherApplication},
		{"an API key as issuer", set("iss", d.Key), "", apierr.TokenOtherApplication},
		{"a hosted login that a client claims to be", set("iss", "https://calm-otter.id.localhost"), "", apierr.TokenOtherApplication},

		{"from the future", set("iat", now+61), "", apierr.TokenFromFuture},
		{"not valid yet", set("nbf", now+61), "", apierr.TokenFromFuture},
		{"an nbf that is text", set("nbf", "0"), "", apierr.TokenSignature},
		{"expired", set("exp", now), "", apierr.TokenExpired},
		{"older than any exp allows", func(_, claims object) { claims["iat"], claims["exp"] = now-600, now+3600 }, "", apierr.TokenExpired},
		{"old, without exp", func(_, claims object) { claims["iat"] = now - 600; delete(claims, "exp") }, "", apierr.TokenExpired},
		{"from before all time", set("iat", -1e300), "", apierr.TokenSignature},
		{"from after all time", set("iat", 1e300), "", apierr.TokenSignature},
		{"from where the sum of times overflows", set("iat", 9.3e18), "", apierr.TokenSignature},
		{"from the year 10000", set("iat", 253402300800), "", apierr.TokenSignature},
		{"from before 1970", set("iat", -1), "", apierr.TokenSignature},
		{"an exp after all time", set("exp", 1e300), "", apierr.TokenSignature},

		{"of a logout", set("status", "LOGOUT"), "", apierr.NotAuthenticated},
		{"without a status", set("status", nil), "", apierr.NotAuthenticated},
		{"with a status that is no text", set("status", true), "", apierr.NotAuthenticated},
		{"of an error", func(_, claims object) { delete(claims, "status"); claims["err"] = object{"code": 12001} }, "", apierr.NotAuthenticated},

		{"of nobody", set("sub", nil), "", apierr.TokenAccountDisabled},
		{"of no account", set("sub", oauthtest.Base.To("directories", d.Directory)), "", apierr.TokenAccountDisabled},
		{"of an account that never was", set("sub", account(d.Application)), "", apierr.TokenAccountDisabled},
		{"of an account of another tenant", set("sub", account(foreign.Account)), "", apierr.TokenAccountDisabled},
		{"of an account of another deployment", set("sub", "https://evil.example/v1/accounts/"+d.Account.String()), "",
			apierr.TokenAccountDisabled},
		{"of a disabled account", set("sub", account(idle)), "", apierr.TokenAccountDisabled},
		{"of an account that has yet to be verified", func(_, claims object) {
			claims["sub"], claims["status"] = account(fresh),
				"REGISTERED"
		}, "", apierr.TokenAccountDisabled},
		{"of an account that the application does not reach", set("sub", account(stranger)), "", apierr.TokenAccountUnreachable},
		{"of an organization that never was", set("org", oauthtest.Base.To("organizations", d.Account)), "", apierr.Reference},
		{"of an organization that is a directory", set("org", oauthtest.Base.To("directories", d.Directory)), "", apierr.Reference},
		{"of an organization that is a number", set("org", 7), "", apierr.Reference},

		{"a request to the hosted login", func(header, claims object) {
			clear(claims)
			delete(header, "kid")
			claims["iat"], claims["iss"], claims["sub"] = now, d.Key, oauthtest.Base.To("applications", d.Application)
			claims["cb_uri"], claims["jti"], claims["require_mfa"] = "https://app.localhost/cb", "a-jti", []string{"sms"}
		}, "", apierr.TokenOtherApplication},
		{"a request to the hosted login that says it is one of the application", func(header, claims object) {
			clear(claims)
			delete(header, "kid")
			claims["iat"], claims["iss"], claims["sub"], claims["jti"] = now, oauthtest.Base.To("applications", d.Application),
				account(d.Account), "a-jti"
		}, "", apierr.NotAuthenticated},
		{"the claims of an access token", func(_, claims object) {
			clear(claims)
			for name, value := range accessClaims {
				claims[name] = value
			}
		}, "", apierr.NotAuthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			header, claims := selfMade(d, d.Site)
			c.change(header, claims)
			secret := c.secret
			if secret == "" {
				secret = d.Secret
			}
			refusedAs(t, d, signForgedJWT(t, header, claims, secret), c.want)
		})
	}
	for name, token := range map[string]secure.Secret{
		"no JWT": "abc", "an access token": login.Access, "a refresh token": login.Refresh,
	} {
		t.Run(name, func(t *testing.T) { refusedAs(t, d, token, apierr.TokenSignature) })
	}
	for _, issuer := range []string{
		"http://id.localhost", "https://", "https://id.localhost/", "https://id.localhost/x", "https://id.localhost?x", "https://id.localhost#x",
		"https://jo@id.localhost", "https://:443", "HTTPS://id.localhost", "https:id.localhost", " https://id.localhost",
		"https://id.localhost\\x",
		oauthtest.Base.To("applications", other),
	} {
		t.Run("the hosted login "+issuer, func(t *testing.T) {
			header, claims := selfMade(d, d.Site)
			refusedAs(t, d, signForgedJWT(t, with(header, "stt", "assertion"), with(claims, "iss", issuer), d.Secret), apierr.TokenOtherApplication)
		})
	}
	t.Run("alg none", func(t *testing.T) {
		parts := strings.Split(signForgedJWT(t, object{"alg": "none"}, object{}, "").Reveal(), ".")
		_, claims := selfMade(d, d.Site)
		body := strings.Split(signForgedJWT(t, object{}, claims, "").Reveal(), ".")[1]
		refusedAs(t, d, secure.Secret(parts[0]+"."+body+"."), apierr.TokenSignature)
	})
	t.Run("a disabled application", func(t *testing.T) {
		d.SetStatus(d.Tenant, d.Application, directoryapi.Disabled)
		defer d.SetStatus(d.Tenant, d.Application, directoryapi.Enabled)
		header, claims := selfMade(d, d.Site)
		refusedAs(t, d, signForgedJWT(t, header, claims, d.Secret), apierr.TokenApplicationDisabled)
	})
	t.Run("an application that never was", func(t *testing.T) {
		site := d.Site
		site.Application = d.Account
		header, claims := selfMade(d, site)
		if _, err := exchange(t.Context(), d.Service, site, signForgedJWT(t, header, claims, d.Secret)); !errors.Is(err, apierr.NotFound) {
			t.Error(err)
		}
	})
	t.Run("a peer that is away refuses nothing", func(t *testing.T) {
		header, claims := selfMade(d, d.Site)
		token := signForgedJWT(t, header, claims, d.Secret)
		d.Fail(apierr.Unavailable)
		if _, err := exchange(t.Context(), d.Service, d.Site, token); !errors.Is(err, apierr.Unavailable) {
			t.Error(err)
		}
		d.Fail(nil)
		exchanged(t, d, d.Site, token)
	})
}

// refusedAs checks that an assertion is refused, and not recorded as used.
func refusedAs(t *testing.T, d *oauthtest.Deployment, token secure.Secret, want *apierr.Error) {
	t.Helper()
	issued, err := exchange(t.Context(), d.Service, d.Site, token)
	if !errors.Is(err, want) || issued != (oauth.IssuedTokens{}) {
		t.Fatalf("the answer is %v, %v; want %v", issued, err, want)
	}
	if apierr.From(err).Fields["error"] != "invalid_client" {
		t.Errorf("error is %v", apierr.From(err).Fields)
	}
	if n := spent(t, d); n != 0 {
		t.Errorf("%d assertions are spent", n)
	}
}

func spent(t *testing.T, d *oauthtest.Deployment) int {
	t.Helper()
	n, err := pg.Value[int](t.Context(), d.DB, `SELECT count(*) FROM consumed_assertions`)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheEndsOfAnAssertion(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	for name, c := range map[string]struct {
		exp  any           // seconds from iat; nil: none
		last time.Duration // after iat, when it is still good
	}{
		"its exp":                {60.0, time.Minute - time.Millisecond},
		"ten minutes, at most":   {3600.0, 10*time.Minute - time.Millisecond},
		"ten minutes, where exp": {nil, 10*time.Minute - time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			token := func() secure.Secret {
				header, claims := selfMade(d, d.Site)
				claims["iat"] = float64(d.Clock.Now().Unix())
				delete(claims, "exp")
				if c.exp != nil {
					claims["exp"] = claims["iat"].(float64) + c.exp.(float64)
				}
				return signForgedJWT(t, header, claims, d.Secret)
			}
			good, late := token(), token()
			d.Clock.Move(c.last)
			exchanged(t, d, d.Site, good)
			d.Clock.Move(time.Millisecond)
			if _, err := exchange(t.Context(), d.Service, d.Site, late); !errors.Is(err, apierr.TokenExpired) {
				t.Error(err)
			}
		})
	}
}

func TestAnAssertionIsExchangedOnce(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	token := func(change ...func(header, claims object)) secure.Secret {
		header, claims := selfMade(d, d.Site)
		header["stt"] = "assertion"
		for _, each := range change {
			each(header, claims)
		}
		return signForgedJWT(t, header, claims, d.Secret)
	}
	t.Run("but one that a client made until it expires, with or without a jti", func(t *testing.T) {
		for _, jti := range []any{"self-made", nil} {
			one := token(func(header, claims object) { delete(header, "stt"); claims["jti"] = jti })
			exchanged(t, d, d.Site, one)
			exchanged(t, d, d.Site, one)
			d.Clock.Move(time.Minute)
			if _, err := exchange(t.Context(), d.Service, d.Site, one); !errors.Is(err, apierr.TokenExpired) {
				t.Error(err)
			}
		}
		if n := spent(t, d); n != 0 {
			t.Errorf("%d assertions are spent", n)
		}
	})
	t.Run("of 50 tries at once, on two processes", func(t *testing.T) {
		one, services := token(), []*oauth.Service{d.Service, d.WithMasterKey(t, d.Master)}
		before, done := count(t, d, "access"), 0
		for _, err := range runConcurrently(50, func(i int) error {
			_, err := exchange(context.Background(), services[i%2], d.Site, one)
			return err
		}) {
			switch {
			case err == nil:
				done++
			case !errors.Is(err, apierr.TokenReplayed) || apierr.From(err).Fields["error"] != "invalid_client":
				t.Error(err)
			}
		}
		if after := count(t, d, "access"); done != 1 || after != before+1 {
			t.Errorf("%d tries gave tokens, %d more are there", done, after-before)
		}
		t.Run("also after a restart", func(t *testing.T) {
			if _, err := exchange(t.Context(), d.WithMasterKey(t, d.Master), d.Site, one); !errors.Is(err, apierr.TokenReplayed) {
				t.Error(err)
			}
		})
	})
	t.Run("its jti in another assertion is used too", func(t *testing.T) {
		same := func(_, claims object) { claims["jti"] = "one" }
		exchanged(t, d, d.Site, token(same))
		if _, err := exchange(t.Context(), d.Service, d.Site, token(same,
			func(_, claims object) { claims["iat"] = claims["iat"].(float64) - 1 })); !errors.Is(err, apierr.TokenReplayed) {
			t.Error(err)
		}
		t.Run("but not in another tenant", func(t *testing.T) {
			s := d.NewSite(t)
			header, claims := selfMade(d, s)
			exchanged(t, d, s, signForgedJWT(t, with(header, "stt", "assertion"), with(claims, "jti", "one"), s.Secret))
		})
	})
	t.Run("the demand for a second factor spends it", func(t *testing.T) {
		one := token(func(_, claims object) { claims["require_mfa"] = []string{mfaapi.SMS} })
		if _, err := exchange(t.Context(), d.Service, d.Site, one); apierr.From(err).Fields["action"] != mfaapi.Enroll {
			t.Error(err)
		}
		if _, err := exchange(t.Context(), d.Service, d.Site, one); !errors.Is(err, apierr.TokenReplayed) {
			t.Error(err)
		}
	})
	t.Run("its trace is purged once it has expired", func(t *testing.T) {
		n := spent(t, d)
		d.Clock.Move(2*time.Minute + time.Second)
		exchanged(t, d, d.Site, token())
		if _, err := d.Service.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := spent(t, d); n < 3 || left != 1 {
			t.Errorf("of %d traces %d are left, want the last", n+1, left)
		}
	})
}

// FuzzAssertion checks that an assertion never causes a panic, is refused with an error of the
// catalogue, and yields no tokens when another key has signed it.
func FuzzAssertion(f *testing.F) {
	d := oauthtest.Open(f)
	header, claims := selfMade(d, d.Site)
	for _, seed := range []object{
		claims, with(claims, "iat", 1e300), with(claims, "exp", -1e300), with(claims, "aud", []string{d.Key}), with(claims, "org", "x"),
		with(claims, "require_mfa", []any{"sms", 1, nil}), with(claims, "amr", []any{[]any{}, "mfa"}), with(claims, "sub", []any{}),
	} {
		h, err := json.Marshal(header)
		if err != nil {
			f.Fatal(err)
		}
		c, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(h, c)
	}
	f.Fuzz(func(t *testing.T, header, claims []byte) {
		_, err := exchange(t.Context(), d.Service, d.Site, secure.Secret(signCompactJWT(header, claims, []byte(d.Secret.Reveal()))))
		if apierr.From(err) == apierr.Internal {
			t.Fatalf("%s.%s: %v", header, claims, err)
		}
		if _, err := exchange(t.Context(), d.Service, d.Site, secure.Secret(signCompactJWT(header, claims, []byte("another secret")))); err == nil {
			t.Fatalf("%s.%s gives tokens under a secret of nobody", header, claims)
		}
	})
}

// A kid that is no text names no key: the claim iss does not stand in for it.
func TestAKidThatIsNoTextIsRefused(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	for _, c := range []struct {
		header object
		good   bool
	}{
		{object{}, true}, {object{"kid": d.Key}, true}, {object{"kid": 7}, false}, {object{"kid": nil}, false},
		{object{"kid": []string{d.Key}}, false}, {object{"kid": object{"id": d.Key}}, false}, {object{"kid": ""}, false},
	} {
		token := signForgedJWT(t, with(c.header, "alg", "HS256"), object{"iss": d.Key}, d.Secret)
		_, err := d.Service.VerifyJWT(t.Context(), oauthapi.VerifyJWT{Token: token})
		if c.good && err != nil || !c.good && !errors.Is(err, apierr.TokenSignature) {
			t.Errorf("the header %v is answered %v", c.header, err)
		}
	}
}
