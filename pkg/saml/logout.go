package saml

import (
	"errors"
	"strings"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"

	"github.com/doorward/doorward/pkg/apierr"
)

var errNoStatus = errors.New("has no Status with a StatusCode")

// ReadLogoutResponse reads the LogoutResponse to a LogoutRequest (single logout), deflated or not. It
// returns nil if it reports success, apierr.SAMLFailed if the identity provider has not ended all of
// its sessions, and SAMLMalformed for any other message. It verifies no signature.
func ReadLogoutResponse(encoded string) error {
	refused := func(reason string) error {
		return apierr.SAMLMalformed.Because("the logout response cannot be used: it %s", reason)
	}
	message, err := decodeMessage(encoded)
	if err != nil {
		return refused(err.Error())
	}
	root, err := parseDocument(message)
	if err != nil {
		return refused("is not XML: " + err.Error())
	}
	if !hasName(root, protocol, "LogoutResponse") {
		return refused("is not a LogoutResponse")
	}
	reasons, err := statusReasons(root)
	if err != nil {
		return refused(err.Error())
	}
	if len(reasons) > 0 {
		return apierr.SAMLFailed.Because("the identity provider has not ended its session: %.500s",
			strings.Join(reasons, ", "))
	}
	return nil
}

// statusReasons returns the codes and the message in the Status of a response; none for a success.
func statusReasons(response *etree.Element) (reasons []string, err error) {
	status := childOf(response, protocol, "Status")
	if status == nil {
		return nil, errNoStatus
	}
	code := childOf(status, protocol, "StatusCode")
	if code == nil {
		return nil, errNoStatus
	}
	value := code.SelectAttrValue("Value", "")
	if value == saml.StatusSuccess {
		return nil, nil
	}
	reasons = append(reasons, value)
	if inner := childOf(code, protocol, "StatusCode"); inner != nil {
		reasons = append(reasons, inner.SelectAttrValue("Value", ""))
	}
	if message := textOf(childOf(status, protocol, "StatusMessage")); message != "" {
		reasons = append(reasons, message)
	}
	return reasons, nil
}
