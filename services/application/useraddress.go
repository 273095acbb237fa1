package application

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// noteEvery is how often a process notes that the logins of an application come without the address
// of the user, and maxNoted of how many applications it remembers when it did.
const (
	noteEvery = time.Hour
	maxNoted  = 10_000
)

// missingUserAddress remembers which applications were noted lately. The time in the row says the same,
// but then every login would ask the database, and the logins of an application wait for its row.
type missingUserAddress struct {
	logins metric.Int64Counter

	mu    *sync.Mutex
	noted map[id.ID]time.Time
}

func newMissingUserAddress() missingUserAddress {
	counter, err := otel.Meter("application").Int64Counter("doorward_application_logins_without_user_address_total",
		metric.WithDescription("logins by an API key that did not name the address of the user; "+
			"the log and doorward doctor name the applications"))
	if err != nil {
		otel.Handle(err)
	}
	return missingUserAddress{logins: counter, mu: new(sync.Mutex), noted: map[id.ID]time.Time{}}
}

// isDue reports whether an application is to be noted now, and remembers that it was.
func (m missingUserAddress) isDue(application id.ID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Before(m.noted[application].Add(noteEvery)) {
		return false
	}
	if len(m.noted) >= maxNoted {
		clear(m.noted)
	}
	m.noted[application] = now
	return true
}

// noteMissingUserAddress counts a login whose client, with an API key, does not name the address of
// its user (docs/interface/limits.md#login-throttle). Once in an hour it logs the application, and
// records it for doorward doctor. A failure to record it does not concern the login.
func (s *Service) noteMissingUserAddress(ctx context.Context, application directoryapi.Ref) {
	s.missing.logins.Add(ctx, 1)
	now := s.now()
	if !s.missing.isDue(application.ID, now) {
		return
	}
	slog.WarnContext(ctx,
		"logins of an application do not name the address of the user; failed logins are counted for "+
			"the application", "application", application.ID.String())
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.RecordMissingUserAddress(ctx, application.Tenant, application.ID, now)
	})
	if err != nil {
		slog.WarnContext(ctx, "recording an application whose logins do not name the address of the user failed",
			"error",
			err.Error())
	}
}
