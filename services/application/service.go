// Package application is the application service. It stores applications, organizations and
// the account stores that are mapped to them (account store mappings), and logs accounts in.
// Its rules are methods of Service, one file per noun or workflow; package saml builds on it.
// All SQL is under store, HTTP under rest, and package app makes one service of the two.
package application

import (
	"cmp"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

// Config is the configuration by the deployment: the domain of Client APIs, and the limits
// of failed logins (throttle.go).
type Config struct {
	Suffix   string        // domain of the applications' Client APIs
	Alias    alias.Alias   // in the names of SAML identity providers; empty: alias.Neutral
	LoginKey secure.Secret // key of the HMACs under which login names and addresses are stored

	Pair    Limit // of one login name at one address
	Account Limit // of one login name at all addresses that are not known for it
	Address Limit // of all login names at one address that is not known for them
	// Application is the limit of all login names at one application by clients with an API key that
	// do not name the address of the user. It is one that no honest site reaches.
	Application Limit
	// AddressShare raises Address, and Application, by a percentage of the logins that succeeded at the
	// address, or the application, within a day.
	AddressShare int
	// KnownFor is how long an address is known for a login name after a successful login.
	KnownFor time.Duration
}

// Service is the application service.
type Service struct {
	store       *store.Store
	directories directoryapi.API
	base        href.Base
	now         func() time.Time
	cfg         Config
	logins      metric.Int64Counter
	missing     missingUserAddress
	failures    chan failedLogin // that the worker RecordFailures records
}

// New returns the service. base is the address with which hrefs begin.
func New(s *store.Store, directories directoryapi.API, base href.Base, now func() time.Time, cfg Config) *Service {
	return &Service{
		store: s, directories: directories, base: base, now: now, cfg: cfg, logins: newLoginCounter(),
		missing:  newMissingUserAddress(),
		failures: make(chan failedLogin, maxPendingFailures),
	}
}

// Alias returns the word that names the product in the HTTP interface.
func (s *Service) Alias() alias.Alias { return cmp.Or(s.cfg.Alias, alias.Neutral) }

// CustomData returns the customData of applications or of organizations.
func (s *Service) CustomData(kind store.OwnerKind) customdata.Store {
	return s.store.CustomData(kind, s.now)
}
