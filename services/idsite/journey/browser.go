package journey

import (
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/secure"
)

// BrowserRequest is the request of a browser that logs in or out: its token and its cookies.
type BrowserRequest struct {
	Token     secure.Secret // jwtRequest, jwtResponse or signOn; "": none
	Browsers  BrowserTokens // cookies that bind logins to the browser that began them
	Session   secure.Secret // cookie of the session of single sign-on; "": none
	UserAgent string
}

// WithParameters adds parameters to the query of an address.
func WithParameters(address string, parameters url.Values) string {
	if strings.Contains(address, "?") {
		return address + "&" + parameters.Encode()
	}
	return address + "?" + parameters.Encode()
}

// Redirect is where a browser goes on, with its new cookies (rest/sso.go).
type Redirect struct {
	Location string
	// Form is posted to Location by a page; nil: the browser is redirected.
	Form    url.Values
	Browser secure.Secret // of the login that has begun; empty: none has
	Session secure.Secret // empty: the cookie stays as it is
	// SessionLife is the Max-Age of Session; zero: until the browser is closed.
	SessionLife time.Duration
	EndSession  bool // delete the cookie of the session
}
