package rest_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/openapi/openapitest"
	"github.com/doorward/doorward/services/idsite"
)

// update posts settings and returns the answer.
func (c client) update(t *testing.T, tenant, site id.ID, body string) (status int, answer map[string]any) {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/v1/idSites/"+site.String(), strings.NewReader(body))
	request.Header.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	request.Header.Set(caller.Header, c.signer.Sign(caller.Caller{Tenant: tenant}))
	response, err := openapitest.Do(t, c.app, request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return response.StatusCode, answer
}

func TestSettingsAreKeptAndReset(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "mine")
	_, first := c.update(t, tenant, site, `{}`)
	for _, step := range []struct{ body, member, want string }{
		{`{"domainName":"Login.Example.com"}`, "domainName", `"login.example.com"`},
		{`{"domainName":null}`, "domainName", `"` + first["domainName"].(string) + `"`},
		{`{"tlsPublicCert":"a text"}`, "tlsPublicCert", `"a text"`},
		{`{"tlsPrivateKey":"a text"}`, "tlsPrivateKey", `"a text"`},
		{`{}`, "tlsStatus", `"INVALID"`},
		{`{"tlsPrivateKey":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}`, "tlsPrivateKey", `"[sealed]"`},
		{`{"tlsPrivateKey":"[sealed]"}`, "tlsPrivateKey", `"[sealed]"`},
		{`{"tlsPrivateKey":null,"tlsPublicCert":null}`, "tlsStatus", `"NONE"`},
		{`{"gitRepoUrl":"https://git.example.com/pages.git"}`, "gitBranch", `"master"`},
		{`{"gitBranch":"main"}`, "gitStatus", `"PENDING"`},
		{`{"sessionTti":"PT0.5H"}`, "sessionTti", `"PT0.5H"`},
		{`{"gitRepoUrl":"https://jo:s3cret@git.example.com/pages.git"}`, "gitRepoUrl", `"https://%5Bsealed%5D@git.example.com/pages.git"`},
		{`{"gitRepoUrl":"https://%5Bsealed%5D@git.example.com/pages.git"}`, "gitStatus", `"PENDING"`},
		{`{"gitRepoUrl":null}`, "gitStatus", `"NONE"`},
		{`{"authorizedOriginUris":["https://a.example.com"]}`, "authorizedOriginUris", `["https://a.example.com"]`},
		{`{"authorizedOriginURIs":["https://b.example.com"]}`, "authorizedOriginUris", `["https://b.example.com"]`},
		{`{"authorizedOriginURLs":["https://c.example.com"]}`, "authorizedOriginUris", `["https://c.example.com"]`},
		{`{"authorizedRedirectUris":["https://a.example.com/cb"]}`, "authorizedRedirectUris", `["https://a.example.com/cb"]`},
		{`{"authorizedRedirectURIs":["https://b.example.com/cb"]}`, "authorizedRedirectUris", `["https://b.example.com/cb"]`},
		{`{"authorizedRedirectURLs":["https://c.example.com/cb"]}`, "authorizedRedirectUris", `["https://c.example.com/cb"]`},
		{`{"logoUrl":"https://example.com/logo.png"}`, "logoUrl", `"https://example.com/logo.png"`},
		{`{"logoUrl":null}`, "logoUrl", `null`},
		{`{"accentColor":"#2f5bea"}`, "accentColor", `"#2f5bea"`},
		{`{"sessionTti":"PT5M","sessionTtl":"PT1H"}`, "sessionTtl", `"PT1H"`},
		{`{"sessionCookiePersistent":true}`, "sessionCookiePersistent", `true`},
	} {
		status, answer := c.update(t, tenant, site, step.body)
		got, err := json.Marshal(answer[step.member])
		if err != nil || status != http.StatusOK || string(got) != step.want {
			t.Errorf("%s answers %d with %s %s, want %s", step.body, status, step.member, got, step.want)
		}
	}
}

func TestSettingsThatAreRefusedChangeNothing(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "mine")
	theirs, foreign := c.tenant(t, "theirs")
	_, other := c.update(t, theirs, foreign, `{}`)
	byDefault := other["domainName"].(string)
	if status, answer := c.update(t, theirs, foreign, `{"domainName":"login.theirs.test"}`); status != http.StatusOK {
		t.Fatalf("the domain is refused: %v", answer)
	}
	_, before := c.do(t, tenant, http.MethodGet, "/v1/idSites/"+site.String())
	for body, want := range map[string]float64{
		`{"domainName":"login.theirs.test"}`:              2001,
		`{"domainName":"LOGIN.THEIRS.TEST"}`:              2001,
		`{"domainName":"` + byDefault + `"}`:              2001,
		`{"domainName":"acme.login.theirs.test"}`:         2001, // where their organizations have their pages
		`{"domainName":"theirs.test"}`:                    2001, // whose organizations would have theirs
		`{"domainName":"calm-otter.apps.localhost"}`:      2001,
		`{"domainName":"apps.localhost"}`:                 2001,
		`{"domainName":"another.id.localhost"}`:           2001,
		`{"domainName":"id.localhost"}`:                   2001,
		`{"domainName":"127.0.0.1"}`:                      2006,
		`{"domainName":"https://a.example.com"}`:          2006,
		`{"domainName":"a.example.com:8443"}`:             2006,
		`{"gitRepoUrl":"no address"}`:                     2002,
		`{"gitRepoUrl":"https://[sealed]@git.test/x"}`:    2002,
		`{"gitRepoUrl":"https://%5Bsealed%5D@git.test/"}`: 2002,
		`{"domainName":"co.uk"}`:                          2006,
		`{"domainName":"github.io"}`:                      2006,
		`{"sessionTti":"5 minutes"}`:                      2006,
		`{"sessionTtl":"PT0S"}`:                           2006,
		`{"domainName":"a b","gitRepoUrl":"x"}`:           2002,
		`{"gitRepoUrl":"x","sessionTtl":null}`:            2000,
		`{"sessionTti":"x","sessionTtl":null}`:            2000,
		`{"authorizedOriginUris":["x"],"sessionTtl":" "}`: 2000,
		`{"logoUrl":"x","sessionCookiePersistent":null}`:  2000,
		`{"sessionTti":"PT13H"}`:                          2012,
		`{"accentColor":"red"}`:                           2006,
		`{"logoUrl":"javascript:alert(1)"}`:               2006,
		`{"sessionCookiePersistent":null}`:                2000,
		`{"logoUrl":null,"sessionTti":"P1D"}`:             2012,
		`{"authorizedRedirectUris":["javascript:x"]}`:     2006,
		`{"authorizedOriginUris":["https://a.test/cb"]}`:  2006,
	} {
		if status, answer := c.update(t, tenant, site, body); status < 400 || status > 499 || answer["code"] != want {
			t.Errorf("%s answers %d, %v; want %v", body, status, answer["code"], want)
		}
	}
	if _, after := c.do(t, tenant, http.MethodGet, "/v1/idSites/"+site.String()); string(after) != string(before) {
		t.Errorf("the settings are now %s", after)
	}
	if status, _ := c.update(t, theirs, site, `{"logoUrl":null}`); status != http.StatusNotFound {
		t.Errorf("another tenant's settings answer %d", status)
	}
}

// What was read can be sent back, with its read-only members.
func TestTheSettingsOfACustomDomainCanBeSentBack(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "mine")
	_, before := c.update(t, tenant, site, `{"domainName":"login.mine.test"}`)
	record, _ := before["domainVerification"].(map[string]any)
	if before["domainStatus"] != "PENDING" || record["type"] != "TXT" || record["name"] != "_doorward.login.mine.test" {
		t.Errorf("the domain is %v, proved by %v", before["domainStatus"], record)
	}
	body, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	if status, after := c.update(t, tenant, site, string(body)); status != http.StatusOK || !reflect.DeepEqual(after, before) {
		t.Errorf("sent back it is answered %d %v", status, after)
	}

	theirs, foreign := c.tenant(t, "theirs")
	_, refusal := c.update(t, theirs, foreign, `{"domainName":"login.mine.test"}`)
	reason := refusal["developerMessage"].(string)
	named := regexp.MustCompile(`TXT record (\S+) with the text "([^"]+)"`).FindStringSubmatch(reason)
	if named == nil {
		t.Fatalf("the refusal names no record: %s", reason)
	}
	c.peers.DNS.Publish(named[1], named[2])
	if status, answer := c.update(t, theirs, foreign, `{"domainName":"login.mine.test"}`); status != http.StatusOK ||
		answer["domainStatus"] != "PROVED" {
		t.Errorf("with the record that the refusal names the claim is answered %d %v", status, answer)
	}
	if _, former := c.update(t, tenant, site, `{}`); former["domainStatus"] != "NONE" || former["domainVerification"] != nil {
		t.Errorf("the former tenant has %v, %v", former["domainStatus"], former["domainVerification"])
	}
}

// A domain and one a label below it do not both become those of two tenants, whichever
// is claimed first.
func TestParallelClaimsOfRelatedDomainsGiveOneTenantItsDomain(t *testing.T) {
	c := newClient(t)
	tenants, sites, domains := [2]id.ID{}, [2]id.ID{}, [2]string{"theirs.test", "login.theirs.test"}
	for i, key := range []string{"one", "two"} {
		tenants[i], sites[i] = c.tenant(t, key)
	}
	for round := range 10 {
		var made [2]atomic.Bool
		var claims sync.WaitGroup
		begin := make(chan struct{})
		for i := range 50 {
			claims.Go(func() {
				<-begin
				at := id.Ref{Tenant: tenants[i%2], ID: sites[i%2]}
				_, err := c.svc.UpdateSite(t.Context(), at, idsite.SiteChange{DomainName: field.Some(domains[i%2])})
				if err != nil && !errors.Is(err, apierr.Exists) {
					t.Error(err)
				}
				if err == nil {
					made[i%2].Store(true)
				}
			})
		}
		close(begin)
		claims.Wait()
		if made[0].Load() == made[1].Load() {
			t.Errorf("round %d: %s is claimed: %v, %s: %v", round, domains[0], made[0].Load(), domains[1], made[1].Load())
		}
		for i := range tenants {
			if status, answer := c.update(t, tenants[i], sites[i], `{"domainName":null}`); status != http.StatusOK {
				t.Fatalf("the domain is not given back: %v", answer)
			}
		}
	}
}
