package openid

import (
	"cmp"
	"context"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/dpop"
	"github.com/doorward/doorward/services/oauth/store"
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
	r := dpop.Request{Method: in.Method, Address: cmp.Or(in.Address, i.url+in.Endpoint), Access: access}
	if err := p.Check(r, dpop.Nonces{Ring: s.Ring}, now); err != nil {
		return "", err
	}
	return p.JKT, s.useOnce(ctx, i.app.TenantID, "DPoP proof "+p.JKT+" "+p.ID, now.Add(dpop.MaxAge), dpop.ErrProof)
}

// checkPossession refuses an access token that is bound to a key without a proof of that key, and a token that is not
// bound with one.
func (s *Service) checkPossession(ctx context.Context, i issuer, in Call, t store.OpenIDToken) error {
	jkt, err := s.checkProof(ctx, i, in, in.Bearer)
	if err == nil && (t.Token.JKT != jkt || (t.Token.JKT != "") != (in.Scheme == "dpop")) {
		err = refuse("invalid_token",
			"the access token is bound to a key: send it by the scheme DPoP with a proof of that key")
	}
	return err
}

// Nonce returns a nonce for proofs.
func (s *Service) Nonce() string { return dpop.Nonces{Ring: s.Ring}.New(s.Now()) }
