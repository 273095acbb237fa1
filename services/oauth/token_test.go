package oauth_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/store"
)

type object = map[string]any

// signCompactJWT signs a JWT with HS256 by the standard library alone.
func signCompactJWT(header, claims []byte, secret []byte) string {
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64(header) + "." + b64(claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + b64(mac.Sum(nil))
}

func signForgedJWT(t testing.TB, header, claims object, secret secure.Secret) secure.Secret {
	t.Helper()
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return secure.Secret(signCompactJWT(h, c, []byte(secret.Reveal())))
}

// decodeJWT decodes the header and the claims of a JWT.
func decodeJWT(t testing.TB, token secure.Secret) (header, claims object) {
	t.Helper()
	parts := strings.Split(token.Reveal(), ".")
	for i, into := range []*object{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}

func with(o object, name string, value any) object {
	changed := maps.Clone(o)
	changed[name] = value
	if value == nil {
		delete(changed, name)
	}
	return changed
}

func validation(tenant, application id.ID, token secure.Secret) oauthapi.ValidateToken {
	return oauthapi.ValidateToken{Tenant: tenant, Application: application,
		PresentedToken: oauthapi.PresentedToken{Token: token}}
}

func validate(t testing.TB, d *oauthtest.Deployment, s oauthtest.Site, token secure.Secret, want error) {
	t.Helper()
	if _, err := d.Service.Validate(t.Context(), validation(s.Tenant, s.Application, token)); !errors.Is(err, want) {
		t.Errorf("validation returns %v, want %v", err, want)
	}
}

func TestTokenContents(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	d.Clock.Move(789 * time.Millisecond)
	issued := d.LogIn(t, d.Site)
	now := float64(d.Clock.Now().Unix())
	application, account := oauthtest.Base.To("applications", d.Application), oauthtest.Base.To("accounts", d.Account)

	for kind, token := range map[string]secure.Secret{"access": issued.Access, "refresh": issued.Refresh} {
		header, claims := decodeJWT(t, token)
		if header["kid"] != d.Key || header["alg"] != "HS256" || header["stt"] != kind || len(header) != 3 {
			t.Errorf("the header of the %s token is %v", kind, header)
		}
		if claims["iss"] != application || claims["sub"] != account || claims["iat"] != now {
			t.Errorf("the claims of the %s token are %v", kind, claims)
		}
		parts := strings.Split(token.Reveal(), ".")
		h, _ := base64.RawURLEncoding.DecodeString(parts[0])
		c, _ := base64.RawURLEncoding.DecodeString(parts[1])
		if want := signCompactJWT(h, c, []byte(d.Secret.Reveal())); token.Reveal() != want {
			t.Errorf("the %s token is %s, want %s", kind, token.Reveal(), want)
		}
	}
	_, access := decodeJWT(t, issued.Access)
	_, refresh := decodeJWT(t, issued.Refresh)
	if access["exp"] != now+3600 || refresh["exp"] != now+60*24*3600 || access["rti"] != refresh["jti"] || refresh["rti"] != nil ||
		len(access) != 6 || len(refresh) != 5 {
		t.Errorf("the claims are %v and %v", access, refresh)
	}
	if access["jti"] != issued.AccessTokenID.String() || issued.ExpiresIn != time.Hour {
		t.Errorf("issued is %+v", issued)
	}
}

// The worked example of docs/interface/oauth.md#token-contents: its token
// verifies with its secret, although this service orders the members otherwise.
func TestWorkedToken(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	_, err := d.Service.EnsureKey(t.Context(), oauthapi.EnsureKey{Tenant: d.Tenant, Account: d.Administrator, ID: "MyKeyId",
		Secret: "MyKeySecret"})
	if err != nil {
		t.Fatal(err)
	}
	header := []byte(`{"kid":"MyKeyId","stt":"access","alg":"HS256"}`)
	claims := []byte(`{"jti":"5eXnHmJ9m3kUw2Qp7sVabc","iat":1708000000,"iss":"https://localhost/v1/applications/4Xy7",` +
		`"sub":"https://localhost/v1/accounts/8Ab9","exp":1708003600,"rti":"3rTkLm8Qw2XyZ0aBcDeFgH"}`)
	token := signCompactJWT(header, claims, []byte("MyKeySecret"))
	if !strings.HasSuffix(token, ".Dl9u8ascJfD-LxEG8DsPotQ9nNE_Snehde9b0adbvDY") {
		t.Fatalf("the token is %s", token)
	}
	validate(t, d, d.Site, secure.Secret(token), apierr.TokenOtherApplication) // past the signature
	validate(t, d, d.Site, secure.Secret(token[:len(token)-3]+"abc"), apierr.TokenSignature)
}

func TestMembersOfATokenMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	_, claims := decodeJWT(t, d.LogIn(t, d.Site).Access)
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	validate(t, d, d.Site, secure.Secret(signCompactJWT([]byte(`{"stt":"access","kid":"`+d.Key+`","alg":"HS256"}`), body,
		[]byte(d.Secret.Reveal()))), nil)
}

// The errors of docs/interface/errors.md#failed-validation in their order: each case breaks what comes after
// it too, wherever one test can.
func TestOrderOfValidation(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	other := d.NewApplication(d.Tenant, d.Directory)
	fresh := func() (secure.Secret, object, object) {
		token := d.LogIn(t, d.Site).Access
		header, claims := decodeJWT(t, token)
		return token, header, claims
	}
	deleted := func(token secure.Secret) secure.Secret {
		t.Helper()
		if _, err := d.DB.Exec(t.Context(), `DELETE FROM access_tokens WHERE tenant_id = $1`, d.Tenant); err != nil {
			t.Fatal(err)
		}
		return token
	}
	disable := func(t *testing.T, what ...id.ID) {
		for _, resource := range what {
			d.SetStatus(d.Tenant, resource, directoryapi.Disabled)
			t.Cleanup(func() { d.SetStatus(d.Tenant, resource, directoryapi.Enabled) })
		}
	}
	t.Run("good", func(t *testing.T) {
		token, _, _ := fresh()
		validate(t, d, d.Site, token, nil)
	})
	t.Run("10017 before 10014", func(t *testing.T) {
		_, header, claims := fresh()
		validate(t, d, d.Site, signForgedJWT(t, header, with(claims, "iss", "x"), "wrong"), apierr.TokenSignature)
	})
	t.Run("10014 before 10012", func(t *testing.T) {
		_, header, claims := fresh()
		token := signForgedJWT(t, header, with(claims, "iat", claims["iat"].(float64)+3600), d.Secret)
		if _, err := d.Service.Validate(t.Context(), validation(d.Tenant, other, token)); !errors.Is(err, apierr.TokenOtherApplication) {
			t.Error(err)
		}
	})
	t.Run("10012 before 10011", func(t *testing.T) {
		_, header, claims := fresh()
		iat := claims["iat"].(float64)
		validate(t, d, d.Site, signForgedJWT(t, header, with(with(claims, "iat", iat+61), "exp", iat-1), d.Secret), apierr.TokenFromFuture)
		validate(t, d, d.Site, signForgedJWT(t, header, with(claims, "iat", iat+60), d.Secret), nil)
	})
	t.Run("10011 before 10013", func(t *testing.T) {
		token, _, _ := fresh()
		d.Clock.Move(time.Hour - time.Millisecond)
		validate(t, d, d.Site, token, nil)
		deleted(token)
		d.Clock.Move(time.Millisecond)
		validate(t, d, d.Site, token, apierr.TokenExpired)
	})
	t.Run("10013 before 10010", func(t *testing.T) {
		token, _, _ := fresh()
		disable(t, d.Account)
		validate(t, d, d.Site, deleted(token), apierr.TokenRevoked)
	})
	t.Run("10010 before 10015", func(t *testing.T) {
		token, _, _ := fresh()
		disable(t, d.Account, d.Application, d.Directory)
		validate(t, d, d.Site, token, apierr.TokenAccountDisabled)
	})
	t.Run("10015 before 10018", func(t *testing.T) {
		token, _, _ := fresh()
		disable(t, d.Application, d.Directory)
		validate(t, d, d.Site, token, apierr.TokenApplicationDisabled)
	})
	t.Run("10018", func(t *testing.T) {
		token, _, _ := fresh()
		disable(t, d.Directory)
		validate(t, d, d.Site, token, apierr.TokenStoreDisabled)
	})
	t.Run("10016", func(t *testing.T) {
		token, _, _ := fresh()
		d.Map(d.Tenant, d.Application)
		t.Cleanup(func() { d.Map(d.Tenant, d.Application, d.Directory) })
		validate(t, d, d.Site, token, apierr.TokenAccountUnreachable)
	})
	t.Run("an account that was deleted", func(t *testing.T) {
		token, _, _ := fresh()
		d.Delete(d.Tenant, d.Account)
		validate(t, d, d.Site, token, apierr.TokenAccountDisabled)
	})
	t.Run("an application that was deleted", func(t *testing.T) {
		d.Delete(d.Tenant, d.Application)
		validate(t, d, d.Site, "no token", apierr.NotFound)
	})
	t.Run("a peer that is away", func(t *testing.T) {
		s := d.NewSite(t)
		token := d.LogIn(t, s).Access
		d.Fail(apierr.Unavailable)
		defer d.Fail(nil)
		validate(t, d, s, token, apierr.Unavailable)
	})
	t.Run("a database that is away", func(t *testing.T) {
		s := d.NewSite(t)
		token := d.LogIn(t, s).Access
		d.DB.Close()
		validate(t, d, s, token, apierr.Unavailable)
	})
}

func TestTokensOfAKeyThatMayNotBeUsed(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	key, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, d.Administrator, oauth.NewAPIKey{})
	if err != nil {
		t.Fatal(err)
	}
	second := d.Site
	second.Key, second.Secret = key.ID, key.Secret
	issued := d.LogIn(t, second)
	validate(t, d, d.Site, issued.Access, nil)
	status := func(status string) {
		t.Helper()
		if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, key.ID, oauth.APIKeyChange{Status: field.Some(status)}); err != nil {
			t.Fatal(err)
		}
	}
	signed := second.Request("grant_type", "password", "username", oauthtest.Login, "password", oauthtest.Password.Reveal())

	status(directoryapi.Disabled)
	validate(t, d, d.Site, issued.Access, apierr.TokenSignature)
	if _, err := d.Service.Token(t.Context(), signed); !errors.Is(err, apierr.Unauthorized) {
		t.Errorf("a disabled key signs: %v", err)
	}
	if _, err := d.Service.LiveToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID); err != nil {
		t.Errorf("the resource is gone: %v", err)
	}
	status(directoryapi.Enabled)
	validate(t, d, d.Site, issued.Access, nil)

	if err := d.Service.DeleteAPIKey(t.Context(), d.Tenant, key.ID); err != nil {
		t.Fatal(err)
	}
	validate(t, d, d.Site, issued.Access, apierr.TokenSignature)
	if _, err := d.Service.Token(t.Context(), signed); !errors.Is(err, apierr.Unauthorized) {
		t.Errorf("a deleted key signs: %v", err)
	}
	if _, err := d.Service.LiveToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID); !errors.Is(err, apierr.NotFound) {
		t.Errorf("the resource of a token that nothing can verify: %v", err)
	}
}

// An API key is not read again while nothing changes. A key that another process disables is refused as soon
// as PostgreSQL has notified this one, and at once for the client that has disabled it.
func TestAKeyThatAnotherProcessDisablesSignsNothing(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	replica, token := d.Replica(t), d.LogIn(t, d.Site).Access
	ended := caller.Into(t.Context(), caller.Caller{Tenant: d.Tenant, Ended: caller.IDs("").With(store.APIKeyResource(d.Key))})
	silently := func(status string) {
		t.Helper()
		if _, err := d.DB.Exec(t.Context(), `UPDATE api_keys SET status = $3 WHERE tenant_id = $1 AND id = $2`, d.Tenant, d.Key, status); err != nil {
			t.Fatal(err)
		}
	}
	worktest.Await(t, "the key not to be read", func() bool {
		_, _ = replica.Validate(t.Context(), validation(d.Tenant, d.Application, token))
		silently(directoryapi.Disabled)
		_, err := replica.Validate(t.Context(), validation(d.Tenant, d.Application, token))
		if _, err := replica.Validate(ended, validation(d.Tenant, d.Application, token)); !errors.Is(err, apierr.TokenSignature) {
			t.Fatalf("for the client that has disabled the key: %v", err)
		}
		silently(directoryapi.Enabled)
		if _, err := replica.Validate(ended, validation(d.Tenant, d.Application, token)); err != nil {
			t.Fatalf("for the client that has enabled the key: %v", err)
		}
		return err == nil
	})
	reported := worktest.Changes(t, replica.AccessChanges)
	ctx, endings := caller.CollectEndings(caller.Into(t.Context(), caller.Caller{Tenant: d.Tenant}))
	change := func(in oauth.APIKeyChange) {
		t.Helper()
		if _, err := d.Service.UpdateAPIKey(ctx, d.Tenant, d.Key, in); err != nil {
			t.Fatal(err)
		}
	}
	change(oauth.APIKeyChange{NewAPIKey: oauth.NewAPIKey{Name: field.Some("x")}, Status: field.Some(directoryapi.Enabled)})
	if header := endings.Header(); header != "" {
		t.Errorf("a save of a key with the same status names %q", header)
	}
	change(oauth.APIKeyChange{Status: field.Some(directoryapi.Disabled)})
	if named := caller.ParseEnded([]byte(endings.Header()))[d.Tenant]; named != caller.From(ended).Ended {
		t.Errorf("the end of a key names %x", named)
	}
	worktest.Await(t, "the other process to refuse the key", func() bool {
		_, err := replica.Validate(t.Context(), validation(d.Tenant, d.Application, token))
		return errors.Is(err, apierr.TokenSignature)
	})
	worktest.Await(t, "the report of the change", func() bool { changed, _ := reported(store.APIKeyResource(d.Key)); return changed })
}

// A token that one process revokes is refused by every other at once, also under load.
func TestATokenEndsInAllProcessesAtOnce(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	d.Store = store.New(d.DB, d.Clock.Now)
	other := d.WithMasterKey(t, d.Master)
	busy := d.LogIn(t, d.Site).Access
	ended, end := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for ended.Err() == nil {
				if _, err := other.Validate(t.Context(), validation(d.Tenant, d.Application, busy)); err != nil {
					t.Errorf("the token that nobody ended: %v", err)
				}
			}
		})
	}
	for range 50 {
		issued := d.LogIn(t, d.Site)
		if _, err := other.Validate(t.Context(), validation(d.Tenant, d.Application, issued.Access)); err != nil {
			t.Errorf("a token that was just issued: %v", err)
		}
		if err := d.Service.DeleteToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID); err != nil {
			t.Error(err)
		}
		if _, err := other.Validate(t.Context(), validation(d.Tenant, d.Application, issued.Access)); !errors.Is(err, apierr.TokenRevoked) {
			t.Errorf("a token that was just ended: %v", err)
		}
		if _, err := other.LiveToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID); !errors.Is(err, apierr.NotFound) {
			t.Errorf("the resource of a token that was just ended: %v", err)
		}
	}
	end()
	clients.Wait()
}

// A token that was validated is not read again for the next validation, nor for its resource. A
// deletion takes effect at once in the process that deletes it, and in another one when that is
// notified.
func TestTheTokenOfAValidationIsNotReadAgain(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	replica := d.Replica(t)
	issued := d.LogIn(t, d.Site)
	ended := caller.Into(t.Context(), caller.Caller{Ended: caller.IDs("").With(issued.AccessTokenID)})
	live := func() (store.TokenWithJWT, error) {
		return replica.LiveToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID)
	}
	worktest.Await(t, "the copy of the validation to be returned", func() bool {
		validated, err := replica.Validate(t.Context(), validation(d.Tenant, d.Application, issued.Access))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.DB.Exec(t.Context(), `UPDATE access_tokens SET issued_at = issued_at - interval '1 s' WHERE tenant_id = $1 AND id = $2`,
			d.Tenant, issued.AccessTokenID); err != nil {
			t.Fatal(err)
		}
		got, err := live()
		return err == nil && got.IssuedAt.Equal(validated.IssuedAt)
	})
	worktest.Await(t, "a validation not to read the token", func() bool {
		if _, err := d.DB.Exec(t.Context(), `UPDATE access_tokens SET expires_at = expires_at + interval '1 s' WHERE tenant_id = $1 AND id = $2`,
			d.Tenant, issued.AccessTokenID); err != nil {
			t.Fatal(err)
		}
		_, err := replica.Validate(t.Context(), validation(d.Tenant, d.Application, issued.Access))
		_, later := replica.Validate(ended, validation(d.Tenant, d.Application, issued.Access))
		if !errors.Is(later, apierr.TokenSignature) {
			t.Fatalf("after its end the token is not read: %v", later)
		}
		if _, err := d.DB.Exec(t.Context(), `UPDATE access_tokens SET expires_at = expires_at - interval '1 s' WHERE tenant_id = $1 AND id = $2`,
			d.Tenant, issued.AccessTokenID); err != nil {
			t.Fatal(err)
		}
		if _, err := replica.Validate(ended, validation(d.Tenant, d.Application, issued.Access)); err != nil {
			t.Fatal(err)
		}
		return err == nil
	})
	if err := d.Service.DeleteToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID); err != nil {
		t.Fatal(err)
	}
	worktest.Await(t, "the deletion by another process to be seen", func() bool {
		_, err := live()
		return errors.Is(err, apierr.NotFound)
	})
	for name, end := range map[string]func() error{
		"deleted": func() error { return replica.DeleteToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID) },
		"revoked": func() error {
			return replica.Revoke(t.Context(), oauth.Revocation{Tenant: d.Tenant, Application: d.Application,
				Form: oauthtest.Form("token", issued.Access.Reveal())})
		},
	} {
		issued = d.LogIn(t, d.Site)
		if _, err := replica.Validate(t.Context(), validation(d.Tenant, d.Application, issued.Access)); err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := live(); !errors.Is(err, apierr.NotFound) {
			t.Errorf("a token that this process has %s: %v", name, err)
		}
	}
}

func TestProcessesAreNotifiedOfDeletedTokens(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	notified := make(chan string, 10)
	d.DB.OnNotify("oauth.tokens", func(payload string) { notified <- payload })
	worktest.Start(t, d.DB.Listen)
	worktest.Await(t, "a deletion to be reported", func() bool {
		issued := d.LogIn(t, d.Site)
		if err := d.Service.DeleteToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID); err != nil {
			t.Fatal(err)
		}
		select {
		case payload := <-notified:
			return strings.HasPrefix(payload, uuidOf(d.Tenant)+" ")
		case <-time.After(100 * time.Millisecond): // it does not listen yet
			return false
		}
	})
}

// uuidOf returns an id as PostgreSQL writes it.
func uuidOf(v id.ID) string {
	h := hex.EncodeToString(v[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// The key of client credentials that another process disables is refused there at once, and here as soon as
// PostgreSQL has notified this one.
func TestClientCredentialsOfADisabledKey(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	replica := d.Replica(t)
	key, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, d.Account, oauth.NewAPIKey{})
	if err != nil {
		t.Fatal(err)
	}
	grant := func(s *oauth.Service) error {
		_, err := s.Token(t.Context(), d.Request("grant_type", "client_credentials", "client_id", key.ID, "client_secret",
			key.Secret.Reveal()))
		return err
	}
	for range 2 { // the second time the key is kept
		if err := grant(replica); err != nil {
			t.Fatalf("the grant with an enabled key returned %v", err)
		}
	}
	change := oauth.APIKeyChange{Status: field.Some(directoryapi.Disabled)}
	if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, key.ID, change); err != nil {
		t.Fatal(err)
	}
	if err := grant(d.Service); !errors.Is(err, apierr.ClientCredentials) {
		t.Errorf("the grant with a disabled key returned %v", err)
	}
	worktest.Await(t, "the other process to refuse the key", func() bool {
		return errors.Is(grant(replica), apierr.ClientCredentials)
	})
}

// The two tokens of a login are stored both, or not at all.
func TestThePairOfALoginIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	first := d.LogIn(t, d.Site)
	access, err := d.Store.Token(t.Context(), store.Access, d.Tenant, first.AccessTokenID)
	if err != nil {
		t.Fatal(err)
	}
	refresh, err := d.Store.Token(t.Context(), store.Refresh, d.Tenant, access.RefreshID)
	if err != nil {
		t.Fatal(err)
	}
	insert := func() error {
		return d.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.InsertTokenPair(t.Context(), access, refresh) })
	}
	access.ID, access.StartedAt = id.New(d.Clock.Now()), d.Clock.Now() // with a refresh token that is there already
	if err := insert(); !errors.Is(err, apierr.Exists) {
		t.Errorf("a second refresh token of the same id: %v", err)
	}
	if _, err := d.Store.Token(t.Context(), store.Access, d.Tenant, access.ID); !errors.Is(err, apierr.NotFound) {
		t.Errorf("the access token of a pair that failed: %v", err)
	}
	access.ID, refresh.ID = first.AccessTokenID, id.New(d.Clock.Now())
	if err := insert(); !errors.Is(err, apierr.Exists) {
		t.Errorf("a second access token of the same id: %v", err)
	}
	if _, err := d.Store.Token(t.Context(), store.Refresh, d.Tenant, refresh.ID); !errors.Is(err, apierr.NotFound) {
		t.Errorf("the refresh token of a pair that failed: %v", err)
	}
}

func TestValidationAsksOnePeerOnce(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	token := d.LogIn(t, d.Site).Access
	before := d.AccessChecks()
	validate(t, d, d.Site, token, nil)
	if asked := d.AccessChecks() - before; asked != 1 {
		t.Errorf("the application service was asked %d times", asked)
	}
}

// BenchmarkValidate compares validation with its bound: one SELECT by primary
// key on the same database.
func BenchmarkValidate(b *testing.B) {
	d := oauthtest.Open(b)
	issued := d.LogIn(b, d.Site)
	b.Run("select", func(b *testing.B) {
		for b.Loop() {
			if _, err := d.Store.Token(b.Context(), store.Access, d.Tenant, issued.AccessTokenID); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "selects/s")
	})
	b.Run("validate", func(b *testing.B) {
		before := d.AccessChecks()
		for b.Loop() {
			if _, err := d.Service.Validate(b.Context(), validation(d.Tenant, d.Application, issued.Access)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "validations/s")
		b.ReportMetric(float64(d.AccessChecks()-before)/float64(b.N), "accesses/op")
	})
}
