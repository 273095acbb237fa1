package saml

import "context"

// OccupyKeyPairSlot lets no key pair be created.
func (s *Service) OccupyKeyPairSlot() { s.keyPairSlot <- struct{}{} }

// CheckSAMLCertificates is one pass of the worker.
func CheckSAMLCertificates(ctx context.Context, s *Service) (map[string]int64, error) {
	return s.certificateCheck().Run(ctx)
}
