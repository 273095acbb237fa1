package pages

import "github.com/doorward/doorward/services/idsite/screens"

// submit is the script of a page that posts its form by itself, such as a SAML response. Without
// JavaScript the user presses the button.
const submit = "document.forms[0].submit()"

// PostPolicy is the Content-Security-Policy (CSP) of a page that posts its form to another site by
// itself. It has no form-action, because browsers would also apply that to the redirects of the
// receiver.
var PostPolicy = "default-src 'none'; img-src data:; style-src " + screens.CSPHash(style) + "; script-src " + screens.CSPHash(submit) +
	"; base-uri 'none'; frame-ancestors 'none'"
