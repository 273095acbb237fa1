package provider_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/provider"
)

// idpMetadata are the metadata of an identity provider with the keys of some pairs.
func idpMetadata(pairs ...saml.KeyPair) string {
	var keys strings.Builder
	for _, pair := range pairs {
		block, _ := pem.Decode([]byte(pair.Certificate))
		text := strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "X", Bytes: block.Bytes})))
		lines := strings.Split(text, "\n")
		fmt.Fprintf(&keys, `<KeyDescriptor use="signing"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>
			%s</ds:X509Certificate></ds:X509Data></ds:KeyInfo></KeyDescriptor>`, strings.Join(lines[1:len(lines)-1], "\n"))
	}
	return `<?xml version="1.0"?><!-- made by hand --><EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata"
		xmlns:ds="http://www.w3.org/2000/09/xmldsig#" entityID="urn:idp"><IDPSSODescriptor
		protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` + keys.String() + `
		<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://idp.test/post"/>
		<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.test/redirect"/>
		</IDPSSODescriptor></EntityDescriptor>`
}

func TestMetadataFillInAProvider(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	pairs := []saml.KeyPair{samlKeys(t, now()), samlKeys(t, now()), samlKeys(t, now()), samlKeys(t, now())}
	create := func(in provider.NewProvider) (id.ID, error) {
		in.ProviderID = field.Some("saml")
		d, err := svc.CreateDirectoryIn(t.Context(), tenant, newDirectory(id.New(now()).String(), in))
		return d.ID, err
	}
	at, err := create(provider.NewProvider{Metadata: field.Some(idpMetadata(pairs[:3]...))})
	if err != nil {
		t.Fatal(err)
	}
	p, err := svc.Provider(t.Context(), id.Ref{Tenant: tenant, ID: at})
	if err != nil || *p.Settings.SSOLoginURL != "https://idp.test/redirect" || *p.Settings.EntityID != "urn:idp" ||
		p.Settings.SSOLogoutURL != nil ||
		*p.Settings.Metadata != idpMetadata(pairs[:3]...) || len(p.Settings.SigningCertificates()) != 3 {
		t.Errorf("the provider is %+v, %v", p.Settings, err)
	}
	for i, pair := range pairs {
		_, err := svc.FinishSAMLLogin(t.Context(), answer(t, tenant, at, pair, "jo@example.test"))
		if i < 3 && err != nil || i == 3 && !errors.Is(err, apierr.SAMLSignature) {
			t.Errorf("a login with the key %d returned %v", i, err)
		}
	}
	for what, text := range map[string]string{
		"no XML": "x", "another document": "<a/>", "no certificate": idpMetadata(),
		"a service provider": strings.ReplaceAll(idpMetadata(pairs[0]), "IDPSSODescriptor",
			"SPSSODescriptor"),
		"no address for requests by HTTP-Redirect": strings.ReplaceAll(idpMetadata(pairs[0]), "HTTP-Redirect", "SOAP"),
		"a certificate that is none":               strings.Replace(idpMetadata(pairs[0]), "MII", "AII", 1),
		"an address that is none": strings.Replace(idpMetadata(pairs[0]), "https://idp.test/redirect",
			"javascript:x", 1),
	} {
		if _, err := create(provider.NewProvider{Metadata: field.Some(text)}); !errors.Is(err, apierr.Format) {
			t.Errorf("a provider with %s returned %v", what, err)
		}
	}
	if _, err := svc.UpdateProvider(t.Context(), id.Ref{Tenant: tenant, ID: at}, provider.NewProvider{
		SSOLoginURL: field.Text{Present: true, Null: true},
	}); !errors.Is(err, apierr.Required) {
		t.Errorf("a login URL of null returned %v", err)
	}
}

func TestMetadataAreReadAgainEachDay(t *testing.T) {
	t.Parallel()
	var document atomic.Pointer[string]
	calls := atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		if text := document.Load(); text != nil {
			_, _ = w.Write([]byte(*text))
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	guard, err := outbound.ParseGuard([]string{"127.0.0.0/8", "::1"})
	if err == nil {
		guard, err = guard.Trusting(string(pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: server.Certificate().Raw,
		})))
	}
	if err != nil {
		t.Fatal(err)
	}
	svc, db, _, tenant := sealing(t, connect.New(guard, nil, now))
	first, second := samlKeys(t, now()), samlKeys(t, now())
	publish := func(pairs ...saml.KeyPair) { text := idpMetadata(pairs...); document.Store(&text) }
	create := func() (id.ID, error) {
		d, err := svc.CreateDirectoryIn(t.Context(), tenant, newDirectory(id.New(now()).String(), provider.NewProvider{
			ProviderID: field.Some("SAML"), MetadataURL: field.Some(server.URL),
		}))
		return d.ID, err
	}
	if _, err := create(); !errors.Is(err, apierr.Invalid) || !strings.Contains(apierr.From(err).Reason, "503") {
		t.Errorf("an address that answers 503 returned %v", err)
	}
	publish(first)
	at, err := create()
	if err != nil {
		t.Fatal(err)
	}
	login := func(pair saml.KeyPair) error {
		_, err := svc.FinishSAMLLogin(t.Context(), answer(t, tenant, at, pair, "jo@example.test"))
		return err
	}
	refresh := func(after time.Duration) {
		t.Helper()
		if err := pg.MustChange(t.Context(), db,
			`UPDATE providers SET metadata_due_at = metadata_due_at - $2::interval WHERE tenant_id = $1`, tenant,
			after); err != nil {
			t.Fatal(err)
		}
		if err := provider.RefreshDueMetadata(svc.Providers, t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	publish(first, second)
	before := calls.Load()
	refresh(23 * time.Hour)
	if calls.Load() != before || !errors.Is(login(second), apierr.SAMLSignature) {
		t.Error("the metadata were read again before a day was over")
	}
	refresh(2 * time.Hour)
	if err := errors.Join(login(first), login(second)); err != nil {
		t.Errorf("after a day a login with the next key returned %v", err)
	}
	document.Store(nil)
	refresh(25 * time.Hour)
	if err := errors.Join(login(first), login(second)); err != nil {
		t.Errorf("after metadata that cannot be read, a login returned %v", err)
	}
}
