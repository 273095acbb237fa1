package directory_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/store"
)

// sealing is a service whose master key the test has.
func sealing(t testing.TB, providers ...*connect.Client) (*directory.Service, *pg.DB, *secure.Keyring, id.ID) {
	t.Helper()
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	db := pgtest.Open(t, store.Config)
	cfg := directory.Config{VerificationTTL: time.Hour}
	if len(providers) > 0 {
		cfg.Providers = providers[0]
	}
	svc := directory.New(store.New(db, now), secure.NewPasswords(cheap, 2, 1000), ring, "https://localhost:8443/v1", now, cfg)
	tenant := id.New(now())
	if _, err := svc.SignUp(t.Context(), directoryapi.SignUp{
		Tenant: tenant, Directory: id.New(now()), Owner: id.New(now()), Key: "calm-otter", DirectoryName: "Service Administrators", Email: "owner@example.test",
	}); err != nil {
		t.Fatal(err)
	}
	return svc, db, ring, tenant
}

func TestTheKeyOfASAMLDirectoryIsSealedAndFitsItsCertificate(t *testing.T) {
	svc, db, ring, tenant := sealing(t)
	d, err := svc.CreateDirectoryIn(t.Context(), tenant, directory.NewDirectory{Name: field.Some("SAML"), Provider: field.Some(directory.NewProvider{
		ProviderID: field.Some("saml"), SSOLoginURL: field.Some("https://idp.localhost/login"), SSOLogoutURL: field.Some("https://idp.localhost/logout"),
		EncodedX509SigningCert: field.Some(certtest.Now().Chain()),
	})})
	if err != nil {
		t.Fatal(err)
	}
	p, err := svc.Provider(t.Context(), id.Ref{Tenant: tenant, ID: d.ID})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := pg.Value[[]byte](t.Context(), db, `SELECT private_key_sealed FROM saml_service_providers WHERE id = $1`, p.MetadataID)
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
	d, err := svc.CreateDirectoryIn(t.Context(), tenant, directory.NewDirectory{Name: field.Some("G"), Provider: field.Some(directory.NewProvider{
		ProviderID: field.Some("github"), ClientID: field.Some("c"), ClientSecret: field.Some("s"),
	})})
	if err != nil {
		t.Fatal(err)
	}
	insert := func(account id.ID, external string) error {
		// Connectors will write these rows; there is none yet.
		if _, err := pg.Exec(t.Context(), db, `INSERT INTO accounts (tenant_id, id, directory_id, username, username_folded, email, email_folded,
			status, email_verification_status, created_at, modified_at) VALUES ($1, $2, $3, $4, $4, $4, $4, 'ENABLED', 'VERIFIED', $5, $5)`,
			tenant, account, d.ID, account.String()+"@example.test", now()); err != nil {
			return err
		}
		_, err := pg.Exec(t.Context(), db, `INSERT INTO provider_data (tenant_id, account_id, directory_id, external_id, claims, tokens_sealed, created_at, modified_at)
			VALUES ($1, $2, $3, $4, '{"userInfo": {"id": 108}}', $5, $6, $6)`,
			tenant, account, d.ID, external, ring.Seal(`{"accessToken":"a token"}`, "directory.providerdata/"+account.String()), now())
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
