package rest_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/caller"
)

// estate is what a tenant has of every kind of resource: its address by the
// first segment of the path.
func (b *bench) estate() map[string]string {
	b.Helper()
	staff, other := b.directory("Staff"), b.directory("Other")
	group := b.Post(staff+"/groups", `{"name":"Editors"}`).Want(201)
	jo := b.Post(staff+"/accounts", jo).Want(201)
	ann := b.Post(other+"/accounts", `{"email":"ann@example.test","password":"Changeme1!"}`).Want(201).Href()
	link := b.Post("/v1/accountLinks",
		fmt.Sprintf(`{"leftAccount":{"href":%q},"rightAccount":{"href":%q}}`, jo.Href(), ann)).Want(201)
	membership := b.Post("/v1/groupMemberships",
		fmt.Sprintf(`{"account":{"href":%q},"group":{"href":%q}}`, jo.Href(), group.Href())).Want(201)
	directory := b.Get(staff).Want(200)
	creation := b.Get(directory.Href("accountCreationPolicy")).Want(200)
	schema := b.Get(directory.Href("accountSchema")).Want(200)
	ldap := b.Get(b.mirror("LDAP", ldapProvider(``)) + "/provider").Want(200)
	social := b.Get(b.mirror("Social", google(``)) + "/provider").Want(200)
	saml := b.Get(b.mirror("SAML", samlProvider(``)) + "/provider").Want(200)
	metadata := b.With("Accept", "application/json").Get(saml.Href("serviceProviderMetadata")).Want(200)
	first := func(collection string) string { return b.Get(collection).Want(200).Items()[0]["href"].(string) }
	return map[string]string{
		"tenants": b.tenant(), "directories": staff, "groups": group.Href(), "accounts": jo.Href(),
		"accountLinks":     link.Href(),
		"groupMemberships": membership.Href(), "accountCreationPolicies": creation.Href(),
		"passwordPolicies": directory.Href("passwordPolicy"),
		"emailTemplates":   first(creation.Href("welcomeEmailTemplates")), "schemas": schema.Href(),
		"fields": first(schema.Href("fields")),
		"agents": ldap.Href("agent"), "userInfoMappingRules": social.Href("userInfoMappingRules"),
		"attributeStatementMappingRules": saml.Href("attributeStatementMappingRules"),
		"samlServiceProviderMetadatas":   metadata.Href(), "x509certificates": metadata.Href("x509SigningCert"),
	}
}

// bodies are requests that change the resource when its own tenant sends them,
// by route; the others are sent {"name":"Taken over"}.
var bodies = map[string]string{
	"/v1/accounts/:id":                       `{"givenName":"Taken over","status":"DISABLED"}`,
	"/v1/tenants/:id/invitations":            `{"email":"intruder@example.test"}`,
	"/v1/directories/:id/accounts":           `{"email":"intruder@example.test","password":"Changeme1!"}`,
	"/v1/accountCreationPolicies/:id":        `{"emailDomainWhitelist":["example.org"]}`,
	"/v1/passwordPolicies/:id":               `{"resetTokenTtl":1}`,
	"/v1/passwordPolicies/:id/strength":      `{"minLength":1}`,
	"/v1/emailTemplates/:id":                 `{"subject":"Taken over"}`,
	"/v1/fields/:id":                         `{"required":true}`,
	"/v1/directories/:id/provider":           `{"clientSecret":"taken over"}`,
	"/v1/agents/:id":                         `{"config":{"directoryHost":"taken.over"}}`,
	"/v1/agents/:id/ping":                    `{"status":"ERROR"}`,
	"/v1/agents/:id/sync":                    `{"accounts":[{"externalId":"x","email":"intruder@example.test"}],"complete":true}`,
	"/v1/agents/:id/authentications/:check":  `{"result":"SUCCESS"}`,
	"/v1/userInfoMappingRules/:id":           `{"items":[]}`,
	"/v1/attributeStatementMappingRules/:id": `{"items":[]}`,
}

// TestNoTenantReachesAnother calls every route of the service with the ids of another tenant
// (tenant isolation): each answers 404, as for ids that do not exist, and the data of the other
// tenant do not change.
func TestNoTenantReachesAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	estate := b.estate()
	read := func() map[string]string {
		seen := map[string]string{}
		for _, route := range b.app.GetRoutes(true) {
			if path, ok := at(estate, route.Path); ok && route.Method == http.MethodGet {
				answer := b.Get(path).Want(200)
				seen[route.Path] = string(answer.Body)
			}
		}
		return seen
	}
	before := read()
	stranger := b.As(caller.Caller{Tenant: b.signUp("sly-fox", "stranger@example.test").Tenant.ID})
	tried := map[string]bool{}
	for _, route := range b.app.GetRoutes(true) {
		path, ok := at(estate, route.Path)
		if !ok || route.Method == http.MethodHead {
			continue
		}
		tried[strings.Split(route.Path, "/")[2]] = true
		body, contentType := "", ""
		if route.Method == http.MethodPost {
			contentType = "application/json"
			if body = bodies[route.Path]; body == "" {
				body = `{"name":"Taken over"}`
			}
		}
		answer := stranger.Send(route.Method, path, contentType, body)
		if route.Method == http.MethodDelete { // answers the same for what is not there, and nothing happens
			answer.Want(204)
			continue
		}
		answer.WantError(404, 404)
	}
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(estate)),
		func(kind string) bool { return tried[kind] }); len(missing) > 0 {
		t.Errorf("no route of %v was tried", missing)
	}
	for route, was := range before {
		if now := read()[route]; now != was {
			t.Errorf("%s changed from %s to %s", route, was, now)
		}
	}
}

// at puts the id of the resource of that kind into a route. A route with an id
// whose kind is in no estate fails the test that forgot it.
func at(estate map[string]string, route string) (path string, ok bool) {
	if !strings.Contains(route, ":id") {
		return "", false
	}
	resource, ok := estate[strings.Split(route, "/")[2]]
	if !ok {
		panic("estate has nothing for " + route)
	}
	_, below, _ := strings.Cut(route, ":id")
	return resource + strings.ReplaceAll(below, ":key", "colour"), true
}

// TestNoBodyNamesAnotherTenantsResource sends the hrefs of another tenant in
// bodies: they answer as hrefs that never were, and change nothing.
func TestNoBodyNamesAnotherTenantsResource(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	estate := b.estate()
	other := b.signUp("sly-fox", "stranger@example.test").Tenant.ID
	stranger := b.As(caller.Caller{Tenant: other})
	own := stranger.Post("/v1/directories", `{"name":"Own"}`).Want(201).Href()
	account := stranger.Post(own+"/accounts", jo).Want(201).Href()
	group := stranger.Post(own+"/groups", `{"name":"Own"}`).Want(201).Href()
	for _, c := range []struct {
		path, body   string
		status, code int
	}{
		{
			"/v1/groupMemberships", fmt.Sprintf(`{"account":{"href":%q},"group":{"href":%q}}`, estate["accounts"], group), 400,
			2014,
		},
		{
			"/v1/groupMemberships", fmt.Sprintf(`{"account":{"href":%q},"group":{"href":%q}}`, account, estate["groups"]), 400,
			2014,
		},
		{"/v1/accountLinks", fmt.Sprintf(`{"leftAccount":{"href":%q},"rightAccount":{"href":%q}}`, account,
			estate["accounts"]), 404, 404},
		{"/v1/accountLinks", fmt.Sprintf(`{"leftAccount":{"href":%q},"rightAccount":{"href":%q}}`, estate["accounts"],
			account), 404, 404},
	} {
		theirs := stranger.Post(c.path, c.body).WantError(c.status, c.code)
		never := stranger.Post(c.path,
			strings.NewReplacer(estate["accounts"], base.To("accounts", other), estate["groups"], base.To("groups", other)).
				Replace(c.body)).WantError(c.status, c.code)
		if a, b := theirs.Text("message"), never.Text("message"); a != b {
			t.Errorf("%s tells %q of another tenant's resource and %q of none", c.body, a, b)
		}
	}
	for _, path := range []string{
		estate["groups"] + "/accountMemberships", estate["accounts"] + "/groupMemberships",
		estate["accounts"] + "/accountLinks",
	} {
		if size := b.Get(path).Want(200).Int("size"); size != 1 {
			t.Errorf("%s has %d items, want its own", path, size)
		}
	}
	// Read-only links of a body are ignored, wherever they lead.
	made := stranger.Post("/v1/directories",
		fmt.Sprintf(`{"name":"Moved","tenant":{"href":%q},"accounts":{"href":%q}}`, b.tenant(),
			estate["directories"]+"/accounts")).Want(201)
	if made.Href("tenant") != base.To("tenants", other) {
		t.Errorf("the directory belongs to %s", made.Href("tenant"))
	}
	moved := stranger.Post(account,
		fmt.Sprintf(`{"directory":{"href":%q},"tenant":{"href":%q},"href":%q,"createdAt":"2001-01-01T00:00:00.000Z"}`,
			estate["directories"], b.tenant(), estate["accounts"])).Want(200)
	if moved.Href() != account || moved.Href("directory") != own {
		t.Errorf("the account is %s in %s", moved.Href(), moved.Href("directory"))
	}
}
