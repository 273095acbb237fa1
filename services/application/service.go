// Package application keeps applications, organizations and the account stores
// that are mapped to them, and logs accounts in through them. Its rules are methods of
// Service, one file per noun or workflow; its SQL is under store, its HTTP
// under rest, and its wiring under app.
package application

import (
	"cmp"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

// Service is the application service.
type Service struct {
	store       *store.Store
	directories directoryapi.API
	ring        *secure.Keyring
	base        href.Base
	now         func() time.Time
	cfg         Config
	logins      metric.Int64Counter
	keyPairs    chan struct{} // holds one entry while a key pair is being made
}

// New makes the service. ring seals the keys that it signs with, base is the
// address that the hrefs of account stores begin with.
func New(s *store.Store, directories directoryapi.API, ring *secure.Keyring, base href.Base, now func() time.Time, cfg Config) *Service {
	return &Service{
		store: s, directories: directories, ring: ring, base: base, now: now, cfg: cfg, logins: newLoginCounter(),
		keyPairs: make(chan struct{}, 1),
	}
}

var _ applicationapi.Contract = (*Service)(nil)

// Alias is the word that names the product on the wire.
func (s *Service) Alias() alias.Alias { return cmp.Or(s.cfg.Alias, alias.Neutral) }

// CustomData is the customData of the owners of one kind.
func (s *Service) CustomData(kind store.OwnerKind) customdata.Owners {
	return s.store.CustomData(kind, s.now)
}
