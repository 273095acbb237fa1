// Package idsite makes tenants, keeps the settings of their hosted login pages,
// and shows the pages of mailed links; the login pages and the Client API come
// here too. Its rules are
// methods of Service, one file per noun or workflow; its SQL is under store,
// its HTTP under rest, and its wiring under app.
package idsite

import (
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/services/idsite/store"
)

// Peers are the services that this one asks.
type Peers struct {
	Directory   directoryapi.API
	Application applicationapi.API
	OAuth       oauthapi.API
}

// Service is the idsite service.
type Service struct {
	store *store.Store
	peers Peers
	now   func() time.Time
	cfg   Config
}

// Config holds the names that the service gives.
type Config struct {
	Title  string // the product's name on the wire: "Service"
	Suffix string // of the domains of hosted pages
}

// Product is the name that the service goes by.
func (s *Service) Product() string { return s.cfg.Title }

// New makes the service.
func New(s *store.Store, peers Peers, now func() time.Time, cfg Config) *Service {
	return &Service{store: s, peers: peers, now: now, cfg: cfg}
}
