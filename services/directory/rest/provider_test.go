package rest_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/pkg/pg"
)

// idpCertificate is the certificate of an identity provider, as JSON text.
var idpCertificate = sync.OnceValue(func() string {
	text, err := json.Marshal(certtest.SelfSigned(time.Unix(0, 0), time.Now().AddDate(10, 0, 0)).Chain())
	if err != nil {
		panic(err)
	}
	return string(text)
})

// What a directory of each type needs at least, and all that it can have.
func ldapConfig(more string) string {
	return `{"directoryHost":"ldap.internal","agentUserDn":"cn=agent,dc=corp","agentUserDnPassword":"agent password","baseDn":"dc=corp",
		"accountConfig":{"objectClass":"person","emailRdn":"mail","givenNameRdn":"givenName","surnameRdn":"sn","usernameRdn":"uid","passwordRdn":"userPassword"},
		"groupConfig":{"objectClass":"groupOfUniqueNames","nameRdn":"cn","descriptionRdn":"description"}` + more + `}`
}

func ldapProvider(more string) string {
	return `{"providerId":"ldap","agent":{"config":` + ldapConfig(more) + `}}`
}

func adProvider(more string) string {
	return strings.NewReplacer(`"ldap"`, `"ad"`, `,"passwordRdn":"userPassword"`, ``).Replace(ldapProvider(more))
}

func social(providerID, more string) string {
	return `{"providerId":"` + providerID + `","clientId":"abc","clientSecret":"a client secret"` + more + `}`
}

func google(more string) string {
	return social("google", `,"redirectUri":"https://app.localhost/callback"`+more)
}

func generic(more string) string {
	return social("forge", `,"providerType":"oauth2","authorizationEndpoint":"https://forge.localhost/oauth/authorize",
		"tokenEndpoint":"https://forge.localhost/oauth/token","resourceEndpoint":"https://forge.localhost/api/me"`+more)
}

func samlProvider(more string) string {
	return `{"providerId":"saml","ssoLoginUrl":"https://idp.localhost/login","ssoLogoutUrl":"https://idp.localhost/logout",
		"encodedX509SigningCert":` + idpCertificate() + more + `}`
}

// mirror makes a directory with a provider and returns its address.
func (b *bench) mirror(name, provider string) string {
	b.Helper()
	return b.Post("/v1/directories", fmt.Sprintf(`{"name":%q,"provider":%s}`, name, provider)).Want(201).Href()
}

func TestProviders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, provider := range map[string]string{
		"native": `{"providerId":"Native"}`,
		"ldap":   ldapProvider(``),
		"ad":     adProvider(``),
		"google": google(``),
		"google_full": google(
			`,"hd":"example.test","display":"POPUP","accessType":"offline","scope":["email","calendar","calendar"]`),
		"facebook":      social("FaceBook", `,"providerType":"facebook"`),
		"github":        social("github", `,"scopes":["repo"]`),
		"linkedin":      social("linkedin", ``),
		"linkedin_full": social("linkedin", `,"redirectURL":"myapp:/callback","scope":["r_liteprofile","r_emailaddress"]`),
		"twitter":       social("twitter", `,"scope":null,"hd":null`),
		"generic":       generic(``),
		"generic_full": strings.Replace(
			generic(`,"idField":"items[0].user_id","accessTokenType":"Access_Token","scope":["read"],
			"introspectionEndpoint":"https://forge.localhost/introspect","acceptForeignTokens":true`), "oauth2", "OAuth", 1),
		"openid":    social("corp", `,"discoveryUrl":"https://corp.localhost/realms/staff","scope":["openid","email"]`),
		"saml":      samlProvider(``),
		"saml_full": samlProvider(`,"requestSignatureAlgorithm":"rsa-sha1","forceAuthn":"true"`),
	} {
		t.Run(name, func(t *testing.T) {
			directory := b.mirror(name, provider)
			answer := b.Get(directory + "/provider").Want(200)
			if certificate := answer.Text("encodedX509SigningCert"); certificate != "" {
				answer.Body = []byte(strings.Replace(string(answer.Body), strings.Trim(idpCertificate(), `"`), "<certificate>", 1))
			}
			answer.Golden("provider_" + name)
			// What was read can be posted: it changes nothing but the time.
			b.Post(directory+"/provider", string(b.Get(directory+"/provider").Body)).Want(200)
			b.Post(directory, string(b.Get(directory).Body)).Want(200)
		})
	}
	b.Get(b.directory("Cloud") + "/provider").Want(200).Golden("provider_native")
	b.Get(b.mirror("Linked", `{"href":"https://localhost:8443/v1/directories/x/provider"}`) + "/provider").Want(200).
		Golden("provider_native")
	b.Get(b.mirror("Null", `null`) + "/provider").Want(200).Golden("provider_native")
	b.Get(b.mirror("Alias", `{"providerId":"Service"}`) + "/provider").Want(200).Golden("provider_native")
}

func TestAProviderIsMadeWhollyOrNotAtAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	pem := func(text string) string { return fmt.Sprintf(`"encodedX509SigningCert":%q`, text) }
	without := func(provider, member string) string {
		var object map[string]any
		if err := json.Unmarshal([]byte(provider), &object); err != nil {
			t.Fatal(err)
		}
		if _, ok := object[member]; !ok {
			t.Fatalf("%s has no %s", provider, member)
		}
		delete(object, member)
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	type refusal struct {
		provider string
		code     int
	}
	refusals := []refusal{
		{`{}`, 2000}, {`"ldap"`, 2004}, {`[]`, 2004}, {`{"providerId":null}`, 2000}, {`{"providerId":" "}`, 2000},
		{`{"providerId":1}`, 2004},
		{`{"providerId":"native","colour":"red"}`, 2015}, {`{"providerId":"native","clientId":"x"}`, 2017},
		{`{"providerId":"native","providerType":"saml"}`, 2002},
		{social("native", `,"providerType":"oauth2"`), 2002}, {social("google", `,"providerType":"oauth2"`), 2002},
		{social("SAML", `,"providerType":"oauth"`), 2002},
		{`{"providerId":"` + strings.Repeat("x", 256) + `","providerType":"oauth2"}`, 2008},

		{google(`,"display":"wide"`), 2003}, {google(`,"display":""`), 2000}, {google(`,"accessType":"sometimes"`), 2003},
		{google(`,"idField":"id"`), 2017},
		{google(`,"scope":"email"`), 2004}, {google(`,"scope":[""]`), 2000}, {google(`,"scope":["a\u0000b"]`), 2006},
		{google(`,"scope":["` + strings.Repeat("x", 256) + `"]`), 2008},
		{google(`,"scope":["x"` + strings.Repeat(`,"x"`, 50) + `]`), 2008},
		{google(`,"redirectUri":"https://a/` + strings.Repeat("x", 2000) + `"`), 2008},
		{google(`,"clientId":null`), 2000}, {google(`,"clientSecret":7`), 2004},
		{google(`,"clientSecret":"` + strings.Repeat("x", 1001) + `"`), 2008},
		{google(`,"agent":{}`), 2017}, {google(`,"attributeStatementMappingRules":{"items":[]}`), 2017},
		{google(`,"ssoLoginUrl":"https://a"`), 2017},
		{social("github", `,"hd":"x"`), 2017}, {social("twitter", `,"forceAuthn":false`), 2017},

		{generic(`,"providerType":"ldap"`), 2003}, {generic(`,"providerType":""`), 2000},
		{generic(`,"accessTokenType":"mac"`), 2003},
		{generic(`,"introspectionEndpoint":"http://a/"`), 2006}, {generic(`,"acceptForeignTokens":"perhaps"`), 2004},
		{google(`,"introspectionEndpoint":"https://a/"`), 2017}, {samlProvider(`,"acceptForeignTokens":false`), 2017},
		{generic(`,"redirectUri":"https://a/"`), 2017}, {generic(`,"idField":"a..b"`), 2006},
		{generic(`,"idField":"` + strings.Repeat("x", 256) + `"`), 2008},

		{samlProvider(`,"requestSignatureAlgorithm":"RSA-MD5"`), 2003}, {samlProvider(`,"forceAuthn":"perhaps"`), 2004},
		{samlProvider(`,"scope":[]`), 2017},
		{samlProvider(`,"ssoLoginUrl":"idp.localhost"`), 2006}, {samlProvider(`,"ssoLogoutUrl":"javascript:alert(1)"`), 2006},
		{samlProvider(`,` + pem("a certificate")), 2006},
		{samlProvider(`,` + pem("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")), 2006},
		{samlProvider(`,` + pem("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n")), 2006},
		{samlProvider(`,"encodedX509SigningCert":"` + strings.Trim(idpCertificate(), `"`) + `trailer"`), 2006},
		{samlProvider(`,"encodedX509SigningCert":"` + strings.Repeat("x", 20_001) + `"`), 2008},
		{samlProvider(`,"userInfoMappingRules":{"items":[]}`), 2017},
		{samlProvider(`,"attributeStatementMappingRules":[]`), 2004},
		{samlProvider(`,"attributeStatementMappingRules":{"items":{}}`), 2004}, {google(`,"entityId":"x"`), 2017},
		{google(`,"clientId":" ","display":"wide"`), 2000},
		{samlProvider(`,"ssoLoginUrl":"x","requestSignatureAlgorithm":"RSA-MD5"`), 2003},
	}
	for _, member := range []string{"authorizationEndpoint", "tokenEndpoint", "resourceEndpoint"} {
		for _, bad := range []string{
			"http://forge.localhost/", "https:///path", "forge.localhost", "https://user@forge.localhost/",
			"https://forge.localhost/#x", "https://%zz/",
		} {
			refusals = append(refusals, refusal{generic(fmt.Sprintf(`,%q:%q`, member, bad)), 2006})
		}
	}
	for _, c := range []struct {
		provider string
		required []string
	}{
		{ldapProvider(``), []string{"agent"}},
		{adProvider(``), []string{"agent"}},
		{google(``), []string{"clientId", "clientSecret", "redirectUri"}},
		{social("facebook", ``), []string{"clientId", "clientSecret"}},
		{social("github", ``), []string{"clientId", "clientSecret"}},
		{social("linkedin", ``), []string{"clientId", "clientSecret"}},
		{social("twitter", ``), []string{"clientId", "clientSecret"}},
		{generic(``), []string{
			"providerId", "clientId", "clientSecret", "authorizationEndpoint", "tokenEndpoint", "resourceEndpoint",
		}},
		{samlProvider(``), []string{"ssoLoginUrl", "ssoLogoutUrl", "encodedX509SigningCert"}},
	} {
		for _, member := range c.required {
			refusals = append(refusals, refusal{without(c.provider, member), 2000})
		}
	}
	before := b.Get(b.tenant() + "/directories").Int("size")
	for _, c := range refusals {
		b.Post("/v1/directories", `{"name":"D","provider":`+c.provider+`}`).WantError(400, c.code)
	}
	if after := b.Get(b.tenant() + "/directories").Int("size"); after != before {
		t.Errorf("%d directories were left by refusals", after-before)
	}
	b.mirror("Taken", `null`)
	b.Post("/v1/directories", `{"name":"Taken","provider":`+ldapProvider(``)+`}`).WantError(409, 2001)
	if n := b.Get(b.tenant() + "/agents").Int("size"); n != 0 {
		t.Errorf("%d agents were left by a refusal", n)
	}
}

func TestLimitsOfAProviderAreAllowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	entries := make([]string, 50)
	for i := range entries {
		entries[i] = fmt.Sprintf(`"%0255d"`, i)
	}
	b.mirror("D", generic(`,"clientSecret":"`+strings.Repeat("ä", 1000)+`","providerId":"`+strings.Repeat("x", 255)+`",
		"idField":"`+strings.Repeat("x", 255)+`","scope":[`+strings.Join(entries, ",")+`]`))
}

func TestAProviderIsUpdated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	directory := b.mirror("Forge", generic(`,"scope":["read"]`))
	provider := directory + "/provider"
	b.clock.Move(time.Minute)
	b.Post(
		provider, `{"providerId":"forge","providerType":"oauth","clientId":"new","clientSecret":"another secret","idField":"data.id",
		"accessTokenType":"oauth_token","scope":null,"resourceEndpoint":"https://forge.localhost/v2/me"}`).Want(200).Golden(
		"provider_updated")
	b.Post(provider, `{"idField":null,"clientSecret":" the third "}`).Want(200)
	b.Get(provider).Want(200).Golden("provider_defaults")
	for body, code := range map[string]int{
		`{"clientSecret":null}`: 2000, `{"tokenEndpoint":"http://forge.localhost"}`: 2006, `{"colour":"red"}`: 2015,
		`{"hd":"x"}`: 2017, `{"idField":"a["}`: 2006,
		`{"providerId":"native"}`: 6202, `{"providerId":"other"}`: 6202, `{"providerId":"google"}`: 6202,
		`{"providerId":null}`: 2000, `{"providerType":"saml"}`: 2003,
	} {
		b.Post(provider, body).WantError(400, code)
	}
	b.Post(directory, `{"name":"New","provider":{"providerId":"other"}}`).WantError(400, 6202)
	b.Get(provider).Want(200).Golden("provider_defaults")

	b.Post(b.mirror("G", google(``))+"/provider",
		`{"redirectURL":"https://other.localhost/","hd":"example.test","providerType":"GOOGLE"}`).
		Want(200).Golden("provider_google_updated")
	b.Post(b.mirror("L", social("linkedin", `,"redirectUri":"https://a/"`))+"/provider", `{"redirectUri":null}`).Want(200).
		Golden("provider_linkedin_updated")
	saml := b.mirror("S", samlProvider(``)) + "/provider"
	if answer := b.Post(saml, `{"forceAuthn":true,"requestSignatureAlgorithm":"RSA-SHA1"}`).
		Want(200); answer.Object()["forceAuthn"] != true {
		t.Errorf("forceAuthn was not set: %s", answer.Body)
	}
	b.Post(saml, `{"encodedX509SigningCert":"x"}`).WantError(400, 2006)
}

func TestACloudDirectoryStaysOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	b.clock.Move(time.Minute)
	before := string(b.Get(staff + "/provider").Want(200).Body)
	for _, body := range []string{`{}`, `{"providerId":"native"}`, `{"providerId":"SERVICE","clientId":"x"}`} {
		if after := string(b.Post(staff+"/provider", body).Want(200).Body); after != before {
			t.Errorf("%s made of %s: %s", body, before, after)
		}
	}
	for _, body := range []string{google(``), `{"providerId":"ldap"}`, `{"providerType":"saml"}`} {
		b.Post(staff+"/provider", body).WantError(400, 6201)
		b.Post(staff, `{"provider":`+body+`}`).WantError(400, 6201)
	}
	b.Post(staff+"/provider", `{"colour":"red"}`).WantError(400, 2015)
}

func TestTheAliasNamesCloudDirectories(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, "acme")
	for _, providerID := range []string{"native", "ACME"} {
		directory := b.mirror(providerID, `{"providerId":"`+providerID+`"}`)
		b.Get(directory + "/provider").Want(200).Golden("provider_alias")
		b.Post(directory+"/provider", `{"providerId":"acme"}`).Want(200)
	}
}

func TestSecretsOfProvidersAreSealed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mirror("G", google(``))
	agent := b.Get(b.mirror("L", ldapProvider(``)) + "/provider").Href("agent")
	for _, table := range []string{"providers", "agents"} {
		rows, err := pg.All[struct{ Row string }](t.Context(), b.db, `SELECT t::text AS row FROM `+table+` t`)
		if err != nil || len(rows) == 0 {
			t.Fatalf("%s has %d rows: %v", table, len(rows), err)
		}
		for _, row := range rows {
			for _, secret := range []string{"a client secret", "agent password"} {
				if strings.Contains(row.Row, secret) || strings.Contains(row.Row, hex.EncodeToString([]byte(secret))) {
					t.Errorf("%s shows %q: %s", table, secret, row.Row)
				}
			}
		}
	}
	if body := string(b.Get(agent).Want(200).Body); strings.Contains(body, "agentUserDnPassword") {
		t.Errorf("the agent shows its password: %s", body)
	}
}

func TestAnotherTenantFindsNoProvider(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ldap, google, saml := b.mirror("L", ldapProvider(``)), b.mirror("G", google(``)), b.mirror("S", samlProvider(``))
	agent := b.Get(ldap + "/provider").Href("agent")
	rules := b.Get(google + "/provider").Href("userInfoMappingRules")
	samlRules := b.Get(saml + "/provider").Href("attributeStatementMappingRules")
	metadata := b.Get(saml + "/provider").Href("serviceProviderMetadata")
	certificate := b.With("Accept", "application/json").Get(metadata).Href("x509SigningCert")
	account := b.Post(b.directory("Staff")+"/accounts", jo).Want(201).Href()
	other := b.As(caller.Caller{Tenant: b.signUp("shy-lynx", "other@example.test").Tenant.ID})
	for _, path := range []string{
		ldap + "/provider", b.tenant() + "/agents", agent, rules, samlRules, metadata, certificate, account + "/providerData",
	} {
		other.Get(path).WantError(404, 404)
	}
	for path, body := range map[string]string{
		google + "/provider": `{"clientId":"mine"}`, agent: `{"config":{"baseDn":"dc=mine"}}`,
		agent + "/ping": `{"status":"ONLINE"}`,
		rules:           `{"items":[]}`, samlRules: `{"items":[]}`,
	} {
		before := string(b.Get(strings.TrimSuffix(path, "/ping")).Body)
		other.Post(path, body).WantError(404, 404)
		if after := string(b.Get(strings.TrimSuffix(path, "/ping")).Body); after != before {
			t.Errorf("another tenant made of %s: %s", before, after)
		}
	}
}

func TestADirectoryTakesItsProviderAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var gone []string
	for i, provider := range []string{ldapProvider(``), google(``), samlProvider(``)} {
		directory := b.mirror(fmt.Sprint(i), provider)
		answer := b.Get(directory + "/provider")
		gone = append(gone, directory+"/provider")
		for _, link := range []string{
			"agent", "userInfoMappingRules", "attributeStatementMappingRules", "serviceProviderMetadata",
		} {
			if answer.Object()[link] != nil {
				gone = append(gone, answer.Href(link))
			}
		}
		b.Delete(directory).Want(204)
	}
	if len(gone) != 7 {
		t.Fatalf("the directories have %v", gone)
	}
	for _, path := range gone {
		b.Get(path).WantError(404, 404)
	}
}

// Clients send more than the interface asks for, and read it back.
func TestProvidersTakeWhatClientsSend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, social := range []string{social("facebook", `,"redirectUri":"no address"`),
		social("github", `,"redirectURL":"no address"`),
		social("twitter", `,"redirectUri":"no address"`), social("google", `,"redirectUri":"no address"`)} {
		made := b.mirror(social[:30], social) + "/provider"
		if got := b.Get(made).Text("redirectUri"); got != "no address" {
			t.Errorf("%s has the redirectUri %q", social, got)
		}
	}
	untyped := b.mirror("Untyped", strings.Replace(generic(``), `"providerType":"oauth2",`, "", 1)) + "/provider"
	if got := b.Get(untyped).Text("providerType"); got != "oauth2" {
		t.Errorf("a provider without providerType has %q", got)
	}

	certificate := strings.ReplaceAll(strings.Trim(idpCertificate(), `"`), `\n`, `  \n   `) + `\r\n  `
	saml := b.mirror("SAML",
		samlProvider(`,"entityId":"https://idp.example.test/","encodedX509SigningCert":"`+certificate+`"`)) + "/provider"
	read := b.Get(saml)
	if got := read.Text("encodedX509SigningCert"); got != strings.NewReplacer(`\n`, "\n", `\r`, "\r").
		Replace(certificate) {
		t.Errorf("an indented certificate becomes %q", got)
	}
	if got := read.Text("entityId"); got != "https://idp.example.test/" {
		t.Errorf("the entityId is %q", got)
	}
	if got, null := b.Post(saml, `{"entityId":null}`).Want(200).Object()["entityId"]; null {
		t.Errorf("the entityId is %v after null", got)
	}
}

func TestTheRulesOfAProviderAreReplacedWithIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for member, provider := range map[string]string{
		"userInfoMappingRules": social("github", ``), "attributeStatementMappingRules": samlProvider(``),
	} {
		provider := b.mirror(member, provider) + "/provider"
		rules := b.Get(provider).Href(member)
		count := func() int { return len(b.Get(rules).Items()) }
		b.Post(provider, `{"`+member+`":{"items":[{"name":"x","accountAttributes":["surname"]}],"dirty":true,"length":{}}}`).
			Want(200)
		if count() != 1 {
			t.Errorf("%s: %d rules after an update of the provider", member, count())
		}
		b.Post(provider, `{"`+member+`":{"items":[{"name":"x","accountAttributes":["status"]}]}}`).WantError(400, 2002)
		b.Post(provider, `{"`+member+`":{"dirty":true}}`).Want(200)
		b.Post(provider, string(b.Get(provider).Body)).Want(200)
		if count() != 1 {
			t.Errorf("%s: %d rules after updates that name none", member, count())
		}
		b.Post(provider, `{"`+member+`":{"items":[]}}`).Want(200)
		if count() != 0 {
			t.Errorf("%s: %d rules after an update to none", member, count())
		}
	}
}
