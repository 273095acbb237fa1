// Package directory keeps tenants, directories, groups and accounts, and decides who may log in. Its
// rules are methods of Service, one file per noun or workflow. Packages provider (social login, SAML,
// account linking) and agent (LDAP) build on it. All SQL is under store, HTTP under rest, and package app
// makes one service of the three.
package directory

import (
	"context"
	"net/mail"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// Service is the directory service.
type Service struct {
	store     *store.Store
	passwords *secure.Passwords
	ring      *secure.Keyring
	base      href.Base
	now       func() time.Time
	cfg       Config
}

// Config is what the deployment decides.
type Config struct {
	VerificationTTL time.Duration // lifetime of an email verification token
	Sender          mail.Address  // sender of mails, unless a template names another
	Alias           alias.Alias
	// CheckByAgent lets an agent check the password of an account of LDAP or Active Directory.
	CheckByAgent func(context.Context, store.Candidate, secure.Secret) error
}

// New makes the service.
func New(s *store.Store, passwords *secure.Passwords, ring *secure.Keyring, base href.Base, now func() time.Time,
	cfg Config) *Service {
	return &Service{store: s, passwords: passwords, ring: ring, base: base, now: now, cfg: cfg}
}

// CustomData is the customData of tenants, directories, groups and accounts, which are resources
// of their own (docs/interface/custom-data.md#owners).
func (s *Service) CustomData() store.CustomData { return s.store.CustomData(s.now) }

// Alias is the word that names the product on the wire.
func (s *Service) Alias() alias.Alias { return s.cfg.Alias }

// Sealed are the columns whose values are sealed under the master key (encryption at rest). The
// rotation of that key reseals them (pkg/reseal).
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "accounts", Key: "id", Column: "verification_sealed", Purpose: events.MailTokenPurpose},
	{Table: "tenants", Key: "tenant_id", Column: "reset_key_sealed", Purpose: resetKeyPurpose},
}
