package e2e_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// withoutTarget are links whose address does not exist yet.
var withoutTarget = []string{"ssoInitiationEndpoint", "download"}

// postOnly are links that clients only post to.
var postOnly = []string{"loginAttempts", "passwordResetTokens", "verificationEmails", "authTokens", "tokenEndpoint", "revocationEndpoint", "emailVerificationToken", "defaultRelayStates"}

// hosted are links to a Client API, whose address is another.
var hosted = []string{"ssoLoginEndpoint"}

var anID = regexp.MustCompile(`/[0-9A-Za-z]{20,26}(/|$)`)

// kind is the address of a resource without its id.
func kind(address string) string { return anID.ReplaceAllString(address, "/:id$1") }

// crawl follows every link of a resource, and of the resources behind it, once
// for each kind, and returns the collections among them.
func crawl(t *testing.T, address string, seen map[string]string, collections map[string]string) {
	t.Helper()
	if seen[kind(address)] != "" {
		return
	}
	seen[kind(address)] = address
	resource := client.Get(t, address)
	if items, ok := resource["items"].([]any); ok {
		if resource["size"] == nil {
			return // a list of rules
		}
		collections[kind(address)] = address
		if len(items) > 0 {
			crawl(t, e2e.Object(items[0].(map[string]any)).Href(), seen, collections)
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(resource)) {
		link, ok := resource[name].(map[string]any)
		if !ok || link["href"] == nil {
			continue
		}
		next := link["href"].(string)
		switch {
		case slices.Contains(hosted, name):
		case slices.Contains(withoutTarget, name):
			client.Refused(t, http.StatusNotFound, 404, e2e.Request{Method: http.MethodGet, URL: next})
		case slices.Contains(postOnly, name):
			if status := client.Call(t, e2e.Request{Method: http.MethodGet, URL: next}).Status; status != http.StatusMethodNotAllowed {
				t.Errorf("GET %s answers %d", next, status)
			}
		case strings.HasSuffix(next, "/apiKeys") && strings.Contains(next, "/applications/"):
			client.Refused(t, http.StatusBadRequest, 2101, e2e.Request{Method: http.MethodGet, URL: next}) // finds by id alone
		case name == "x509SigningCert":
			client.Want(t, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: next})
		case name == "serviceProviderMetadata", name == "metadata":
			answer := client.Want(t, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: next, Header: http.Header{"Accept": {"application/json"}}})
			if _, err := answer.Object(); err != nil {
				t.Error(err)
			}
		default:
			crawl(t, next, seen, collections)
		}
	}
}

// Every link of every resource has a target, and every collection answers every query.
func TestLinksAndQueries(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	group := client.Create(t, fixture.Directory.Link(t, "groups"), e2e.Object{"name": "Editors"})
	client.Create(t, "/groupMemberships", e2e.Object{"account": e2e.Object{"href": account.Href()}, "group": e2e.Object{"href": group.Href()}})
	other := client.NewFixture(t)
	client.Create(t, "/accountLinks", e2e.Object{"leftAccount": e2e.Object{"href": account.Href()}, "rightAccount": e2e.Object{"href": client.Register(t, other.Application.Link(t, "accounts")).Href()}})
	organization := client.Create(t, "/organizations", e2e.Object{"name": e2e.Unique("bank"), "nameKey": strings.ToLower(e2e.Unique("bank"))})
	defer client.Delete(t, organization.Href())
	client.Create(t, "/organizationAccountStoreMappings", e2e.Object{"organization": e2e.Object{"href": organization.Href()}, "accountStore": e2e.Object{"href": fixture.Directory.Href()}})
	client.Create(t, account.Link(t, "apiKeys"), e2e.Object{})
	client.Create(t, account.Link(t, "phones"), e2e.Object{"number": "+12675550123"})
	client.Create(t, account.Link(t, "factors")+"?challenge=true", e2e.Object{"type": "google-authenticator", "accountName": "jo"})
	client.Token(t, fixture.Application.Href(), url.Values{"grant_type": {"password"}, "username": {account.Text("email")}, "password": {e2e.Password}})
	saml := client.Create(t, "/registeredSamlServiceProviders", e2e.Object{"assertionConsumerServiceUrl": "https://sp.example.test", "entityId": e2e.Unique("sp")})
	defer client.Delete(t, saml.Href())
	provider := identityProvider(t, fixture.Application)
	client.Create(t, provider.Link(t, "samlServiceProviderRegistrations"), e2e.Object{"serviceProvider": e2e.Object{"href": saml.Href()}})

	seen, collections := map[string]string{}, map[string]string{}
	for _, start := range []string{account.Href(), fixture.Application.Href(), organization.Href(), client.Tenant(t).Href()} {
		crawl(t, start, seen, collections)
	}
	for _, address := range []string{provider.Href(), provider.Link(t, "attributeStatementMappingRules"), provider.Link(t, "samlServiceProviderRegistrations")} {
		if seen[kind(address)] == "" {
			t.Errorf("no link led to %s", kind(address))
		}
	}
	if len(collections) < 32 {
		t.Errorf("only %d collections were found: %v", len(collections), slices.Sorted(maps.Keys(collections)))
	}
	for name, address := range collections {
		wantSorted(t, address)
		for _, query := range []string{
			"", "q=jo", "q=%25", "q=%00", "q=%ff", "q=" + strings.Repeat("x", 5000), "name=*", "name=**", "name=%00", "email=_", "status=", "status=x", "status=ENABLED", "status=DISABLED&orderBy=status%20desc", "createdAt=[", "createdAt=[,]",
			"createdAt=[2015,2014]", "createdAt=99999", "createdAt=0000-00-00", "createdAt=2015", "createdAt=[9999-12-31T23:59:59.999Z,]", "modifiedAt=(2015-01-01,2016)",
			"orderBy=", "orderBy=createdAt", "orderBy=name%20desc", "orderBy=name;drop", "orderBy=listIndex%20desc", "orderBy=status", "status=enabled", "status=DISABLED&orderBy=createdAt&offset=1", "orderBy=customData.a", "customData.a=1",
			"customData.a=[1,2]", "customData." + strings.Repeat("a.", 200) + "b=1", "limit=0", "limit=1e9", "limit=99999999999999999999", "offset=9223372036854775807",
			"offset=2147483648&limit=100", "limit=1&limit=2", "expand=", "expand=a(", "expand=account,tenant", "application.href=x", "a=b", "&&&", "=x", "%=1", "q",
		} {
			if answer := client.Call(t, e2e.Request{Method: http.MethodGet, URL: address + "?" + query}); answer.Status != http.StatusOK && answer.Status != http.StatusBadRequest {
				t.Errorf("%s?%.60s answers %s", name, query, answer)
			}
		}
	}
}

// sortedByAll are the kinds of items whose collections are sorted by every plain
// attribute that an item shows.
var sortedByAll = []string{"/directories/:id", "/groups/:id", "/accounts/:id", "/groupMemberships/:id", "/accountLinks/:id", "/fields/:id", "/agents/:id", "/emailTemplates/:id", "/phones/:id"}

// wantSorted sorts a collection by every plain attribute of its items. The same
// resource is sorted alike wherever it is listed.
func wantSorted(t *testing.T, address string) {
	t.Helper()
	for _, item := range client.Get(t, address).Items(t) {
		if !slices.Contains(sortedByAll, strings.TrimPrefix(kind(item.Href()), client.Key.BaseURL)) {
			return
		}
		for name, value := range item {
			switch value.(type) {
			case map[string]any, []any, nil: // links, and what may be one
				continue
			}
			if answer := client.Call(t, e2e.Request{Method: http.MethodGet, URL: address + "?orderBy=" + name + "%20desc"}); name != "href" && answer.Status != http.StatusOK {
				t.Errorf("%s?orderBy=%s answers %s", kind(address), name, answer)
			}
		}
	}
}
