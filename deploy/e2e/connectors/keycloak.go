package connectors

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// Keycloak is one server with one realm, which all scenarios of a run share:
// each makes its own users, clients and identity providers in it.
type Keycloak struct {
	*harness.Daemon

	// URL is its address; the realm is below it, at Realm.
	URL string

	client   *e2e.Client
	password string // of its administrator
}

// Realm is the path of the realm.
const Realm = "/realms/doorward"

// Compiled for a quick start rather than for a long run. The open packages are
// those that its own start script opens.
var keycloakJava = []string{
	"-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Dfile.encoding=UTF-8",
	"--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
	"--add-opens=java.base/java.security=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED",
	"-Djava.util.concurrent.ForkJoinPool.common.threadFactory=io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory",
	"-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
}

// StartKeycloak runs the distribution that setup.sh has fetched, on a port of
// 127.0.0.1, with its database in memory. It trusts the authority and that of Doorward (a file in PEM).
func StartKeycloak(ctx context.Context, dir string, authority *harness.Authority, doorward string) (*Keycloak, error) {
	java, err := harness.Program("java", "connectors")
	if err != nil {
		return nil, err
	}
	distribution, err := harness.Fetched("keycloak")
	if err != nil {
		return nil, err
	}
	// A home of its own, where it writes, around the distribution, where it does not.
	if err := os.MkdirAll(filepath.Join(dir, "data", "import"), 0o755); err != nil {
		return nil, fmt.Errorf("make Keycloak's home: %w", err)
	}
	for _, name := range []string{"bin", "conf", "lib", "providers", "themes"} {
		if err := os.Symlink(filepath.Join(distribution, name), filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("make Keycloak's home: %w", err)
		}
	}
	realm := e2e.Object{"realm": "doorward", "enabled": true, "sslRequired": "none"}
	if err := e2e.WriteJSON(filepath.Join(dir, "data", "import", "doorward.json"), realm); err != nil {
		return nil, fmt.Errorf("write the realm: %w", err)
	}
	cert, key, err := authority.Issue(dir, "localhost", "127.0.0.1")
	if err != nil {
		return nil, err
	}
	port, management := strconv.Itoa(harness.FreePort()), strconv.Itoa(harness.FreePort())
	k := &Keycloak{URL: "https://localhost:" + port, password: rand.Text()}
	if k.client, err = clientTrusting(authority); err != nil {
		return nil, err
	}
	args := append([]string{"-Dkc.home.dir=" + dir, "-Djboss.server.config.dir=" + filepath.Join(dir, "conf")}, keycloakJava...)
	args = append(args, "-cp", filepath.Join(distribution, "lib", "quarkus-run.jar"), "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
		"start", "--optimized", "--import-realm", "--cache=local",
		"--hostname="+k.URL, "--http-host=127.0.0.1", "--https-port="+port, "--http-management-port="+management,
		"--https-certificate-file="+cert, "--https-certificate-key-file="+key,
		"--truststore-paths="+authority.CAFile+","+doorward)
	ready := answersOK(k.client, k.Issuer()+"/.well-known/openid-configuration")
	k.Daemon = harness.NewDaemon("keycloak", filepath.Join(dir, "keycloak.log"), ready, java, args...)
	k.Setenv("KC_BOOTSTRAP_ADMIN_USERNAME=admin", "KC_BOOTSTRAP_ADMIN_PASSWORD="+k.password)
	return k, k.Start(ctx)
}

// Issuer is the realm as an OpenID provider.
func (k *Keycloak) Issuer() string { return k.URL + Realm }

// OpenID is the address of an endpoint of the realm's OpenID provider.
func (k *Keycloak) OpenID(endpoint string) string {
	return k.Issuer() + "/protocol/openid-connect/" + endpoint
}

// SAML is the address of the realm's SAML identity provider.
func (k *Keycloak) SAML() string { return k.Issuer() + "/protocol/saml" }

// NewUser makes a user who signs in with their email address and e2e.Password.
// Fields are those of Keycloak's representation.
func (k *Keycloak) NewUser(t testing.TB, fields e2e.Object) (email string) {
	t.Helper()
	email = strings.ToLower(e2e.Unique("kim")) + "@example.test" // Keycloak knows no capitals
	user := e2e.Object{
		"username": email, "email": email, "emailVerified": true, "firstName": "Kim", "lastName": "Ruiz", "enabled": true,
		"credentials": []e2e.Object{{"type": "password", "value": e2e.Password, "temporary": false}},
	}
	maps.Copy(user, fields)
	k.Admin(t, http.MethodPost, "/users", user)
	return email
}

// NewClient makes a confidential OpenID client with these addresses of return.
func (k *Keycloak) NewClient(t testing.TB, redirects ...string) (id, secret string) {
	t.Helper()
	id, secret = e2e.Unique("client"), rand.Text()
	k.Admin(t, http.MethodPost, "/clients", e2e.Object{
		"clientId": id, "secret": secret, "protocol": "openid-connect", "redirectUris": redirects,
		"standardFlowEnabled": true, "directAccessGrantsEnabled": true, "publicClient": false,
		// Keycloak answers the introspection of a token only to a client in its audience.
		"protocolMappers": []e2e.Object{{
			"name": "audience", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper",
			"config": e2e.Object{"included.client.audience": id, "access.token.claim": "true", "introspection.token.claim": "true"},
		}},
	})
	return id, secret
}

// Token signs a user in by the password grant and returns the access token.
func (k *Keycloak) Token(t testing.TB, id, secret, email string) string {
	t.Helper()
	token, err := k.token(t.Context(), k.OpenID("token"), url.Values{
		"grant_type": {"password"}, "client_id": {id}, "client_secret": {secret},
		"username": {email}, "password": {e2e.Password}, "scope": {"openid email profile"},
	})
	must(t, err)
	return token
}

// Certificate is that of the realm's SAML signatures, in PEM.
func (k *Keycloak) Certificate(t testing.TB) string {
	t.Helper()
	answer := k.client.Call(t, e2e.Request{Method: http.MethodGet, URL: k.SAML() + "/descriptor", Anonymous: true})
	var metadata struct {
		Certificate []byte `xml:"IDPSSODescriptor>KeyDescriptor>KeyInfo>X509Data>X509Certificate"`
	}
	if err := xml.Unmarshal(answer.Body, &metadata); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	der, err := base64.StdEncoding.DecodeString(string(metadata.Certificate))
	must(t, err)
	return certificatePEM(der)
}

// NewServiceProvider makes a SAML client of what Keycloak itself reads in the
// service provider's metadata, with its email address, names and user name as
// attributes. It returns the client's id and the name of its logins that begin at
// Keycloak.
func (k *Keycloak) NewServiceProvider(t testing.TB, metadata []byte, attributes e2e.Object) (id, initiated string) {
	t.Helper()
	said, _ := k.Admin(t, http.MethodPost, "/client-description-converter", Upload{"application/xml", metadata}).(map[string]any)
	client := e2e.Object(said)
	id, initiated = rand.Text(), e2e.Unique("start")
	settings := client.Object("attributes")
	settings["saml_idp_initiated_sso_url_name"] = initiated
	maps.Copy(settings, attributes)
	mapper := func(attribute, property string) e2e.Object {
		return e2e.Object{"name": attribute, "protocol": "saml", "protocolMapper": "saml-user-property-mapper", "config": e2e.Object{
			"user.attribute": property, "attribute.name": attribute, "attribute.nameformat": "Basic",
		}}
	}
	client["id"], client["attributes"] = id, settings
	client["protocolMappers"] = []e2e.Object{
		mapper("mail", "email"), mapper("givenName", "firstName"), mapper("sn", "lastName"), mapper("login", "username"),
	}
	k.Admin(t, http.MethodPost, "/clients", client)
	return id, initiated
}

// Upload is a body that is not JSON.
type Upload struct {
	ContentType string
	Body        []byte
}

// Admin calls the realm's administration. The answer is nil where there is none.
func (k *Keycloak) Admin(t testing.TB, method, path string, body any) any {
	t.Helper()
	token, err := k.token(t.Context(), k.URL+"/realms/master/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"admin"}, "password": {k.password},
	})
	must(t, err)
	header := http.Header{"Authorization": {"Bearer " + token}}
	if upload, ok := body.(Upload); ok {
		header.Set("Content-Type", upload.ContentType)
		body = upload.Body
	}
	var answer any
	must(t, k.call(t.Context(), e2e.Request{Method: method, URL: k.URL + "/admin" + Realm + path, Header: header, Body: body}, &answer))
	return answer
}

func (k *Keycloak) token(ctx context.Context, address string, form url.Values) (string, error) {
	var token struct {
		AccessToken string `json:"access_token"`
	}
	err := k.call(ctx, e2e.Post(address, form), &token)
	return token.AccessToken, err
}

func (k *Keycloak) call(ctx context.Context, r e2e.Request, into any) error {
	r.Anonymous = true
	answer, err := k.client.Do(ctx, r)
	switch {
	case err != nil:
		return err
	case answer.Status/100 != 2:
		return errors.New(answer.String())
	case len(answer.Body) == 0:
		return nil
	}
	return json.Unmarshal(answer.Body, into)
}
