package provider_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/directorytest"
	"github.com/doorward/doorward/services/directory/provider"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func now() time.Time { return time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC) }

// sealing is a service whose master key the test has, with a tenant.
func sealing(t testing.TB, clients ...*connect.Client) (*app.Service, *pg.DB, *secure.Keyring, id.ID) {
	t.Helper()
	var client *connect.Client
	if len(clients) > 0 {
		client = clients[0]
	}
	d := directorytest.NewWithClient(t, pgtest.Open(t, directorytest.Config), "https://localhost:8443/v1", now, client)
	return d.Rules, d.DB, d.Ring, d.NewTenant().Tenant.ID
}

// newDirectory is the body of a directory with a provider.
func newDirectory(name string, in provider.NewProvider) provider.NewDirectory {
	return provider.NewDirectory{NewDirectory: directory.NewDirectory{Name: field.Some(name)}, Provider: field.Some(in)}
}

func TestTheKeyOfASAMLDirectoryIsSealedAndFitsItsCertificate(t *testing.T) {
	svc, db, ring, tenant := sealing(t)
	d, err := svc.CreateDirectoryIn(t.Context(), tenant, newDirectory("SAML", provider.NewProvider{
		ProviderID: field.Some("saml"), SSOLoginURL: field.Some("https://idp.localhost/login"),
		SSOLogoutURL:           field.Some("https://idp.localhost/logout"),
		EncodedX509SigningCert: field.Some(certtest.Now().Chain()),
	}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := svc.Provider(t.Context(), id.Ref{Tenant: tenant, ID: d.ID})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := pg.Value[[]byte](t.Context(), db, `SELECT private_key_sealed FROM saml_service_providers WHERE id = $1`,
		p.MetadataID)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := ring.Open(sealed, "directory.saml/"+p.MetadataID.String())
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey([]byte(opened.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		t.Fatalf("the key is a %T", parsed)
	}
	sp, err := svc.SAMLServiceProvider(t.Context(), id.Ref{Tenant: tenant, ID: p.MetadataID})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(sp.Certificate))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		t.Error("the certificate is of another key")
	}
}

func TestProviderDataShowsFactsAndTokens(t *testing.T) {
	svc, db, ring, tenant := sealing(t)
	d, err := svc.CreateDirectoryIn(t.Context(), tenant, newDirectory("G", provider.NewProvider{
		ProviderID: field.Some("github"), ClientID: field.Some("c"), ClientSecret: field.Some("s"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	insert := func(account id.ID, external string) error {
		// Connectors will write these rows; there is none yet.
		if _, err := pg.Exec(t.Context(),
			db, `INSERT INTO accounts (tenant_id, id, directory_id, username, username_folded, email, email_folded,
			status, email_verification_status, created_at, modified_at) VALUES ($1, $2, $3, $4, $4, $4, $4, 'ENABLED', 'VERIFIED', $5, $5)`,
			tenant, account, d.ID, account.String()+"@example.test", now()); err != nil {
			return err
		}
		_, err := pg.Exec(t.Context(),
			db, `INSERT INTO provider_data (tenant_id, account_id, directory_id, external_id, claims, tokens_sealed, created_at, modified_at)
			VALUES ($1, $2, $3, $4, '{"userInfo": {"id": 108}}', $5, $6, $6)`,
			tenant, account, d.ID, external, ring.Seal(`{"accessToken":"a token"}`, "directory.providerdata/"+account.String()),
			now())
		return err
	}
	account := id.New(now())
	if err := insert(account, "108"); err != nil {
		t.Fatal(err)
	}
	data, err := svc.ProviderData(t.Context(), id.Ref{Tenant: tenant, ID: account})
	if err != nil {
		t.Fatal(err)
	}
	facts, err := json.Marshal(data.Claims)
	if err != nil {
		t.Fatal(err)
	}
	if data.ProviderID != "github" || string(facts) != `{"accessToken":"a token","userInfo":{"id":108}}` {
		t.Errorf("the provider data of %s are %s", data.ProviderID, facts)
	}
	if err := insert(id.New(now()), "108"); !errors.Is(err, apierr.Exists) {
		t.Errorf("two accounts of a directory are the same one of the provider: %v", err)
	}
	if err := insert(id.New(now()), "1O8"); err != nil {
		t.Error(err)
	}
}
