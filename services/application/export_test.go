package application

// OccupyKeyPairSlot lets no key pair be created.
func (s *Service) OccupyKeyPairSlot() { s.keyPairSlot <- struct{}{} }

// CheckSAMLCertificates is one pass of the worker.
var CheckSAMLCertificates = (*Service).checkSAMLCertificates
