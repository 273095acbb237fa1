package field

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/doorward/doorward/pkg/apierr"
)

// URL returns a function that validates an absolute URL with one of the schemes, or without schemes
// with any scheme, such as that of a mobile app: myapp:/callback. A URL with http or https must have
// a host. A fragment, a user name or a password, and an invalid port are refused. The function
// returns apierr.Format (2006) for another text.
func URL(schemes ...string) func(name, value string) (string, error) {
	return func(name, value string) (string, error) {
		u, err := url.Parse(value)
		switch {
		case err != nil || !u.IsAbs() || u.User != nil || u.Fragment != "" ||
			strings.ContainsFunc(value, unicode.IsSpace):
			return "", apierr.Format.Because("%s is not an absolute URL", name)
		case len(schemes) > 0 && !slices.Contains(schemes, u.Scheme):
			return "", apierr.Format.Because("%s is not an absolute URL with the scheme %s", name,
				strings.Join(schemes, " or "))
		case (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() == "":
			return "", apierr.Format.Because("%s is a URL without a host", name)
		case u.Port() != "" && !isPort(u.Port()):
			return "", apierr.Format.Because("%s has the port %s; ports are 1 to 65535", name, u.Port())
		}
		return value, nil
	}
}

func isPort(digits string) bool {
	port, err := strconv.ParseUint(digits, 10, 16)
	return err == nil && port > 0
}
