package e2e_test

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// notion is what a text means, where one value has several spellings. pkg/field and pkg/href have
// one function for each, and every door, which is a member of a body or a parameter, asks it.
type notion int

const (
	loginName notion = iota + 1
	address
	phoneNumber
	oneTimeCode
	datetime
)

// notions are the names under which the interface reads one. What else has such a name stands in
// otherMeanings.
var notions = map[string]notion{
	"email": loginName, "username": loginName, "login": loginName, "value": loginName,
	"href": address, "account_store_href": address, "organization_href": address,
	"number": phoneNumber, "code": oneTimeCode,
	"createdAt": datetime, "modifiedAt": datetime, "passwordModifiedAt": datetime,
}

// otherMeanings are doors of another notion with such a name.
var otherMeanings = map[string]string{
	"providerData.code": "an authorization code, which the provider reads",
	"POST /v1/applications/{applicationId}/oauth/token code":   "an authorization code",
	"POST /oidc/{applicationId}/token code":                    "an authorization code",
	"POST /client/{dnsLabel}/oauth/token code":                 "a code that comes again as it was issued",
	"POST /sso/provider code":                                  "an authorization code",
	"GET /sso/provider ?code":                                  "an authorization code",
	"POST /client/{dnsLabel}/authorize/callback code":          "an authorization code",
	"GET /client/{dnsLabel}/authorize/callback ?code":          "an authorization code",
	"POST /v1/agents/{agentId}/authentications/{checkId} code": "a number of an error",
	"POST /v1/smtpServers username":                            "a name at an SMTP server",
	"POST /v1/smtpServers/{smtpServerId} username":             "a name at an SMTP server",
	"GET /v1/tenants/{tenantId}/smtpServers ?username":         "a name at an SMTP server",
}

// respelled returns another spelling of the value.
func respelled(n notion, value string) string {
	switch n {
	case loginName:
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err == nil && bytes.Contains(decoded, []byte(":")) { // the value of a login attempt
			login, password, _ := strings.Cut(string(decoded), ":")
			return base64.StdEncoding.EncodeToString([]byte(respelled(loginName, login) + ":" + password))
		}
		return "\u2003" + strings.ToUpper(value) + "\n"
	case address:
		scheme, rest, _ := strings.Cut(value, "://")
		host, path, _ := strings.Cut(rest, "/")
		return strings.ToUpper(scheme) + "://" + strings.ToUpper(host) + "/" + path
	case phoneNumber:
		return "\u202a" + value + "\u202c"
	case oneTimeCode: // in two groups, with full-width digits
		wide := strings.Map(func(r rune) rune { return r - '0' + '\uff10' }, value)
		return " " + wide[:len(wide)/2] + "\u00a0" + wide[len(wide)/2:] + "\n"
	}
	return value
}

// respell returns a body with other spellings of its values, and collects its doors.
func respell(body any, name, path string, doors map[string]bool) any {
	switch value := body.(type) {
	case e2e.Object:
		changed := e2e.Object{}
		for member, each := range value {
			changed[member] = respell(each, member, strings.TrimPrefix(path+"."+member, "."), doors)
		}
		return changed
	case []e2e.Object:
		changed := make([]any, len(value))
		for i, each := range value {
			changed[i] = respell(each, "", path+".[]", doors)
		}
		return changed
	case string:
		if n := notions[name]; n != 0 && otherMeanings[path] == "" {
			doors[path] = true
			return respelled(n, value)
		}
	}
	return body
}

// doorsOf returns the doors of all operations of the description, "POST /v1/accounts/{accountId} email",
// with their notions. The table of routes and the description are held to each other in gateway and
// services/idsite/rest.
func doorsOf(t *testing.T) map[string]notion {
	t.Helper()
	document := client.WantObject(t, http.StatusOK, get(client.Key.HostURL()+"/openapi.json"))
	resolve := func(s e2e.Object) e2e.Object {
		for s.Text("$ref") != "" {
			target := document
			for name := range strings.SplitSeq(strings.TrimPrefix(s.Text("$ref"), "#/"), "/") {
				target = target.Object(name)
			}
			s = target
		}
		return s
	}
	found := map[string]notion{}
	add := func(operation, path, name string, schema e2e.Object) {
		n := notions[name]
		isText := schema.Text("type") != "object" && schema.Text("type") != "boolean"
		if n != 0 && isText && otherMeanings[path] == "" && otherMeanings[operation+" "+path] == "" {
			found[operation+" "+path] = n
		}
	}
	var members func(operation, path string, schema e2e.Object)
	members = func(operation, path string, schema e2e.Object) {
		schema = resolve(schema)
		if strings.Count(path, ".") > 3 {
			return
		}
		for _, kind := range []string{"allOf", "oneOf", "anyOf"} {
			alternatives, _ := schema[kind].([]any)
			for _, each := range alternatives {
				members(operation, path, e2e.Object(each.(map[string]any)))
			}
		}
		for name := range schema.Object("properties") {
			member := resolve(schema.Object("properties").Object(name))
			if member["readOnly"] == true {
				continue
			}
			below := strings.TrimPrefix(path+"."+name, ".")
			add(operation, below, name, member)
			members(operation, below, member)
		}
		if schema["items"] != nil {
			members(operation, path+".[]", schema.Object("items"))
		}
	}
	for path := range document.Object("paths") {
		for method := range document.Object("paths").Object(path) {
			operation := strings.ToUpper(method) + " " + path
			described := document.Object("paths").Object(path).Object(method)
			parameters, _ := described["parameters"].([]any)
			for _, each := range parameters {
				p := resolve(e2e.Object(each.(map[string]any)))
				if p.Text("in") == "query" {
					name := p.Text("name")
					add(operation, "?"+name, name[strings.LastIndexByte(name, '.')+1:], resolve(p.Object("schema")))
				}
			}
			for kind := range described.Object("requestBody").Object("content") {
				members(operation, "", described.Object("requestBody").Object("content").Object(kind).Object("schema"))
			}
		}
	}
	return found
}

// triedElsewhere are doors that need more than a body, with the tests that try them.
var triedElsewhere = map[string]string{
	"GET /applications/{applicationId}/saml/sso/idpRedirect ?accountStore.href": "TestAHostedPageLogsInAtASAMLIdentityProvider",
	"GET /client/{dnsLabel}/authorize ?account_store_href":                      "TestASAMLLoginThroughAnOrganization",
	"GET /client/{dnsLabel}/authorize ?organization_href":                       "TestASAMLLoginThroughAnOrganization",
	"POST /client/{dnsLabel}/challenges code":                                   "TestSecondFactorsByAClientAPI",
	"POST /client/{dnsLabel}/factors phone.number":                              "TestSecondFactorsByAClientAPI",
	"POST /client/{dnsLabel}/change accountStore.href":                          "TestPasswordsOfAClientAPI",
	"POST /factors/{factorId}/challenges code":                                  "TestAHostedLoginWithASecondFactor",
	"POST /challenges/{challengeId} code":                                       "TestAHostedLoginWithASecondFactor",
	"POST /accounts/{accountId}/factors phone.number":                           "TestAHostedLoginWithASecondFactor",
	"POST /applications/{applicationId}/verificationEmails accountStore.href":   "TestAPageSendsTheVerificationMailAgainAfterTheRightPassword",
	"POST /applications/{applicationId}/verificationEmails login":               "TestAPageSendsTheVerificationMailAgainAfterTheRightPassword",
	"POST /register email":                                                      "TestAnInvitationIsAcceptedWithItsEmail",
	"POST /v1/agents/{agentId}/sync accounts.[].email":                          "TestASyncReadsLoginNamesAsEveryDoorDoes",
	"POST /v1/agents/{agentId}/sync accounts.[].username":                       "TestASyncReadsLoginNamesAsEveryDoorDoes",
}

// Every door takes every spelling of a value, and a new one that is not tried fails here.
func TestEveryDoorTakesEverySpelling(t *testing.T) {
	fixture := client.NewFixture(t)
	application, directory := fixture.Application, fixture.Directory
	account := client.Create(t, application.Link(t, "accounts"), e2e.Object{
		"email": e2e.Unique("jo") + "@example.test", "username": e2e.Unique("jo"), "password": e2e.Password,
		"givenName": "Jo", "surname": "Doe",
	})
	known, twin := exampleResources(t, fixture, account)
	document := describe(t)
	for name, id := range known { // the description's examples name other resources
		if p, ok := document.Components.Parameters[name]; ok {
			p.Example = id
			document.Components.Parameters[name] = p
		}
	}
	refer := func(resource e2e.Object) e2e.Object { return e2e.Object{"href": resource.Href()} }
	fresh := func() string { return e2e.Unique("door") + "@example.test" }
	created := func() e2e.Object {
		body := e2e.NewAccount(fresh())
		body["username"] = e2e.Unique("door")
		return body
	}
	newDirectory := func() e2e.Object {
		made := client.Create(t, "/directories", e2e.Object{"name": e2e.Unique("door")})
		client.DeleteAtEnd(t, made.Href())
		return made
	}
	at := func(body e2e.Object, store e2e.Object) e2e.Object {
		body["accountStore"] = refer(store)
		return body
	}
	organization := e2e.Object{"href": client.Key.BaseURL + "/organizations/" + known["organizationId"]}
	group := e2e.Object{"href": client.Key.BaseURL + "/groups/" + known["groupId"]}
	email, username := account.Text("email"), account.Text("username")
	passwordLogin := e2e.Object{"grant_type": "password", "username": email, "password": e2e.Password}
	social := newSocial(t, application, google())
	provided := func(store e2e.Object) e2e.Object {
		_, _, token := newUser()
		return e2e.Object{"providerData": at(e2e.Object{"providerId": "google", "accessToken": token}, store)}
	}
	for _, mapped := range []e2e.Object{directory, social} {
		client.Create(t, "/organizationAccountStoreMappings", at(e2e.Object{"organization": organization}, mapped))
	}
	for _, mapped := range []e2e.Object{organization, group} {
		client.Create(t, "/accountStoreMappings", e2e.Object{"application": refer(application), "accountStore": mapped})
	}
	client.Update(t, directory.Link(t, "accountCreationPolicy"), e2e.Object{"verificationEmailStatus": "ENABLED"})
	config := client.Key.BaseURL + "/applicationWebConfigs/" + known["webConfigId"]
	client.Update(t, config, e2e.Object{"verifyEmail": e2e.Object{"enabled": true}})
	authenticator := func() (factor e2e.Object, code string) {
		factor = client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator"})
		return factor, totpCode(t, factor.Text("keyUri"), time.Now())
	}
	answered, answer := authenticator()
	known["/v1/challenges/"] = client.Create(t, answered.Link(t, "challenges"), e2e.Object{}).ID()
	challenged, code := authenticator()
	known["/v1/factors/"] = challenged.ID()
	phone := client.Create(t, account.Link(t, "phones"), e2e.Object{"number": "+12675555503"})
	identity := client.Get(t, "/samlIdentityProviders/"+known["samlIdentityProviderId"])
	newServiceProvider := func() e2e.Object {
		made := client.Create(t, "/registeredSamlServiceProviders", e2e.Object{
			"assertionConsumerServiceUrl": "https://wiki.localhost/acs", "entityId": "urn:" + e2e.Unique("wiki"),
		})
		client.DeleteAtEnd(t, made.Href())
		return made
	}
	registered := newServiceProvider()
	registrations := identity.Link(t, "samlServiceProviderRegistrations")
	client.Create(t, registrations, e2e.Object{"serviceProvider": refer(registered)})
	bodies := map[string][]e2e.Object{
		"POST /v1/tenants/{tenantId}/invitations": {{"email": fresh()}},
		"POST /v1/applications/{applicationId}/accounts": {
			at(created(), application),
			provided(organization),
		},
		"POST /v1/directories/{directoryId}/accounts": {
			at(created(), directory),
			provided(organization),
		},
		"POST /v1/organizations/{organizationId}/accounts": {
			at(created(), organization),
		},
		"POST /v1/accounts/{accountId}":                             {{"email": email, "username": username}},
		"POST /v1/applications/{applicationId}/loginAttempts":       {at(loginBody(email, e2e.Password), directory)},
		"POST /v1/applications/{applicationId}/verificationEmails":  {at(e2e.Object{"login": email}, directory)},
		"POST /v1/applications/{applicationId}/passwordResetTokens": {at(e2e.Object{"email": email}, directory)},
		"POST /v1/applications/{applicationId}/oauth/token":         {passwordLogin},
		"POST /v1/accountStoreMappings":                             {at(e2e.Object{"application": refer(application)}, newDirectory())},
		"POST /v1/organizationAccountStoreMappings": {
			at(e2e.Object{"organization": organization}, newDirectory()),
		},
		"POST /v1/openIdProviders/{applicationId}": {
			{"scopes": []e2e.Object{{"name": "orders", "groups": []e2e.Object{group}}}},
		},
		"POST /v1/openIdClients/{openIdClientId}/tokenPreviews": {{"account": refer(account)}},
		"POST /v1/groupMemberships":                             {{"account": refer(account), "group": group}},
		"POST /v1/accountLinks":                                 {{"leftAccount": refer(account), "rightAccount": refer(twin)}},
		"POST /v1/accounts/{accountId}/phones":                  {{"number": "+12675555501"}},
		"POST /v1/phones/{phoneId}":                             {{"number": "+12675555557"}},
		"POST /v1/accounts/{accountId}/factors": {
			{"type": "SMS", "phone": e2e.Object{"number": "+12675555502"}},
			{"type": "SMS", "phone": refer(phone)},
		},
		"POST /v1/factors/{factorId}/challenges": {{"code": code}},
		"POST /v1/challenges/{challengeId}":      {{"code": answer}},
		"POST /v1/applicationWebConfigs/{webConfigId}": {
			{"signingApiKey": e2e.Object{"href": client.Key.BaseURL + "/apiKeys/" + client.Key.ID}},
		},
		"POST /v1/samlServiceProviders/{ownSamlServiceProviderId}/defaultRelayStates": {
			{"organization": organization},
		},
		"POST /v1/samlIdentityProviders/{samlIdentityProviderId}/samlServiceProviderRegistrations": {
			{"serviceProvider": refer(newServiceProvider()), "identityProvider": refer(identity)},
		},
		"POST /v1/samlIdentityProviders/{samlIdentityProviderId}/samlResponses": {{
			"account": refer(account), "serviceProvider": refer(registered),
			"requestId": "_a1", "authnIssueInstant": "2026-11-20T20:25:00.000Z",
		}},
		"POST /client/{dnsLabel}/login": {
			at(e2e.Object{"login": email, "password": e2e.Password}, directory),
			{"username": username, "password": e2e.Password},
		},
		"POST /client/{dnsLabel}/register": {created()},
		"POST /client/{dnsLabel}/forgot": {
			at(e2e.Object{"email": email}, directory),
			{"login": email},
		},
		"POST /client/{dnsLabel}/verify": {
			at(e2e.Object{"email": email}, directory),
			{"login": email},
		},
		"POST /client/{dnsLabel}/oauth/token": {passwordLogin},
	}
	authorize(t, application, callback)
	onPage := map[string][]e2e.Object{
		"POST /applications/{applicationId}/loginAttempts": {at(loginBody(email, e2e.Password), directory)},
		"POST /applications/{applicationId}/accounts": {
			at(created(), directory),
			provided(organization),
		},
		"POST /applications/{applicationId}/passwordResetTokens": {at(e2e.Object{"email": email}, directory)},
		"POST /directories/{directoryId}/accounts": {
			at(created(), directory),
			provided(directory),
		},
		"POST /organizations/{organizationId}/accounts": {
			at(created(), organization),
			provided(organization),
		},
		"POST /groups/{groupId}/accounts": {
			at(created(), group),
			provided(group),
		},
	}
	maps.Copy(bodies, onPage)
	tried := map[string]bool{}
	for _, operation := range slices.Sorted(maps.Keys(bodies)) {
		for _, body := range bodies[operation] {
			t.Run(operation, func(t *testing.T) {
				method, path, _ := strings.Cut(operation, " ")
				doors := map[string]bool{}
				known["/v1/directories/"] = directory.ID()
				if body["providerData"] != nil {
					known["/v1/directories/"] = social.ID()
				}
				changed := respell(body, "", "", doors).(e2e.Object)
				request := e2e.Request{
					Method: method, URL: document.address(t, path, known, document.operation(t, operation)),
					Anonymous: !strings.HasPrefix(path, "/v1/"), Body: changed,
				}
				if strings.HasSuffix(path, "/oauth/token") {
					form := url.Values{}
					for name, value := range changed {
						form.Set(name, value.(string))
					}
					request.Body = form
				}
				if onPage[operation] != nil { // docs/interface/id-site.md#session-token-api
					request.URL = strings.Replace(request.URL, client.Key.HostURL(), client.Key.BaseURL, 1)
					where := body
					if provided, ok := body["providerData"].(e2e.Object); ok {
						where = provided
					}
					asked := e2e.Object{"path": "/register", "ash": where["accountStore"].(e2e.Object).Href()}
					opened := begin(t, client.Browser(), application, asked, "/register")
					request.Header = http.Header{"Origin": {pageOrigin(t)}, "Authorization": {"Bearer " + opened.token}}
				}
				answer := client.Call(t, request)
				text := string(answer.Body)
				noProvider := strings.Contains(text, `"code":5201`) // the store was understood
				if answer.Status >= http.StatusBadRequest && !noProvider || strings.Contains(text, `"FAILED"`) {
					t.Errorf("another spelling, %+q, is refused: %s", changed, answer)
				}
				for door := range doors {
					tried[operation+" "+door] = true
				}
			})
		}
	}

	doors := doorsOf(t)
	for door, n := range doors {
		operation, name, query := strings.Cut(door, " ?")
		method, path, _ := strings.Cut(operation, " ")
		if !query || method != http.MethodGet || !strings.HasPrefix(path, "/v1/") {
			continue
		}
		search := func(value string) e2e.Answer {
			list := document.address(t, path, known, document.operation(t, operation))
			return client.Call(t, get(list+"?"+name+"="+url.QueryEscape(value)))
		}
		if n == datetime {
			for offset, status := range map[string]int{"+05:30": 200, "+25:00": 400, "+02:60": 400} {
				if answer := search("[2026-01-01T00:00:00" + offset + ",]"); answer.Status != status {
					t.Errorf("%s with the offset %s: %s, want %d", door, offset, answer, status)
				}
			}
			tried[door] = true
			continue
		}
		value := map[string]string{
			"email": email, "username": username, "number": phone.Text("number"), "application.href": application.Href(),
		}[name]
		if strings.HasSuffix(path, "/linkedAccounts") {
			value = twin.Text(name)
		}
		found, err := search(respelled(n, value)).Object()
		if err != nil || found.Number(t, "size") == 0 {
			t.Errorf("%s does not find %+q: %v, %v", door, respelled(n, value), found, err)
		}
		tried[door] = true
	}
	for _, door := range slices.Sorted(maps.Keys(doors)) {
		if !tried[door] && triedElsewhere[door] == "" {
			t.Errorf("nothing tries other spellings at %s", door)
		}
	}
	var sources strings.Builder
	if err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile("../../" + path)
		sources.Write(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for door, test := range triedElsewhere {
		if doors[door] == 0 || !strings.Contains(sources.String(), "\nfunc "+test+"(t *testing.T)") {
			t.Errorf("%s has no %s, or the description no such door", door, test)
		}
	}
}

// operation returns the operation of "POST /path".
func (d *interfaceDocument) operation(t *testing.T, name string) operation {
	t.Helper()
	method, path, _ := strings.Cut(name, " ")
	found, ok := d.Paths[path][strings.ToLower(method)]
	if !ok {
		t.Fatalf("the description has no %s", name)
	}
	return found
}
