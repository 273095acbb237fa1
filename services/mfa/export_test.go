package mfa

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// AccountDeleted, AccountsDeleted, DirectoryDeleted and SMSReported call the handler of an event, as the
// consumer does.
func (s *Service) AccountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.accountDeleted(ctx, e, event)
}

func (s *Service) AccountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return s.accountsDeleted(ctx, e, event)
}

func (s *Service) DirectoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return s.directoryDeleted(ctx, e, event)
}

func (s *Service) SMSReported(ctx context.Context, e events.Envelope, event events.TextReported) error {
	return s.smsReported(ctx, e, event)
}

// AcceptedStep verifies the code of an authenticator.
func AcceptedStep(secret secure.Secret, code string, now time.Time, last int64) (int64, error) {
	return acceptedStep(secret, code, now, last)
}

// CanTransition reports whether a challenge can move from one state to another.
func CanTransition(from, to string) bool { return canTransition(from, to) }

// DrawQRCode returns the QR code of a text.
func DrawQRCode(text string) ([]byte, error) { return drawQRCode(text) }

// ReadNumber validates a telephone number.
func ReadNumber(in field.Text) (string, error) { return readNumber(in) }
