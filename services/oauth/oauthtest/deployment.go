package oauthtest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/openapi/openapitest"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/oauth"
	oauthrest "github.com/doorward/doorward/services/oauth/rest"
	"github.com/doorward/doorward/services/oauth/store"
)

// The configuration of the service in tests, and the login of the account of a Site.
const (
	Base     href.Base     = "https://id.example.test/v1"
	Alias                  = "service"
	Suffix                 = "apps.localhost"
	Login                  = "jo@example.test"
	Password secure.Secret = "Changeme1!"
)

// Site is a tenant of a test, with an administrator and its API key, and with an application
// whose directory has an account.
type Site struct {
	Tenant         id.ID
	Administrators id.ID // directory
	Administrator  id.ID // account
	Key            string
	Secret         secure.Secret
	Directory      id.ID // of the application
	Account        id.ID
	Application    id.ID
	Console        id.ID // the application of the administrators
}

// Deployment is the service with its database, its HTTP application and its peers.
type Deployment struct {
	Site
	*World
	Service *oauth.Service
	Master  secure.Secret // the master key
	Store   *store.Store
	DB      *pg.DB
	Clock   *clocktest.Clock
	// Outbound is the guard of the services that WithMasterKey makes.
	Outbound outbound.Guard
	Signer   *caller.Signer
	HTTP     *fiber.App
}

// Open starts the service on a database of its own, with one site.
func Open(t testing.TB) *Deployment {
	t.Helper()
	dbs := pgtest.OpenAll(t, append(peerConfigs, store.Config)...)
	return open(t, dbs[3], dbs[:3])
}

// OpenApart is Open with a database of its own, so that a test can break that alone.
func OpenApart(t testing.TB) *Deployment {
	t.Helper()
	return open(t, pgtest.Open(t, store.Config), pgtest.OpenAll(t, peerConfigs...))
}

func open(t testing.TB, db *pg.DB, peers []*pg.DB) *Deployment {
	t.Helper()
	master := secure.NewMasterKey("k1")
	d := &Deployment{DB: db, Master: master, Clock: &clocktest.Clock{}}
	d.World = NewWorld(t, Base, d.Clock, peers[0], peers[1], peers[2])
	d.Store = store.New(db, d.Clock.Now)
	d.Service = d.WithMasterKey(t, master)
	d.Signer = caller.NewSigner("a secret of the tests, 32 characters", d.Clock.Now)
	d.HTTP = rest.New(rest.Config{Service: "oauth", Base: Base, Signer: d.Signer})
	oauthapi.Serve(rest.Contract(d.HTTP), d.Service)
	oauthrest.Mount(d.HTTP, d.Service, Base, Alias)
	d.Site = d.NewSite(t)
	return d
}

// Replica returns the service as another process has it, with its own caches enabled.
func (d *Deployment) Replica(t testing.TB) *oauth.Service {
	t.Helper()
	replica := *d
	replica.DB = pg.FromPool(d.DB.Pool)
	replica.Store = store.New(replica.DB, d.Clock.Now)
	worktest.Start(t, replica.DB.Listen)
	return replica.WithMasterKey(t, d.Master)
}

// WithMasterKey returns the service as it is after a restart with another master key.
func (d *Deployment) WithMasterKey(t testing.TB, master secure.Secret) *oauth.Service {
	t.Helper()
	ring, err := secure.ParseKeyring(master)
	if err != nil {
		t.Fatal(err)
	}
	return oauth.New(d.Store, d.Peers(), ring, d.Clock.Now,
		oauth.Config{Base: Base, Alias: Alias, Suffix: Suffix, Outbound: d.Outbound})
}

// NewSite adds a tenant.
func (d *Deployment) NewSite(t testing.TB) Site {
	t.Helper()
	made, console := d.NewTenant()
	s := Site{Console: console, Tenant: made.Tenant.ID, Administrators: made.Directory.ID, Key: secure.KeyID(), Secret: secure.Token(43)}
	s.Administrator = d.NewAccount(s.Tenant, s.Administrators, "administrator@example.test", Password)
	s.Directory = d.NewDirectory(s.Tenant)
	s.Account = d.NewAccount(s.Tenant, s.Directory, Login, Password)
	s.Application = d.NewApplication(s.Tenant, s.Directory)
	_, err := d.Service.EnsureKey(t.Context(), oauthapi.EnsureKey{Tenant: s.Tenant, Account: s.Administrator, ID: s.Key, Secret: s.Secret})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Form makes a form of names and values in turn.
func Form(pairs ...string) oauth.Form {
	form := oauth.Form{}
	for i := 0; i < len(pairs); i += 2 {
		form[pairs[i]] = secure.Secret(pairs[i+1])
	}
	return form
}

// Request is what the site's administrator posts to its application's token
// endpoint.
func (s Site) Request(pairs ...string) oauth.TokenRequest {
	return oauth.TokenRequest{Tenant: s.Tenant, Application: s.Application, Key: s.Key, Form: Form(pairs...)}
}

// LogIn gets the tokens of the site's account.
func (d *Deployment) LogIn(t testing.TB, s Site) oauth.IssuedTokens {
	t.Helper()
	issued, err := d.Service.Token(t.Context(), s.Request("grant_type", "password", "username", Login, "password", Password.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

// Answer is what a request got.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request as the site's administrator. A body of the type url.Values is a form, a
// string is JSON, nil is no body.
func (d *Deployment) Do(t testing.TB, s Site, method, path string, body any) Answer {
	t.Helper()
	var content io.Reader
	kind := ""
	switch body := body.(type) {
	case url.Values:
		content, kind = strings.NewReader(body.Encode()), fiber.MIMEApplicationForm
	case string:
		content, kind = strings.NewReader(body), fiber.MIMEApplicationJSON
	}
	request := httptest.NewRequestWithContext(t.Context(), method, "/v1"+strings.TrimPrefix(path, string(Base)), content)
	if kind != "" {
		request.Header.Set(fiber.HeaderContentType, kind)
	}
	return d.Send(t, s, request)
}

// Send sends a request as the site's administrator.
func (d *Deployment) Send(t testing.TB, s Site, request *http.Request) Answer {
	t.Helper()
	request.Header.Set(caller.Header, d.Signer.Sign(caller.Caller{Tenant: s.Tenant, Key: s.Key, Account: s.Administrator,
		RequestID: "a-request"}))
	response, err := openapitest.Do(t, d.HTTP, request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Answer{response.StatusCode, response.Header, string(content)}
}

// Decrypt decrypts a secret as a client does: the Base64 of an initialisation vector and of
// AES-CBC with PKCS #7.
func Decrypt(t testing.TB, key []byte, encrypted string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(encrypted)
	if err != nil || len(raw) < 2*aes.BlockSize || len(raw)%aes.BlockSize != 0 {
		t.Fatalf("%q is not the Base64 of blocks: %v", encrypted, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	iv, text := raw[:aes.BlockSize], raw[aes.BlockSize:]
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(text, text)
	padding := int(text[len(text)-1])
	if padding < 1 || padding > aes.BlockSize || !bytes.Equal(text[len(text)-padding:], bytes.Repeat([]byte{byte(padding)}, padding)) {
		t.Fatalf("%q ends in no padding", encrypted)
	}
	return string(text[:len(text)-padding])
}
