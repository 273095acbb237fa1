package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// notSent are the operations whose examples need what no example can have.
var notSent = map[string]string{
	"createSmtpServer": "an SMTP server that answers", "getSmtpServer": "an SMTP server", "updateSmtpServer": "an SMTP server",
	"answerChallenge": "the code of the moment", "startSamlLogin": "a browser that begins a login",
	"authorizeClient": "a browser that begins a login", "endClientAuthorization": "a browser that comes from a provider",
	"startSamlSignOn": "a browser that comes from a service provider",
	"listAgentChecks": "a login that waits for an agent", "answerAgentCheck": "a login that waits for an agent",
	"syncAgent": "an agent's own key", "pingAgent": "an agent's own key", "downloadAgent": "an agent of a release",
	"verifyAuthnRequest": "a request of a service provider", "createSamlResponse": "a request of a service provider",
	"consumeSamlResponse": "an answer of an identity provider", "getSamlServiceProviderMetadata": "a directory of an identity provider",
	"createAccountStoreMapping": "a directory that is not mapped",
	"registerClient":            "an email that is free", "changePassword": "the token of a mail", "checkResetToken": "the token of a mail",
	"verifyClientEmail": "the token of a mail", "showProfile": "a login", "enrollClientFactor": "a login with a second step",
	"challengeClientFactor": "a login with a second step",
	"listMySessions":        "a login", "listMyConsents": "a login", "getSession": "a login of a browser", "getConsent": "a login of a browser",
}

// example is a body, in one content type.
type example struct {
	kind string
	body any
}

// operation is the members of an OpenAPI operation that the test needs.
type operation struct {
	OperationID string `json:"operationId"`
	Parameters  []struct {
		Ref      string `json:"$ref"`
		Name     string
		Required bool
		Schema   struct{ Example any }
	}
	RequestBody struct {
		Content map[string]struct {
			Example  any
			Examples map[string]struct{ Value any }
			Schema   struct {
				Ref string `json:"$ref"`
			}
		}
	}
	Responses map[string]any
}

type interfaceDocument struct {
	Paths      map[string]map[string]operation
	Components struct {
		Parameters map[string]struct {
			Name, In string
			Example  any
		}
		Schemas map[string]struct{ Example any }
	}
}

// describe returns the description of the deployment.
func describe(t *testing.T) (document interfaceDocument) {
	t.Helper()
	if err := json.Unmarshal(client.Want(t, http.StatusOK, get(client.Key.HostURL()+"/openapi.json")).Body, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

// Every example of the description is sent to the deployment, in the names of
// resources that it has, and succeeds as the description has it.
func TestEveryExampleSucceeds(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Create(t, fixture.Application.Link(t, "accounts"), e2e.Object{"email": "jo@example.test", "username": "jo-examples", "password": e2e.Password})
	var document interfaceDocument
	text := string(client.Want(t, http.StatusOK, get(client.Key.HostURL()+"/openapi.json")).Body)
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	known, twin := exampleResources(t, fixture, account)
	mirror := document.Paths["/v1/directories"]["post"].RequestBody.Content["application/json"].Examples["ldap"].Value.(map[string]any)
	mirror["name"] = e2e.Unique("mirror")
	directory := client.Create(t, "/directories?expand=provider", mirror)
	client.DeleteAtEnd(t, directory.Href())
	known["agentId"] = directory.Object("provider").Object("agent").ID()
	for name, id := range known {
		if strings.HasPrefix(name, "/") {
			continue
		}
		text = strings.ReplaceAll(text, document.Components.Parameters[name].Example.(string), id)
	}
	right := document.Paths["/v1/accountLinks"]["post"].RequestBody.Content["application/json"].Example.(map[string]any)["rightAccount"]
	text = strings.ReplaceAll(text, e2e.Object(right.(map[string]any)).ID(), twin.ID())
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}

	type call struct {
		method, path string
		op           operation
		example      example
	}
	var creations, reads, changes []call
	for path, operations := range document.Paths {
		managed := strings.HasPrefix(path, "/v1/")
		for method, op := range operations {
			if notSent[op.OperationID] != "" || method == "delete" || !managed && !strings.HasPrefix(path, "/client/") {
				continue
			}
			for _, each := range document.examples(op) {
				x := call{strings.ToUpper(method), path, op, each}
				switch {
				case method == "get":
					reads = append(reads, x)
				case op.Responses["201"] != nil:
					creations = append(creations, x)
				default:
					changes = append(changes, x)
				}
			}
		}
	}
	// Emails are verified from the first change on, and the password ends with the last.
	order := map[string]int{"updateAccountCreationPolicy": -1, "resetPassword": 1}
	slices.SortStableFunc(changes, func(a, b call) int { return order[a.op.OperationID] - order[b.op.OperationID] })
	for _, x := range slices.Concat(creations, reads, changes) {
		t.Run(x.op.OperationID, func(t *testing.T) {
			address := document.address(t, x.path, known, x.op)
			request := e2e.Request{Method: x.method, URL: address, Anonymous: !strings.HasPrefix(x.path, "/v1/"), Body: x.example.body}
			if x.example.kind == "application/x-www-form-urlencoded" {
				form := url.Values{}
				for name, value := range x.example.body.(map[string]any) {
					form.Set(name, value.(string))
				}
				request.Body = form
			}
			answer := client.Call(t, request)
			if answer.Status >= http.StatusBadRequest || x.op.Responses[strconv.Itoa(answer.Status)] == nil {
				t.Fatalf("the example %v of %s %s is refused: %s", x.example.body, x.method, x.path, answer)
			}
			if created := answer.Header.Get("Location"); answer.Status == http.StatusCreated && created != "" && !strings.Contains(x.path, "Mappings") {
				client.Call(t, del(created)) // so that a name is free
			}
		})
	}
	for id := range notSent {
		if !strings.Contains(text, `"`+id+`"`) {
			t.Errorf("the description has no operation %s", id)
		}
	}
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// address fills in the path of an operation, and the examples of its parameters.
func (d *interfaceDocument) address(t *testing.T, path string, known map[string]string, op operation) string {
	t.Helper()
	address := client.Key.HostURL() + placeholder.ReplaceAllStringFunc(path, func(name string) string {
		name = strings.Trim(name, "{}")
		collection, _, _ := strings.Cut(path, "{")
		if id := known[collection]; id != "" {
			return id
		}
		if known[name] == "" && name != "key" {
			t.Fatalf("%s names a resource that the test does not make: %s", path, name)
		}
		return d.Components.Parameters[name].Example.(string)
	})
	query := url.Values{}
	for _, each := range op.Parameters {
		if value, ok := each.Schema.Example.(string); ok && each.Required {
			query.Set(each.Name, value)
		}
		p := d.Components.Parameters[each.Ref[strings.LastIndexByte(each.Ref, '/')+1:]]
		if value, ok := p.Example.(string); ok && p.In == "query" {
			query.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// examples are the bodies of an operation; one nil for an operation without.
func (d *interfaceDocument) examples(op operation) []example {
	var found []example
	for kind, content := range op.RequestBody.Content {
		for _, each := range content.Examples {
			found = append(found, example{kind, each.Value})
		}
		shared := d.Components.Schemas[content.Schema.Ref[strings.LastIndexByte(content.Schema.Ref, '/')+1:]].Example
		switch {
		case content.Example != nil:
			found = append(found, example{kind, content.Example})
		case len(content.Examples) == 0 && shared != nil:
			found = append(found, example{kind, shared})
		}
	}
	if len(op.RequestBody.Content) == 0 {
		found = append(found, example{})
	}
	return found
}

// exampleResources makes one resource of each kind and returns their ids by the
// parameters that name them, or by the beginning of a path where that needs
// another, and an account of another directory.
func exampleResources(t *testing.T, fixture e2e.Fixture, account e2e.Object) (known map[string]string, twin e2e.Object) {
	t.Helper()
	other := client.Create(t, "/directories", e2e.Object{"name": e2e.Unique("other")})
	client.DeleteAtEnd(t, other.Href())
	group := client.Create(t, fixture.Directory.Link(t, "groups"), e2e.Object{"name": e2e.Unique("group")})
	organization := client.Create(t, "/organizations", e2e.Object{"name": e2e.Unique("organization"), "nameKey": strings.ToLower(e2e.Unique("key"))})
	client.DeleteAtEnd(t, organization.Href())
	factor := client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator"})
	provider := client.Create(t, "/registeredSamlServiceProviders", e2e.Object{
		"assertionConsumerServiceUrl": "https://wiki.localhost/acs", "entityId": "urn:" + e2e.Unique("wiki"),
	})
	client.DeleteAtEnd(t, provider.Href())
	policy := client.Get(t, fixture.Application.Link(t, "samlPolicy"))
	identity := client.Get(t, policy.Link(t, "identityProvider"))
	schema := client.Get(t, fixture.Directory.Link(t, "accountSchema"))
	reset := client.WantObject(t, http.StatusOK, post(fixture.Application.Link(t, "passwordResetTokens"), e2e.Object{"email": account.Text("email")}))
	token := client.Token(t, fixture.Application.Href(), passwordGrant(account.Text("email"), e2e.Password))
	config := webConfig(t, fixture.Application)
	social := client.Create(t, "/directories?expand=provider", e2e.Object{"name": e2e.Unique("social"), "provider": e2e.Object{
		"providerId": "google", "clientId": "abc", "clientSecret": "def", "redirectUri": "https://app.localhost/callback",
	}})
	client.DeleteAtEnd(t, social.Href())
	bare := client.NewApplication(t)
	elsewhere := client.Get(t, client.Get(t, bare.Link(t, "samlPolicy")).Link(t, "identityProvider"))
	unverified := client.Register(t, client.NewVerificationFixture(t).Application.Link(t, "accounts"))
	twin = client.Register(t, other.Link(t, "accounts"))
	third := client.Register(t, fixture.Directory.Link(t, "accounts"))
	passwords := client.Get(t, fixture.Directory.Link(t, "passwordPolicy"))
	known = map[string]string{"dnsLabel": config.Text("dnsLabel"), "jwt": token.Text("access_token"), "token": reset.ID()}
	known["/v1/accounts/emailVerificationTokens/"] = unverified.Object("emailVerificationToken").ID()
	known["/v1/refreshTokens/"] = client.Get(t, account.Link(t, "refreshTokens")).Items(t)[0].ID()
	for name, resource := range map[string]e2e.Object{
		"tenantId": client.Tenant(t), "applicationId": fixture.Application, "directoryId": fixture.Directory, "accountId": account, "groupId": group,
		"organizationId": organization, "factorId": factor, "schemaId": schema, "webConfigId": config, "samlPolicyId": policy,
		"accountStoreMappingId": fixture.Application.Object("defaultAccountStoreMapping"), "samlServiceProviderId": provider,
		"samlIdentityProviderId": identity, "ownSamlServiceProviderId": policy.Object("serviceProvider"),
		"accountLinkingPolicyId":         fixture.Application.Object("accountLinkingPolicy"),
		"openIdClientId":                 client.Create(t, fixture.Application.Href()+"/openIdClients", e2e.Object{"name": e2e.Unique("client")}),
		"signingKeyId":                   client.Get(t, client.Tenant(t).Link(t, "signingKeys")).Items(t)[0],
		"fieldId":                        client.Get(t, schema.Link(t, "fields")).Items(t)[0],
		"idSiteId":                       client.Get(t, client.Tenant(t).Link(t, "idSites")).Items(t)[0],
		"emailTemplateId":                client.Get(t, passwords.Link(t, "resetEmailTemplates")).Items(t)[0],
		"phoneId":                        client.Create(t, account.Link(t, "phones"), e2e.Object{"number": "+12675555557"}),
		"challengeId":                    client.Create(t, factor.Link(t, "challenges"), e2e.Object{}),
		"apiKeyId":                       client.Create(t, account.Link(t, "apiKeys"), e2e.Object{}),
		"tokenId":                        client.Get(t, account.Link(t, "accessTokens")).Items(t)[0],
		"samlIdentityProviderMetadataId": identity.Object("metadata"), "certificateId": identity.Object("x509SigningCert"),
		"rulesId":                          social.Object("provider").Object("userInfoMappingRules"),
		"attributeStatementMappingRulesId": identity.Object("attributeStatementMappingRules"),
		"groupMembershipId": client.Create(t, "/groupMemberships", e2e.Object{
			"account": e2e.Object{"href": third.Href()}, "group": e2e.Object{"href": group.Href()},
		}),
		"accountLinkId": client.Create(t, "/accountLinks", e2e.Object{
			"leftAccount": e2e.Object{"href": third.Href()}, "rightAccount": e2e.Object{"href": client.Register(t, other.Link(t, "accounts")).Href()},
		}),
		"organizationAccountStoreMappingId": client.Create(t, "/organizationAccountStoreMappings", e2e.Object{
			"organization": e2e.Object{"href": organization.Href()}, "accountStore": e2e.Object{"href": other.Href()},
			"isDefaultAccountStore": true, "isDefaultGroupStore": true,
		}),
		"samlServiceProviderRegistrationId": client.Create(t, elsewhere.Link(t, "samlServiceProviderRegistrations"), e2e.Object{
			"serviceProvider": e2e.Object{"href": provider.Href()},
		}),
	} {
		known[name] = resource.ID()
	}
	return known, twin
}
