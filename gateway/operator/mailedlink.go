package operator

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// tenantOfMailedLink returns the tenant whose mail had the token of a link (sptoken): a verification or an invitation.
// The token of a reset is a JWT that names its tenant.
func (h handlers) tenantOfMailedLink(ctx context.Context, token string) (directoryapi.Tenant, error) {
	link, err := h.Directory.EndedLink(ctx, directoryapi.EndedLink{
		Workflow: directoryapi.Verification, Token: secure.Secret(token),
	})
	if err == nil {
		return h.tenantByID(ctx, link.Tenant)
	}
	if !errors.Is(err, apierr.NotFound) {
		return directoryapi.Tenant{}, err
	}
	invitation, err := h.Directory.PendingSignUp(ctx, directoryapi.SignUpToken{Token: secure.Secret(token)})
	if err != nil {
		return directoryapi.Tenant{}, err
	}
	return h.tenantByID(ctx, invitation.Tenant)
}
