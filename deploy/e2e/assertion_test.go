package e2e_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// clientSignedAssertion is the assertion that an SDK for servers makes of an account it knows,
// with nothing but the standard library; changes are to its claims.
func clientSignedAssertion(t *testing.T, application, account e2e.Object, key e2e.Key, changes e2e.Object) url.Values {
	t.Helper()
	now := float64(time.Now().UnixMilli()) / 1000
	claims := e2e.Object{
		"iss": application.Href(), "sub": account.Href(), "aud": key.ID, "status": "AUTHENTICATED",
		"iat": now, "exp": int64(now) + 60, "jti": rand.Text(),
	}
	for name, value := range changes {
		claims[name] = value
	}
	token := e2e.SignJWT(e2e.Object{"typ": "JWT", "alg": "HS256", "kid": key.ID}, claims, key.Secret)
	return url.Values{"grant_type": {"service_token"}, "token": {token}}
}

func TestAnAssertionIsExchangedForTokens(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	endpoint := fixture.Application.Href() + "/oauth/token"

	one := clientSignedAssertion(t, fixture.Application, account, client.Key, nil)
	token := client.Token(t, fixture.Application.Href(), one)
	_, claims := unpack(t, token.Text("access_token"), client.Key.Secret)
	if claims.Text("sub") != account.Href() || token.Text("refresh_token") == "" || token.Text("service_access_token_href") == "" {
		t.Errorf("the exchange of the assertion answered %v with the claims %v", token, claims)
	}
	client.Want(t, http.StatusFound, validate(fixture.Application, token.Text("access_token")))

	t.Run("again until it expires, with or without jti", func(t *testing.T) {
		client.Token(t, fixture.Application.Href(), one)
		without := clientSignedAssertion(t, fixture.Application, account, client.Key, e2e.Object{"jti": nil})
		for range 2 {
			client.Token(t, fixture.Application.Href(), without)
		}
	})
	t.Run("not by the key of an end user", func(t *testing.T) {
		neighbour := client.Register(t, fixture.Application.Link(t, "accounts"))
		key := client.Create(t, neighbour.Link(t, "apiKeys"), nil)
		theirs := e2e.Key{ID: key.Text("id"), Secret: key.Text("secret")}
		for _, of := range []e2e.Object{account, neighbour} {
			oauthRefused(t, 400, 10017, "invalid_client", post(endpoint, clientSignedAssertion(t, fixture.Application, of, theirs, nil)))
		}
	})
	t.Run("not when it says something else", func(t *testing.T) {
		now := time.Now().Unix()
		for code, changes := range map[int]e2e.Object{
			10011: {"exp": now - 61}, 10012: {"iat": now + 600}, 10014: {"iss": fixture.Application.Href() + "x"}, 12002: {"status": "LOGOUT"},
			10010: {"sub": account.Href() + "x"},
		} {
			oauthRefused(t, 400, code, "invalid_client", post(endpoint, clientSignedAssertion(t, fixture.Application, account, client.Key, changes)))
		}
		oauthRefused(t, 400, 10017, "invalid_client", post(endpoint, url.Values{"grant_type": {"service_token"}, "token": {token.Text("access_token")}}))
	})
	t.Run("not for accounts that the application does not reach", func(t *testing.T) {
		stranger := client.Register(t, client.NewFixture(t).Application.Link(t, "accounts"))
		oauthRefused(t, 400, 10016, "invalid_client", post(endpoint, clientSignedAssertion(t, fixture.Application, stranger, client.Key, nil)))
	})
}

func TestTokensNameTheOrganizationOfTheirLogin(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	endpoint := fixture.Application.Href() + "/oauth/token"
	key := strings.ToLower(e2e.Unique("org"))
	organization := client.Create(t, "/organizations", e2e.Object{"name": key, "nameKey": key})
	client.Create(t, "/organizationAccountStoreMappings", e2e.Object{"organization": e2e.Object{"href": organization.Href()}, "accountStore": e2e.Object{"href": fixture.Directory.Href()}})
	client.Create(t, "/accountStoreMappings", e2e.Object{"application": e2e.Object{"href": fixture.Application.Href()}, "accountStore": e2e.Object{"href": organization.Href()}})

	login := passwordGrant(account.Text("email"), e2e.Password)
	login.Set("organizationNameKey", key)
	token := client.Token(t, fixture.Application.Href(), login)
	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Text("refresh_token")}}
	for _, text := range []string{token.Text("access_token"), token.Text("refresh_token"), client.Token(t, fixture.Application.Href(), refresh).Text("access_token")} {
		if _, claims := unpack(t, text, client.Key.Secret); claims.Text("org") != organization.Href() {
			t.Errorf("the claims are %v", claims)
		}
	}
	client.Want(t, http.StatusFound, validate(fixture.Application, token.Text("access_token")))
	client.Delete(t, organization.Href())
	client.Refused(t, 400, 10016, validate(fixture.Application, token.Text("access_token")))
	oauthRefused(t, 400, 10016, "invalid_grant", post(endpoint, refresh))
}

func TestALoginNeedsASecondFactor(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	endpoint := fixture.Application.Href() + "/oauth/token"
	client.Update(t, fixture.Application.Link(t, "webConfig"), e2e.Object{"mfa": e2e.Object{"required": true}})
	login := passwordGrant(account.Text("email"), e2e.Password)

	demand := func(action string) e2e.Object {
		t.Helper()
		body := client.Refused(t, 400, 400, post(endpoint, login))
		if body.Text("error") != "access_denied" || body.Text("action") != action || body.Text("state") == "" {
			t.Fatalf("the demand is %v", body)
		}
		return body
	}
	demand("factor_enroll")
	factor := client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator", "issuer": "Shop"})
	// Each code is good once, and those of the neighbouring half minutes are
	// accepted: that leaves one to verify the factor with and one to log in.
	earlier, now := totpCode(t, factor.Text("keyUri"), time.Now().Add(-25*time.Second)), totpCode(t, factor.Text("keyUri"), time.Now().Add(5*time.Second))
	if verified := client.Create(t, factor.Link(t, "challenges"), e2e.Object{"code": earlier}); verified.Text("status") != "SUCCESS" {
		t.Fatalf("the factor is not verified: %v", verified)
	}
	body := demand("factor_challenge")
	if shown := body.Object("factor"); shown.Text("type") != "google-authenticator" || shown.Text("hint") != "Shop" {
		t.Errorf("the factor is shown as %v", shown)
	}
	redeem := func(code string) url.Values {
		return url.Values{"grant_type": {"service_factor_challenge"}, "state": {body.Text("state")}, "code": {code}}
	}
	oauthRefused(t, 400, 13104, "invalid_grant", post(endpoint, redeem(wrongCode(now))))
	token := client.Token(t, fixture.Application.Href(), redeem(now))
	client.Want(t, http.StatusFound, validate(fixture.Application, token.Text("access_token")))
	oauthRefused(t, 400, 13112, "invalid_grant", post(endpoint, redeem(now)))
	t.Run("but a refresh does not", func(t *testing.T) {
		client.Token(t, fixture.Application.Href(), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Text("refresh_token")}})
	})
}

func TestASecretIsEncryptedForWhoAsks(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	key := client.Create(t, account.Link(t, "apiKeys"), nil)
	salt := make([]byte, 16)
	_, _ = rand.Read(salt)
	query := "encryptSecret=true&encryptionKeySize=256&encryptionKeyIterations=2048&encryptionKeySalt=" + base64.RawURLEncoding.EncodeToString(salt)
	secret, err := pbkdf2.Key(sha1.New, client.Key.Secret, salt, 2048, 32)
	if err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{
		key.Href() + "?", account.Link(t, "apiKeys") + "?", fixture.Application.Href() + "/apiKeys?id=" + key.Text("id") + "&",
		account.Href() + "?expand=apiKeys&", fixture.Application.Link(t, "accounts") + "?expand=apiKeys&",
	} {
		read := client.Get(t, address+query)
		if read["items"] != nil {
			read = read.Items(t)[0]
		}
		if read["apiKeys"] != nil {
			read = read.Object("apiKeys").Items(t)[0]
		}
		raw, err := base64.StdEncoding.DecodeString(read.Text("secret"))
		if err != nil || len(raw) < 2*aes.BlockSize {
			t.Fatalf("the secret is %q: %v", read.Text("secret"), err)
		}
		text := raw[aes.BlockSize:]
		cipher.NewCBCDecrypter(block, raw[:aes.BlockSize]).CryptBlocks(text, text)
		if got := string(text[:len(text)-int(text[len(text)-1])]); got != key.Text("secret") {
			t.Errorf("%s decrypts to another secret", address)
		}
	}
	client.Refused(t, http.StatusBadRequest, 2101, e2e.Request{
		Method: http.MethodGet, URL: account.Href() + "?expand=apiKeys&encryptSecret=true",
	})
}
