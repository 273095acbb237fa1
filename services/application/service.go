// Package application is the application service. It stores applications, organizations and
// the account stores that are mapped to them (account store mappings), and logs accounts in.
// Its rules are methods of Service, one file per noun or workflow; package saml builds on it.
// All SQL is under store, HTTP under rest, and package app makes one service of the two.
package application

import (
	"cmp"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/application/throttle"
)

// Config is the configuration by the deployment: the domain of Client APIs, and the limits
// of failed logins.
type Config struct {
	Suffix   string      // domain of the applications' Client APIs
	Alias    alias.Alias // in the names of SAML identity providers; empty: alias.Neutral
	Throttle throttle.Config
}

// Service is the application service.
type Service struct {
	store       *store.Store
	directories directoryapi.API
	base        href.Base
	now         func() time.Time
	cfg         Config
	throttle    *throttle.Throttle
	missing     missingUserAddress
	failures    chan failedLogin // that the worker RecordFailures records
}

// New returns the service. base is the address with which hrefs begin.
func New(s *store.Store, directories directoryapi.API, base href.Base, now func() time.Time, cfg Config) *Service {
	return &Service{
		store: s, directories: directories, base: base, now: now, cfg: cfg,
		throttle: throttle.New(s, now, cfg.Throttle),
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
