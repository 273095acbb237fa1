package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
)

// factorGrant completes a login by the code of its second step
// (docs/interface/oauth.md#second-factors). The account may have been disabled since
// the first.
func (s *Service) factorGrant(ctx context.Context, in TokenRequest) (Issued, error) {
	code, err := in.Form.required("code")
	if err != nil {
		return Issued{}, err
	}
	state, challenge := in.Form["state"], in.Form["challenge"]
	if (state == "") == (challenge == "") {
		return Issued{}, refused(apierr.Required.Because("one of the form fields state and challenge is required"), "invalid_request")
	}
	redeemed, err := s.peers.MFA.Redeem(ctx, mfaapi.Redeem{
		Tenant: in.Tenant, Application: in.Application, State: state, Challenge: href.Link{Href: challenge.Reveal()}, Code: code.Reveal(),
	})
	user := holder{redeemed.Account, redeemed.Organization}
	if err == nil {
		err = s.checkHolder(ctx, in.Tenant, in.Application, user, s.checkAccess)
	}
	if err != nil {
		return Issued{}, refused(err, "invalid_grant")
	}
	return s.issue(ctx, in, user, true)
}
