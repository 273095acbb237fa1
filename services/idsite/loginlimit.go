package idsite

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

// maxBegunLogins is how many logins of one application may be in progress for one client address. Anybody
// can begin them without a key, with a state of some kilobytes that is stored until the login ends, at most
// providerLoginTTL and samlLoginTTL: without a limit a single client fills the database.
const maxBegunLogins = 200

// limitBegunLogins returns the client address of the request, with which a login that begins is stored, or
// apierr.TooMany with the time until one of the address may begin again. Logins that have ended do not
// count, so that an office behind one address is not shut out by its own users.
func (s *Service) limitBegunLogins(ctx context.Context, tenant, application id.ID) (address string, err error) {
	address, now := caller.From(ctx).Network().String(), s.now()
	until, err := s.store.NthBegunLoginEnd(ctx, tenant, application, address, maxBegunLogins, now)
	if errors.Is(err, apierr.NotFound) {
		return address, nil
	}
	if err != nil {
		return "", err
	}
	return "", apierr.TooMany.Because("%d logins of the application are in progress for this client address; the next may begin after %s",
		maxBegunLogins, until.UTC().Format(time.RFC3339)).WithRetryAfter(until.Sub(now))
}
