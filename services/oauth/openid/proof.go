package openid

import (
	"context"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/dpop"
)

// checkProof checks the proof of possession of a call (package dpop), which is used once, and returns the thumbprint
// of its key, or the empty string where there is no proof. access is the access token that the proof goes with; empty:
// none.
func (s *Service) checkProof(ctx context.Context, i issuer, in Call, access secure.Secret) (jkt string, err error) {
	if len(in.Proofs) == 0 {
		return "", nil
	}
	p, err := dpop.Parse(in.Proofs)
	if err != nil {
		return "", err
	}
	now := s.Now()
	r := dpop.Request{Method: in.Method, Address: i.url + in.Endpoint, Access: access}
	if err := p.Check(r, dpop.Nonces{Ring: s.Ring}, now); err != nil {
		return "", err
	}
	return p.JKT, s.useOnce(ctx, i.app.TenantID, "DPoP proof "+p.JKT+" "+p.ID, now.Add(dpop.MaxAge), dpop.ErrProof)
}

// Nonce returns a nonce for proofs.
func (s *Service) Nonce() string { return dpop.Nonces{Ring: s.Ring}.New(s.Now()) }
