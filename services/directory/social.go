package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// refuseSocial tells why the account of a social login is not found or made
// (docs/interface/applications.md#accounts-by-provider): what is wrong with the request comes before that no
// provider can be asked.
func (s *Service) refuseSocial(ctx context.Context, in directoryapi.CreateAccount) error {
	p, err := s.store.Provider(ctx, in.Tenant, in.Directory)
	switch {
	case err != nil:
		return err
	case !directoryapi.IsSocial(p.ProviderID) || field.Fold(p.ProviderID) != in.Social.Provider:
		return apierr.Reference.Because("providerData.providerId: the directory has the provider %q, not a social provider %q",
			p.ProviderID, in.Social.Provider)
	case in.Social.Provider == "linkedin" && in.Social.Code != "" && in.Social.RedirectURI == "" && p.Settings.RedirectURI == nil:
		return apierr.RedirectURIMissing.Because(
			"to exchange a code, the directory needs a redirectUri, or the request names the one of the browser")
	}
	return apierr.ProviderRefused.Because("this deployment cannot ask social providers who logged in there")
}
