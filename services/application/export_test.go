package application

// HoldKeyPairs takes the place in which a key pair is made.
func (s *Service) HoldKeyPairs() { s.keyPairs <- struct{}{} }
