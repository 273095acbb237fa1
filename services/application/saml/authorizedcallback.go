package saml

import (
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/redirecturi"
)

// checkAuthorizedCallback refuses a callback URI (redirect URI) that is not registered in the
// application's authorizedCallbackUris: apierr.NoCallback where the list is empty, else
// apierr.CallbackNotListed. How a URI is compared with the list is in
// pkg/redirecturi/redirecturi.go. The callback of a social login, to which the provider sends
// the browser, is in services/idsite.
func checkAuthorizedCallback(a applicationapi.Application, callbackURI string) error {
	if len(a.AuthorizedCallbackURIs) == 0 {
		return apierr.NoCallback.Because("the application has no authorizedCallbackUris, so that callbackUri cannot " +
			"be one of them")
	}
	if !redirecturi.IsListed(callbackURI, a.AuthorizedCallbackURIs) {
		return apierr.CallbackNotListed.Because("callbackUri %q is none of the application's authorizedCallbackUris",
			callbackURI)
	}
	return nil
}
