package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

func passwordGrant(login, password string) url.Values {
	return url.Values{"grant_type": {"password"}, "username": {login}, "password": {password}}
}

// validate is the request that asks whether an access token of the application
// is good.
func validate(application e2e.Object, token string) e2e.Request {
	return get(application.Href() + "/authTokens/" + token)
}

// oauthRefused holds a refused grant to the error body with its extra field.
func oauthRefused(t *testing.T, status, code int, oauthError string, request e2e.Request) {
	t.Helper()
	body := client.Refused(t, status, code, request)
	if body.Text("error") != oauthError {
		t.Errorf("error is %q, want %q: %v", body.Text("error"), oauthError, body)
	}
}

// changeUnusedBits changes the bits of a token's last character that a lenient reader
// of Base64 leaves out: 43 characters hold two more than 32 bytes do.
func changeUnusedBits(token string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(token) - 1
	return token[:last] + digits[strings.IndexByte(digits, token[last])+1:][:1]
}

func TestTokensFromGrantToRevocation(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	application := fixture.Application.Href()
	endpoint := application + "/oauth/token"
	token := client.Token(t, application, passwordGrant(account.Text("email"), e2e.Password))
	access, refresh := token.Text("access_token"), token.Text("refresh_token")

	t.Run("the token is signed with the caller's API key and says whose it is", func(t *testing.T) {
		header, claims := unpack(t, access, client.Key.Secret)
		if header.Text("alg") != "HS256" || header.Text("stt") != "access" || header.Text("kid") != client.Key.ID {
			t.Errorf("the header is %v", header)
		}
		if claims.Text("iss") != application || claims.Text("sub") != account.Href() {
			t.Errorf("the claims are %v", claims)
		}
		if life := claims.Number(t, "exp") - claims.Number(t, "iat"); life != 3600 || token.Number(t, "expires_in") != 3600 {
			t.Errorf("the token lives for %d s and expires in %v s, want 3600", life, token["expires_in"])
		}
		refreshHeader, refreshClaims := unpack(t, refresh, client.Key.Secret)
		if refreshHeader.Text("stt") != "refresh" || claims.Text("rti") != refreshClaims.Text("jti") {
			t.Errorf("the pair does not belong together: %v and %v", claims, refreshClaims)
		}
		if want := client.Key.BaseURL + "/accessTokens/" + claims.Text("jti"); token.Text("service_access_token_href") != want {
			t.Errorf("service_access_token_href is %q, want %q", token.Text("service_access_token_href"), want)
		}
	})
	t.Run("validation leads to the token's resource", func(t *testing.T) {
		answer := client.Want(t, http.StatusFound, validate(fixture.Application, access))
		if answer.Header.Get("Location") != token.Text("service_access_token_href") {
			t.Fatalf("the redirect leads to %q", answer.Header.Get("Location"))
		}
		resource := client.Get(t, answer.Header.Get("Location"))
		if resource.Text("jwt") != access || resource.Link(t, "account") != account.Href() || resource.Link(t, "application") != application {
			t.Errorf("the resource is %v", resource)
		}
		if signature := resource.Object("expandedJwt").Text("signature"); !strings.HasSuffix(access, "."+signature) {
			t.Errorf("the expanded token has the signature %q", signature)
		}
		expanded := client.Get(t, resource.Href()+"?expand=account")
		if expanded.Object("account").Text("email") != account.Text("email") {
			t.Errorf("the expanded account is %v", expanded["account"])
		}
	})
	t.Run("a refresh returns a new access token and the same refresh token", func(t *testing.T) {
		next := client.Token(t, application, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
		if next.Text("refresh_token") != refresh {
			t.Error("the refresh token has changed")
		}
		if next.Text("access_token") == access {
			t.Error("the access token has not changed")
		}
		client.Want(t, http.StatusFound, validate(fixture.Application, next.Text("access_token")))
		client.Want(t, http.StatusFound, validate(fixture.Application, access))
	})
	t.Run("a refresh token is no proof of a login", func(t *testing.T) {
		client.Refused(t, 400, 10017, validate(fixture.Application, refresh))
	})
	t.Run("what is not an access token of this application is refused", func(t *testing.T) {
		parts := strings.Split(access, ".")
		none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","stt":"access","kid":"` + client.Key.ID + `"}`))
		for name, forged := range map[string]string{
			"no JWT":               "abc",
			"a changed signature":  parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])),
			"another last digit":   changeUnusedBits(access),
			"no signature":         parts[0] + "." + parts[1] + ".",
			"alg none":             none + "." + parts[1] + ".",
			"alg none, but signed": none + "." + parts[1] + "." + parts[2],
		} {
			t.Run(name, func(t *testing.T) { client.Refused(t, 400, 10017, validate(fixture.Application, forged)) })
		}
		t.Run("one of another application", func(t *testing.T) {
			other := client.NewFixture(t)
			client.Refused(t, 400, 10014, validate(other.Application, access))
			oauthRefused(t, 400, 10014, "invalid_grant", post(other.Application.Href()+"/oauth/token",
				url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}))
		})
		t.Run("an access token to refresh with", func(t *testing.T) {
			oauthRefused(t, 400, 10017, "invalid_grant", post(endpoint, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {access}}))
		})
	})
	t.Run("grants that fail", func(t *testing.T) {
		oauthRefused(t, 400, 7100, "invalid_grant", post(endpoint, passwordGrant(account.Text("email"), "Wrong1234")))
		oauthRefused(t, 400, 7104, "invalid_grant", post(endpoint, passwordGrant("nobody@example.test", e2e.Password)))
		oauthRefused(t, 400, 2003, "invalid_request", post(endpoint, url.Values{"grant_type": {"guess"}}))
		for name, request := range map[string]e2e.Request{
			"no grant type": post(endpoint, url.Values{"username": {"jo"}}),
			"no password":   post(endpoint, url.Values{"grant_type": {"password"}, "username": {"jo"}}),
			"nothing":       post(endpoint, url.Values{}),
			"JSON":          post(endpoint, e2e.Object{"grant_type": "password"}),
		} {
			t.Run(name, func(t *testing.T) {
				body, err := client.Want(t, http.StatusBadRequest, request).Object()
				if err != nil {
					t.Fatal(err)
				}
				if body.Text("error") != "invalid_request" {
					t.Errorf("the error of the token endpoint is %q", body.Text("error"))
				}
			})
		}
	})
	t.Run("deleting the access token spares its refresh token", func(t *testing.T) {
		client.Delete(t, token.Text("service_access_token_href"))
		client.Refused(t, 404, 10013, validate(fixture.Application, access))
		client.NotFound(t, token.Text("service_access_token_href"))
		access = client.Token(t, application, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}).Text("access_token")
	})
	t.Run("revoking one of a pair ends both, and no other login", func(t *testing.T) {
		elsewhere := client.Token(t, application, passwordGrant(account.Text("email"), e2e.Password))
		revoked := client.Want(t, http.StatusOK, post(application+"/oauth/revoke", url.Values{"token": {access}, "token_type_hint": {"access_token"}}))
		if len(revoked.Body) != 0 {
			t.Errorf("the revocation is answered with a body: %s", revoked)
		}
		client.Refused(t, 404, 10013, validate(fixture.Application, access))
		oauthRefused(t, 400, 10013, "invalid_grant", post(endpoint, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}))
		client.Want(t, http.StatusFound, validate(fixture.Application, elsewhere.Text("access_token")))
	})
	t.Run("revoking what is unknown is no error", func(t *testing.T) {
		for _, text := range []string{access, "abc"} {
			client.Want(t, http.StatusOK, post(application+"/oauth/revoke", url.Values{"token": {text}, "token_type_hint": {"access_token"}}))
		}
	})
	t.Run("a refresh token can be revoked, which ends the access tokens made with it", func(t *testing.T) {
		login := client.Token(t, application, passwordGrant(account.Text("email"), e2e.Password))
		next := client.Token(t, application, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {login.Text("refresh_token")}})
		client.Want(t, http.StatusOK, post(application+"/oauth/revoke", url.Values{"token": {login.Text("refresh_token")}}))
		for _, gone := range []e2e.Object{login, next} {
			client.Refused(t, 404, 10013, validate(fixture.Application, gone.Text("access_token")))
		}
	})
}

func TestTokensOfWhoIsDisabledFailAtOnce(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	endpoint := fixture.Application.Href() + "/oauth/token"
	token := client.Token(t, fixture.Application.Href(), passwordGrant(account.Text("email"), e2e.Password))
	check := validate(fixture.Application, token.Text("access_token"))
	refresh := post(endpoint, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Text("refresh_token")}})
	client.Want(t, http.StatusFound, check)

	t.Run("the account", func(t *testing.T) {
		client.Update(t, account.Href(), e2e.Object{"status": "DISABLED"})
		client.Refused(t, 400, 10010, check)
		client.Refused(t, 400, 7101, e2e.Login(fixture.Application, account.Text("email"), e2e.Password))
		oauthRefused(t, 400, 7101, "invalid_grant", post(endpoint, passwordGrant(account.Text("email"), e2e.Password)))
		oauthRefused(t, 400, 10010, "invalid_grant", refresh)
		client.Update(t, account.Href(), e2e.Object{"status": "ENABLED"})
		client.Want(t, http.StatusOK, e2e.Login(fixture.Application, account.Text("email"), e2e.Password))
	})
	// Whether the tokens of a disabled account come back with it is left open;
	// what follows needs some that are good.
	token = client.Token(t, fixture.Application.Href(), passwordGrant(account.Text("email"), e2e.Password))
	check = validate(fixture.Application, token.Text("access_token"))

	t.Run("the application", func(t *testing.T) {
		client.Update(t, fixture.Application.Href(), e2e.Object{"status": "DISABLED"})
		client.Refused(t, 400, 10015, check)
		client.Refused(t, 400, 7104, e2e.Login(fixture.Application, account.Text("email"), e2e.Password))
		client.Update(t, fixture.Application.Href(), e2e.Object{"status": "ENABLED"})
		client.Want(t, http.StatusFound, check)
	})
	t.Run("the store", func(t *testing.T) {
		client.Update(t, fixture.Directory.Href(), e2e.Object{"status": "DISABLED"})
		client.Refused(t, 400, 10018, check)
		client.Update(t, fixture.Directory.Href(), e2e.Object{"status": "ENABLED"})
		client.Want(t, http.StatusFound, check)
	})
	t.Run("the deleted account", func(t *testing.T) {
		client.Delete(t, account.Href())
		answer := client.Call(t, check)
		if answer.Status == http.StatusFound {
			t.Errorf("a deleted account's token is good: %s", answer)
		}
	})
}

// A refresh asks again whether the account may act, at that moment.
func TestARefreshFailsAtOnce(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	application := fixture.Application.Href()
	href := func(to string) e2e.Object { return e2e.Object{"href": to} }
	token := client.Token(t, application, passwordGrant(account.Text("email"), e2e.Password))
	refresh := post(application+"/oauth/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Text("refresh_token")}})
	good := func(t *testing.T) {
		t.Helper()
		client.Want(t, http.StatusOK, refresh)
	}
	for _, c := range []struct {
		what string
		of   e2e.Object
		code int
	}{{"application", fixture.Application, 10015}, {"directory", fixture.Directory, 10018}} {
		t.Run("where the "+c.what+" is disabled", func(t *testing.T) {
			good(t)
			client.Update(t, c.of.Href(), e2e.Object{"status": "DISABLED"})
			oauthRefused(t, 400, c.code, "invalid_grant", refresh)
			client.Update(t, c.of.Href(), e2e.Object{"status": "ENABLED"})
			good(t)
		})
	}
	t.Run("where the store is not mapped any more", func(t *testing.T) {
		client.Delete(t, client.Get(t, application).Link(t, "defaultAccountStoreMapping"))
		oauthRefused(t, 400, 10016, "invalid_grant", refresh)
	})
	t.Run("where the organization is deleted", func(t *testing.T) {
		name := e2e.Unique("org")
		organization := client.Create(t, "/organizations", e2e.Object{"name": name, "nameKey": strings.ToLower(name)})
		client.Create(t, "/organizationAccountStoreMappings", e2e.Object{"organization": href(organization.Href()), "accountStore": href(fixture.Directory.Href())})
		client.Create(t, "/accountStoreMappings", e2e.Object{"application": href(application), "accountStore": href(organization.Href())})
		good(t)
		client.Delete(t, organization.Href())
		oauthRefused(t, 400, 10016, "invalid_grant", refresh)
	})
}

// unpack checks the token's signature with the secret, with nothing but the
// standard library, and returns header and claims.
func unpack(t *testing.T, token, secret string) (header, claims e2e.Object) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts", len(parts))
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if want := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)); parts[2] != want {
		t.Errorf("the signature is %q, want %q", parts[2], want)
	}
	for i, into := range []*e2e.Object{&header, &claims} {
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
