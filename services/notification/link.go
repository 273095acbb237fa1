package notification

import (
	"net/url"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/secure"
)

// linkBase is where the link of a template leads to, without its token; empty
// for a workflow that has no link.
func (s *Service) linkBase(template directoryapi.EmailTemplate) string {
	if template.LinkBaseURL != nil {
		return singleLine(*template.LinkBaseURL)
	}
	if page := template.Workflow.Page(); page != "" {
		return s.base.Host() + page
	}
	return ""
}

// pair is the token as a query has it.
func pair(token secure.Secret) string { return "sptoken=" + url.QueryEscape(token.Reveal()) }

// link adds the token to a URL: to its query, before its fragment
// (docs/interface/mail.md#links).
func link(base string, token secure.Secret) string {
	address, fragment, found := strings.Cut(base, "#")
	separator := "?"
	switch {
	case strings.HasSuffix(address, "?"), strings.HasSuffix(address, "&"):
		separator = ""
	case strings.Contains(address, "?"):
		separator = "&"
	}
	address += separator + pair(token)
	if found {
		address += "#" + fragment
	}
	return address
}
