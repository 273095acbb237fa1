package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/doorward/doorward/pkg/openapi/openapitest"
)

// clientAPISuffix ends the host names of Client APIs where a deployment does not
// configure another.
const clientAPISuffix = ".apps.localhost"

// described returns what of a call of the management API, of the Client API or of
// a hosted page, or of its answer, the description of the interface (pkg/openapi)
// does not have.
func described(r Request, sent []byte, address string, answer Answer) error {
	address, ok := inDescription(r, address)
	if !ok || answer.Status == http.StatusRequestEntityTooLarge {
		return nil
	}
	checker, err := openapitest.For("service")
	if err != nil {
		return err
	}
	if err := checker.Check(openapitest.Exchange{
		Method: r.Method, URL: address, RequestBody: sent, Status: answer.Status, AnswerHeader: answer.Header, AnswerBody: answer.Body,
	}); err != nil {
		return fmt.Errorf("%s: %w", answer.Request, err)
	}
	return nil
}

// inDescription returns the address under which the description has a call: it
// names the Client API by its path, and what hosted pages call below /session
// (docs/interface/id-site.md#browser-transport).
func inDescription(r Request, address string) (string, bool) {
	target, err := url.Parse(address)
	if err != nil || r.Method == http.MethodOptions || strings.Contains(target.RawQuery, "_method=") {
		return "", false
	}
	label, ofClient := strings.CutSuffix(target.Hostname(), clientAPISuffix)
	switch {
	case ofClient:
		target.Path = "/client/" + label + target.Path
	case strings.HasPrefix(target.Path, "/client/"):
	case !strings.HasPrefix(target.Path, "/v1/"):
		return "", false
	case strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "):
		target.Path = "/session" + target.Path
	}
	return target.String(), true
}
