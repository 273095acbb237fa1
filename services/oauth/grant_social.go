package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// socialProof lists what proves a login at the providers that do not offer the
// choice between an access token and an authorization code (resolutions, section
// 5.2).
var socialProof = map[string][]string{
	"facebook": {"accessToken"},
	"github":   {"accessToken"},
	"twitter":  {"accessToken", "accessTokenSecret"},
}

// socialGrant logs an account in by what a social provider gave to the client.
func (s *Service) socialGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	text, err := in.Form.required("providerId")
	if err != nil {
		return Issued{}, err
	}
	provider := field.Fold(text.Reveal())
	if err := in.Form.wantProof(provider); err != nil {
		return Issued{}, err
	}
	where, err := in.Form.accountStore()
	if err != nil {
		return Issued{}, err
	}
	_, err = s.peers.Application.SocialDirectory(ctx, applicationapi.SocialDirectory{
		Tenant: in.Tenant, Application: in.Application, Provider: provider, AccountStore: where.href, NameKey: where.nameKey,
	})
	if err != nil {
		return Issued{}, refused(err, "invalid_request")
	}
	return Issued{}, refused(apierr.ProviderRefused.Because("this deployment cannot ask social providers who logged in there"), "invalid_client")
}

// wantProof refuses a form without what proves a login at a provider.
func (f Form) wantProof(provider string) error {
	proof, fixed := socialProof[provider]
	for _, name := range proof {
		if _, err := f.required(name); err != nil {
			return err
		}
	}
	if !fixed && f["accessToken"] == "" && f["code"] == "" {
		return refused(apierr.Required.Because("one of the form fields accessToken and code is required"), "invalid_request")
	}
	if f["accessToken"] != "" && f["code"] != "" {
		return refused(apierr.Required.Because("of the form fields accessToken and code only one can be given"), "invalid_request")
	}
	return nil
}
