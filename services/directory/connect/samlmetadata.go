package connect

import (
	"context"
	"errors"
	"net/http"
)

// Metadata fetches the metadata of a SAML identity provider. The error says what has failed, without
// addresses of the network.
func (c *Client) Metadata(ctx context.Context, address string) ([]byte, error) {
	answer, body, err := c.call(ctx, address,
		func(h http.Header) { h.Set("Accept", "application/samlmetadata+xml, application/xml, */*") })
	if err != nil {
		return nil, errors.New(failureText(err))
	}
	if answer.StatusCode != http.StatusOK {
		return nil, statusError(answer.StatusCode)
	}
	return body, nil
}
