package notification

import (
	"net/url"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/secure"
)

// linkBase is the address of the link in a mail, without the token: linkBaseUrl of the email
// template, else the page of this service. It is "" for a workflow without a link.
func (s *Service) linkBase(template directoryapi.EmailTemplate) string {
	if template.LinkBaseURL != nil {
		return sanitizeLine(*template.LinkBaseURL)
	}
	if page := template.Workflow.Page(); page != "" {
		return s.base.Host() + page
	}
	return ""
}

// tokenParameter returns the token as a parameter of a query.
func tokenParameter(token secure.Secret) string { return "sptoken=" + url.QueryEscape(token.Reveal()) }

// addToken adds the token to the query of a URL, before its fragment
// (docs/interface/mail.md#links).
func addToken(base string, token secure.Secret) string {
	address, fragment, found := strings.Cut(base, "#")
	separator := "?"
	switch {
	case strings.HasSuffix(address, "?"), strings.HasSuffix(address, "&"):
		separator = ""
	case strings.Contains(address, "?"):
		separator = "&"
	}
	address += separator + tokenParameter(token)
	if found {
		address += "#" + fragment
	}
	return address
}
