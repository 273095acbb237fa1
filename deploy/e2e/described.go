package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/doorward/doorward/pkg/openapi/openapitest"
)

// described returns what of a call below the base address, or of its answer, the
// description of the interface (pkg/openapi) does not have. Bodies that are not
// made of values are not looked at.
func described(r Request, address string, answer Answer) error {
	if !strings.Contains(address, "/v1/") || answer.Status == http.StatusRequestEntityTooLarge || ofHostedPage(r) ||
		strings.Contains(address, "_method=") {
		return nil
	}
	checker, err := openapitest.For("service")
	if err != nil {
		return err
	}
	var sent []byte
	switch body := r.Body.(type) {
	case nil:
	case []byte:
		sent = body
	case Object, map[string]any:
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	if err := checker.Check(openapitest.Exchange{
		Method: r.Method, URL: address, RequestBody: sent, Status: answer.Status, AnswerHeader: answer.Header, AnswerBody: answer.Body,
	}); err != nil {
		return fmt.Errorf("%s: %w", answer.Request, err)
	}
	return nil
}

// ofHostedPage reports whether a hosted page makes the call, whose answers are not
// those of the interface (docs/interface/id-site.md#browser-transport).
func ofHostedPage(r Request) bool {
	return r.Method == http.MethodOptions || strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ")
}
