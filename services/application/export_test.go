package application

// OccupyKeyPairSlot takes the place in which a key pair is made.
func (s *Service) OccupyKeyPairSlot() { s.keyPairSlot <- struct{}{} }
