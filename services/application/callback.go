package application

import (
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/redirecturi"
)

// wantCallback refuses a callback that the application does not list:
// apierr.NoCallback where it lists none, else CallbackNotListed.
func wantCallback(a applicationapi.Application, asked string) error {
	if len(a.AuthorizedCallbackURIs) == 0 {
		return apierr.NoCallback.Because("the application has no authorizedCallbackUris, so that callbackUri cannot be one of them")
	}
	if !redirecturi.IsListed(asked, a.AuthorizedCallbackURIs) {
		return apierr.CallbackNotListed.Because("callbackUri %q is none of the application's authorizedCallbackUris", asked)
	}
	return nil
}
