package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
)

// atAddress takes the requests of service providers that have arrived at the address which they name.
type atAddress struct {
	applicationapi.API
	applicationapi.Hosted
}

func (atAddress) VerifySAMLRequest(
	_ context.Context, in applicationapi.VerifySAMLRequest,
) (applicationapi.SAMLRequest, error) {
	if in.Request != in.Address {
		return applicationapi.SAMLRequest{}, apierr.Format.Because("samlRequest has the Destination %q", in.Request)
	}
	return applicationapi.SAMLRequest{ServiceProvider: id.ID{1}, ID: "_a1"}, nil
}

// A request of a service provider may name the address by path as its Destination, where it has arrived
// there; a refusal has the two members of the Client API's errors.
func TestARequestOfAServiceProviderByPathAndByDomain(t *testing.T) {
	c, _ := newClientAPI(t, func(peers *idsite.Peers) {
		peers.Application = atAddress{API: peers.Application, Hosted: peers.Application}
	})
	byPath, byDomain := base.Host()+"/client/calm-otter/saml/sso", "https://calm-otter.apps.localhost:8443/saml/sso"
	for _, each := range []struct {
		what, destination, host string
		status                  int
	}{
		{"by path, for the address by path", byPath, "", http.StatusFound},
		{"by domain, for the address by domain", byDomain, "calm-otter.apps.localhost:8443", http.StatusFound},
		{"by path, for another application", base.Host() + "/client/other/saml/sso", "", http.StatusBadRequest},
		{"by domain, for the address by path", byPath, "calm-otter.apps.localhost:8443", http.StatusBadRequest},
	} {
		var header []string
		if each.host != "" {
			header = []string{idsiterest.HostHeader, each.host}
		}
		form := url.Values{"SAMLRequest": {each.destination}}.Encode()
		for method, send := range map[string]func() (*http.Response, string){
			"GET": func() (*http.Response, string) { return c.call(t, "GET", "/saml/sso?"+form, "", header...) },
			"POST": func() (*http.Response, string) {
				return c.send(t, "POST", "/client/calm-otter/saml/sso", fiber.MIMEApplicationForm, form, header...)
			},
		} {
			answer, body := send()
			if answer.StatusCode != each.status {
				t.Errorf("%s %s: %d %s", method, each.what, answer.StatusCode, body)
			}
			to := answer.Header.Get("Location")
			if each.status == http.StatusFound && !strings.HasPrefix(to, base.Host()+"/sso?signOn=") {
				t.Errorf("%s %s leads to %s", method, each.what, to)
			}
			var members map[string]any
			if each.status == http.StatusBadRequest && (json.Unmarshal([]byte(body), &members) != nil || len(members) != 2 ||
				members["status"] != 400.0 || members["message"] == "") {
				t.Errorf("%s %s is refused with %s", method, each.what, body)
			}
		}
	}
}
