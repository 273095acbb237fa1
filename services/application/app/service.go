package app

import (
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/saml"
	"github.com/doorward/doorward/services/application/store"
)

// The parts of the rules have the names by which Service embeds them.
type (
	// Core has the rules of applications, organizations, mappings and logins.
	Core = application.Service
	// SAML has the rules of applications as SAML identity providers.
	SAML = saml.Service
)

// Service is the application service with all its rules. Its parts implement the contract together.
type Service struct {
	*Core
	*SAML
}

var _ applicationapi.Contract = (*Service)(nil)

// Sealed are the columns whose values are sealed under the master key.
var Sealed = saml.Sealed

// New makes the service of its parts.
func New(s *store.Store, directories directoryapi.API, ring *secure.Keyring, base href.Base, now func() time.Time,
	cfg application.Config) *Service {
	core := application.New(s, directories, base, now, cfg)
	return &Service{core, saml.New(core, s, directories, ring, base, now)}
}
