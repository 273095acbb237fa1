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

// checkAgainstOpenAPI returns an error where a call of the management API, of the Client
// API or of a hosted page, or its answer, is not as the OpenAPI description of the
// interface has it (contract test). pkg/openapi has the description.
func checkAgainstOpenAPI(r Request, sent []byte, address string, answer Answer) error {
	address, described := openAPIAddress(r, address)
	if !described || answer.Status == http.StatusRequestEntityTooLarge {
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

// openAPIAddress returns the address under which the description has a call, if the call
// is described: the description has the Client API by its path, and the calls of hosted
// pages below /session (docs/interface/id-site.md#session-token-api).
func openAPIAddress(r Request, address string) (inDescription string, described bool) {
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
