package application

// RecordPending records the failed logins that wait for the worker.
func (s *Service) RecordPending() { s.recordPending() }
