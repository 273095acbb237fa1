package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
)

// secondFactorGrant is the grant type service_factor_challenge: it completes a login by the
// code of a second factor (MFA, docs/interface/oauth.md#second-factors). The access of the
// account is checked again, because it may have been disabled since the first factor. The
// demand for the second factor is in secondstep.go.
func (s *Service) secondFactorGrant(ctx context.Context, in TokenRequest) (IssuedTokens, error) {
	code, err := in.Form.required("code")
	if err != nil {
		return IssuedTokens{}, err
	}
	state, challenge := in.Form["state"], in.Form["challenge"]
	if (state == "") == (challenge == "") {
		refusal := apierr.Required.Because("one of the form fields state and challenge is required")
		return IssuedTokens{}, withOAuthError(refusal, "invalid_request")
	}
	redeemed, err := s.peers.MFA.VerifySecondStep(ctx, mfaapi.VerifySecondStep{
		Tenant: in.Tenant, Application: in.Application, State: state, Challenge: href.Link{Href: challenge.Reveal()}, Code: code.Reveal(),
	})
	if err == nil && redeemed.Next != nil {
		return IssuedTokens{}, actionRequiredError(*redeemed.Next)
	}
	user := subject{redeemed.Account, redeemed.Organization, true}
	if err == nil {
		_, err = s.checkAccess(ctx, user.accessRequest(in.Tenant, in.Application))
	}
	if err != nil {
		return IssuedTokens{}, withOAuthError(err, "invalid_grant")
	}
	return s.issueTokens(ctx, in, user, true)
}
