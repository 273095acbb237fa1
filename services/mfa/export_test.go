package mfa

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// AccountDeleted, DirectoryDeleted and TextReported hand an event to the service as its
// consumer does.
func (s *Service) AccountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.accountDeleted(ctx, e, event)
}

func (s *Service) DirectoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return s.directoryDeleted(ctx, e, event)
}

func (s *Service) TextReported(ctx context.Context, e events.Envelope, event events.TextReported) error {
	return s.textReported(ctx, e, event)
}

// PurgeOnce does what the worker does every minute.
func (s *Service) PurgeOnce(ctx context.Context) error { return s.purge(ctx) }

// AcceptedStep is the rule for an authenticator's code.
func AcceptedStep(secret secure.Secret, code string, now time.Time, last int64) (int64, error) {
	return acceptedStep(secret, code, now, last)
}

// Follows reports whether a challenge can go from one state to another.
func Follows(from, to string) bool { return follows(from, to) }

// Draw makes the QR code of a text.
func Draw(text string) ([]byte, error) { return draw(text) }

// ReadNumber reads a telephone number.
func ReadNumber(in field.Text) (string, error) { return readNumber(in) }
