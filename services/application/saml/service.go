// Package saml has the rules of applications as SAML identity providers: their key pairs and mapping rules,
// the service providers that are registered with them, and the requests and responses of single sign-on; and
// the RelayState of logins that an external identity provider begins. What an application is, and whom it
// reaches, is decided in services/application, on which it builds. The messages themselves are in pkg/saml.
package saml

import (
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/store"
)

// Service has the rules of SAML identity providers.
type Service struct {
	core        *application.Service
	store       *store.Store
	directories directoryapi.API
	ring        *secure.Keyring
	base        href.Base
	now         func() time.Time
	keyPairSlot chan struct{} // has one entry while a key pair is being created (a mutex with timeout)
}

// New makes the service. ring encrypts the private keys of identity providers.
func New(core *application.Service, s *store.Store, directories directoryapi.API, ring *secure.Keyring, base href.Base,
	now func() time.Time) *Service {
	return &Service{
		core: core, store: s, directories: directories, ring: ring, base: base, now: now,
		keyPairSlot: make(chan struct{}, 1),
	}
}

// Sealed are the columns whose values are sealed under the master key. The rotation of that key reseals
// them (pkg/reseal).
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "saml_identity_providers", Key: "id", Column: "private_key_sealed", Purpose: samlKeyPurpose},
	{Table: "saml_relay_keys", Key: "tenant_id", Column: "key_sealed", Purpose: relayKeyPurpose},
}
