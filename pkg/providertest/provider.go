// Package providertest has a fake OAuth 2.0 and OpenID Connect provider (IdP) for tests, in the process
// of the test or in a process of its own. Its login page has one button for each user.
package providertest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Client id and secret of the client that may log in, and the id of another application at the
// provider, whose tokens are not for the first (OtherClientToken).
const (
	ClientID      = "client-1"
	ClientSecret  = "a secret of the client"
	OtherClientID = "client-2"
)

// Provider keeps users, codes and tokens in memory.
type Provider struct {
	// URL is the address of the provider, and the issuer of its id tokens.
	URL string
	// Certificate is the certificate of its authority in PEM, where Start serves it.
	Certificate string
	// Change, if it is set, changes the claims of an id token before it is signed.
	Change func(claims jwt.MapClaims)

	key *rsa.PrivateKey

	mu     sync.Mutex
	users  map[string]map[string]any // by their sub or id
	order  []string
	grants map[string]grant // by code
	tokens map[string]token
	asked  []string // paths in their order
}

type grant struct{ user, redirect, challenge, nonce, scope string }

// token is what the provider knows of an access token: its user, and the client it was issued to.
type token struct{ user, client string }

// New makes a provider without users.
func New() *Provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return &Provider{key: key, users: map[string]map[string]any{}, grants: map[string]grant{},
		tokens: map[string]token{}}
}

// Start serves a provider over TLS until the test ends, and returns it with the
// certificate of its authority in PEM.
func Start(t testing.TB) (p *Provider, authority string) {
	t.Helper()
	p = New()
	server := httptest.NewTLSServer(p)
	t.Cleanup(server.Close)
	p.URL, p.Certificate = server.URL, Authority(server)
	return p, p.Certificate
}

// Authority is the certificate of a test server in PEM.
func Authority(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// AddUser adds a user with the members of its user object, and returns an access
// token of the user.
func (p *Provider) AddUser(id string, object map[string]any) (accessToken string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.users[id]; !known {
		p.order = append(p.order, id)
	}
	p.users[id] = object
	return p.token(id, ClientID)
}

// OtherClientToken returns an access token of a user that was issued to another client.
func (p *Provider) OtherClientToken(user string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token(user, OtherClientID)
}

func (p *Provider) token(user, client string) string {
	text := rand.Text()
	p.tokens[text] = token{user, client}
	return text
}

// Code returns an authorization code of a user.
func (p *Provider) Code(user, redirect, nonce string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code(grant{user: user, redirect: redirect, nonce: nonce, scope: "openid"})
}

func (p *Provider) code(g grant) string {
	code := rand.Text()
	p.grants[code] = g
	return code
}

// Asked returns the paths that were asked for.
func (p *Provider) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.URL.Path)
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		w.Header().Set("Cache-Control", "max-age=300")
		answer(w, http.StatusOK, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"userinfo_endpoint": p.URL + "/userinfo", "jwks_uri": p.URL + "/jwks",
			"id_token_signing_alg_values_supported": []string{"RS256"},
			"code_challenge_methods_supported":      []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
			"introspection_endpoint":                p.URL + "/introspect",
		})
	case "/jwks":
		answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": p.keyID(),
			"n": base64.RawURLEncoding.EncodeToString(p.key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.key.E)).Bytes()),
		}}})
	case "/authorize":
		p.authorize(w, r)
	case "/token":
		p.exchange(w, r)
	case "/tokeninfo":
		p.tokenInfo(w, r)
	case "/introspect", "/introspectToken":
		p.introspect(w, r)
	case "/debug_token":
		p.debugToken(w, r)
	case "/applications/" + ClientID + "/token":
		p.checkToken(w, r)
	case "/userinfo", "/user", "/me":
		p.userInfo(w, r)
	case "/user/emails":
		p.emails(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (p *Provider) keyID() string {
	sum := sha256.Sum256(p.key.N.Bytes())
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// authorize shows the login page, or redirects the browser back, logged in as the user of the
// parameter user.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	redirect, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || !redirect.IsAbs() || query.Get("client_id") != ClientID || query.Get("response_type") != "code" {
		http.Error(w, "client_id, redirect_uri or response_type is wrong", http.StatusBadRequest)
		return
	}
	user, chosen := query.Get("user"), query.Has("user")
	if !chosen {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, `<!doctype html><title>Stand-in provider</title><h1>Who are you?</h1>`)
		for _, id := range append(slices.Clone(p.order), "") {
			query.Set("user", id)
			label := "Log in as " + id
			if id == "" {
				label = "Refuse"
			}
			address := html.EscapeString("/authorize?" + query.Encode())
			_, _ = fmt.Fprintf(w, `<p><a href="%s">%s</a></p>`, address, html.EscapeString(label))
		}
		return
	}
	back := redirect.Query()
	back.Set("state", query.Get("state"))
	if user == "" {
		back.Set("error", "access_denied")
		back.Set("error_description", "The user refused.")
	} else {
		back.Set("code", p.code(grant{user, query.Get("redirect_uri"), query.Get("code_challenge"), query.Get("nonce"),
			query.Get("scope")}))
	}
	redirect.RawQuery = back.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

// isClient reports whether a request has the credentials of the client, in the header or the form.
func isClient(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	} else if unescaped, err := url.QueryUnescape(secret); err == nil {
		secret = unescaped // RFC 6749, section 2.3.1
	}
	return id == ClientID && secret == ClientSecret
}

func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	code := r.FormValue("code")
	g, known := p.grants[code]
	delete(p.grants, code)
	verifier := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case !isClient(r):
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	case r.Method != http.MethodPost, r.FormValue("grant_type") != "authorization_code", !known,
		g.redirect != r.FormValue("redirect_uri"),
		g.challenge != "" && g.challenge != base64.RawURLEncoding.EncodeToString(verifier[:]):
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant",
			"error_description": "The code " + code + " is not valid."})
		return
	}
	token := p.token(g.user, ClientID)
	out := map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600,
		"refresh_token": rand.Text()}
	if slices.Contains(strings.Fields(g.scope), "openid") {
		now := time.Now()
		claims := jwt.MapClaims{"iss": p.URL, "aud": ClientID, "sub": g.user, "iat": now.Unix(),
			"exp": now.Add(time.Hour).Unix()}
		if g.nonce != "" {
			claims["nonce"] = g.nonce
		}
		for name, value := range p.users[g.user] {
			if name == "email" || name == "email_verified" {
				claims[name] = value
			}
		}
		if p.Change != nil {
			p.Change(claims)
		}
		signed := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
		signed.Header["kid"] = p.keyID()
		idToken, err := signed.SignedString(p.key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out["id_token"] = idToken
	}
	answer(w, http.StatusOK, out)
}

// tokenOf returns what the provider knows of the access token of a request.
func (p *Provider) tokenOf(r *http.Request) (text string, known token) {
	text, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, name := range []string{"access_token", "oauth_token"} {
		if named := r.URL.Query().Get(name); named != "" {
			text = named
		}
	}
	if signed, isOAuth1 := strings.CutPrefix(r.Header.Get("Authorization"), "OAuth "); isOAuth1 {
		text = oauth1Parameter(signed, "oauth_token")
		if known = p.tokens[text]; known.client != oauth1Parameter(signed, "oauth_consumer_key") {
			return text, token{} // the key of another application signs nothing for the token
		}
	}
	return text, p.tokens[text]
}

func oauth1Parameter(header, name string) string {
	_, rest, _ := strings.Cut(header, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// holder returns what the provider says of the user of the access token of a request. The proof of a token with the
// secret of
// another client than its own (Facebook) is refused.
func (p *Provider) holder(r *http.Request) map[string]any {
	text, known := p.tokenOf(r)
	if proof := r.URL.Query().Get("appsecret_proof"); proof != "" {
		sum := hmac.New(sha256.New, []byte(ClientSecret))
		sum.Write([]byte(text))
		if known.client != ClientID || proof != hex.EncodeToString(sum.Sum(nil)) {
			return nil
		}
	}
	return p.users[known.user]
}

func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	if object := p.holder(r); object != nil {
		answer(w, http.StatusOK, object)
		return
	}
	answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
}

func (p *Provider) emails(w http.ResponseWriter, r *http.Request) {
	if emails, has := p.holder(r)["emails"]; has {
		answer(w, http.StatusOK, emails)
		return
	}
	answer(w, http.StatusNotFound, map[string]any{"message": "Not Found"})
}

// tokenInfo says of a token to which client it was issued, as Google does.
func (p *Provider) tokenInfo(w http.ResponseWriter, r *http.Request) {
	_, known := p.tokenOf(r)
	if known.user == "" {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_token"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"aud": known.client, "sub": known.user})
}

// introspect answers as RFC 7662 says: to any client, about the tokens of all.
func (p *Provider) introspect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !isClient(r) {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	known := p.tokens[r.FormValue("token")]
	if known.user == "" {
		answer(w, http.StatusOK, map[string]any{"active": false})
		return
	}
	answer(w, http.StatusOK, map[string]any{"active": true, "client_id": known.client, "sub": known.user})
}

// debugToken answers as the Graph API of Facebook does, which tells an application of its own tokens
// alone.
func (p *Provider) debugToken(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+ClientID+"|"+ClientSecret {
		answer(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"code": 190,
			"message": "Invalid OAuth access token signature."}})
		return
	}
	known := p.tokens[r.FormValue("input_token")]
	switch {
	case known.user == "":
		answer(w, http.StatusOK, map[string]any{"data": map[string]any{"is_valid": false,
			"error": map[string]any{"code": 190}}})
	case known.client != ClientID:
		answer(w, http.StatusBadRequest, map[string]any{"error": map[string]any{
			"code": 100, "message": "(#100) The App_id in the input_token did not match the Viewing App"}})
	default:
		answer(w, http.StatusOK, map[string]any{"data": map[string]any{"is_valid": true, "app_id": known.client,
			"user_id": known.user}})
	}
}

// checkToken answers as GitHub does, which knows no token of another application here.
func (p *Provider) checkToken(w http.ResponseWriter, r *http.Request) {
	var in struct {
		AccessToken string `json:"access_token"`
	}
	known := token{}
	if err := json.NewDecoder(r.Body).Decode(&in); err == nil {
		known = p.tokens[in.AccessToken]
	}
	switch {
	case r.Method != http.MethodPost || !isClient(r):
		answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
	case known.client != ClientID:
		answer(w, http.StatusNotFound, map[string]any{"message": "Not Found"})
	default:
		answer(w, http.StatusOK, map[string]any{"token": in.AccessToken,
			"app": map[string]any{"client_id": known.client}})
	}
}
