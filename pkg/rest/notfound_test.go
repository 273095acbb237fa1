package rest_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
)

// A route of several collections is named by the one that was asked for.
func TestWhatHasNoSuchIDIsNamed(t *testing.T) {
	t.Parallel()
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	read := func(c *fiber.Ctx) error {
		_, err := rest.ID(c, "id")
		return err
	}
	app.Get("/v1/smtpServers/:id", read)
	app.Get("/v1/:kind<regex(^(applications|directories)$)>/:id", read)
	for path, want := range map[string]string{
		"/v1/smtpServers/short": `no SMTP server has the id \"short\"`, "/v1/applications/short": `no application has the id \"short\"`,
		"/v1/directories/short": `no directory has the id \"short\"`,
	} {
		request := httptest.NewRequest("GET", path, nil)
		request.Header.Set(caller.Header, signer.Sign(caller.Caller{Tenant: id.New(time.Now())}))
		response, err := app.Test(request, -1)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if _ = response.Body.Close(); err != nil || response.StatusCode != 404 || !strings.Contains(string(body), want) {
			t.Errorf("%s is %d %s, want %s", path, response.StatusCode, body, want)
		}
	}
}

func TestKindsOfCollections(t *testing.T) {
	t.Parallel()
	for collection, want := range map[string]string{
		"accounts": "account", "directories": "directory", "accountCreationPolicies": "account creation policy", "apiKeys": "API key",
		"idSites": "ID site", "smtpServers": "SMTP server", "oAuthPolicies": "OAuth policy", "samlPolicies": "SAML policy",
		"x509certificates": "X.509 certificate", "groupMemberships": "group membership",
	} {
		if got := rest.Kind(collection); got != want {
			t.Errorf("Kind(%q) = %q, want %q", collection, got, want)
		}
	}
}
