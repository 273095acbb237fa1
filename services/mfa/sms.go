package mfa

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa/store"
)

const (
	// placeholder stands for the code in the text of a message. The notification service
	// replaces it (services/notification/smschannel.go).
	placeholder    = "${code}"
	defaultMessage = "Your verification code is " + placeholder
	maxMessage     = 160 // characters, with the placeholder
)

// FactorPhone names the phone of a new SMS factor: by the href of a phone of the account, or
// by a number, for which a phone is created unless the account has one with that number. The
// other members are those of a new phone.
type FactorPhone struct {
	Href field.Text `json:"href"`
	PhoneBody
}

// UnmarshalJSON reads the members of a phone and refuses all others.
func (in *FactorPhone) UnmarshalJSON(data []byte) error {
	type members FactorPhone // without this method
	var readOnly struct {
		CreatedAt  string `json:"createdAt"`
		ModifiedAt string `json:"modifiedAt"`
		Account    string `json:"account"`
	}
	return field.Nested(data, (*members)(in), readOnly)
}

// findOrInsertPhone returns the phone of a new factor. It adds a phone for a number that the
// account does not have yet.
func (s *Service) findOrInsertPhone(ctx context.Context, tx *store.Tx, a directoryapi.Account,
	in FactorPhone) (id.ID, error) {
	if in.Href.Given() {
		return s.phoneAtHref(ctx, tx, a, in)
	}
	p, err := s.readNewPhone(a, in.PhoneBody)
	if err != nil {
		return id.ID{}, err
	}
	existing, err := tx.PhoneOfNumber(ctx, a.TenantID, a.ID, p.Number)
	if errors.Is(err, apierr.NotFound) {
		return p.ID, tx.InsertPhone(ctx, p)
	}
	return existing.ID, err
}

// phoneAtHref returns the phone of the account at an href. It returns apierr.NotFound,
// apierr.Reference for the phone of another account, and apierr.PhoneContradicts where the
// body also gives a number and the phone has another.
func (s *Service) phoneAtHref(ctx context.Context, tx *store.Tx, a directoryapi.Account,
	in FactorPhone) (id.ID, error) {
	ref, ok := s.base.Parse(in.Href.Value)
	switch {
	case ref.Kind != "phones":
		return id.ID{}, apierr.Reference.Because("phone: %q is not the href of a phone", in.Href.Value)
	case !ok:
		return id.ID{}, apierr.NotFound.Because("phone: there is nothing at %q", in.Href.Value)
	}
	p, err := tx.LockPhone(ctx, a.TenantID, ref.ID)
	switch {
	case errors.Is(err, apierr.NotFound):
		return id.ID{}, apierr.NotFound.Because("phone: there is nothing at %q", in.Href.Value)
	case err != nil:
		return id.ID{}, err
	case p.AccountID != a.ID:
		return id.ID{}, apierr.Reference.Because("phone: %q belongs to another account", in.Href.Value)
	case !in.Number.Given():
		return p.ID, nil
	}
	number, err := readNumber(in.Number)
	if err == nil && number != p.Number {
		err = apierr.PhoneContradicts.Because("the phone %q has the number %s, not %s", in.Href.Value, p.Number, number)
	}
	return p.ID, err
}

// readMessage returns the text of the message that a body gives, or the default, with the
// placeholder of the code still in it.
func readMessage(in field.Text) (string, error) {
	message, err := field.Nonempty(in, "message", maxMessage)
	switch {
	case err != nil:
		return "", err
	case message == nil:
		return defaultMessage, nil
	case !strings.Contains(*message, placeholder):
		return "", apierr.MessagePlaceholder
	}
	return *message, nil
}

// emitSMS makes the code of an SMS challenge and emits the event ChallengeCreated, by which
// the notification service sends the text message (services/notification/smschannel.go).
// It returns apierr.TooMany at a limit of messages, and apierr.PhoneDisabled.
func (s *Service) emitSMS(ctx context.Context, tx *store.Tx, f store.Factor, c *store.Challenge, in field.Text) error {
	message, err := readMessage(in)
	if err != nil {
		return err
	}
	phone, err := tx.LockPhone(ctx, f.TenantID, f.PhoneID)
	if err != nil {
		return err
	}
	if err := checkPhoneEnabled(phone); err != nil {
		return err
	}
	if err := s.countMessage(ctx, tx, f, phone); err != nil {
		return err
	}
	code, key := newCode(), secure.Token(43)
	c.Message = &message
	c.CodeKeySealed = s.ring.Seal(key, codeKeyPurpose(c.ID))
	c.CodeHash = hashCode(key, code.Reveal())
	return tx.Emit(ctx, events.ChallengeCreated{
		Tenant: c.TenantID, Account: c.AccountID, Challenge: c.ID, Number: phone.Number, Message: message,
		Code: s.ring.Seal(code, events.CodePurpose(c.ID)), ExpiresAt: c.ExpiresAt,
	})
}

// checkPhoneEnabled returns apierr.PhoneDisabled where the phone of a factor is disabled.
func checkPhoneEnabled(p store.Phone) error {
	if p.Status != store.Enabled {
		return apierr.PhoneDisabled.Because("the phone %s of the factor is disabled", p.Number)
	}
	return nil
}

// newCode returns a one-time code (OTP) for a text message: six random digits.
func newCode() secure.Secret {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // crypto/rand's Reader never fails
	}
	return secure.Secret(fmt.Sprintf("%06d", n))
}

// codeKeyPurpose is the purpose for which the HMAC key of a challenge's code is sealed.
func codeKeyPurpose(challenge id.ID) string { return "mfa.codekey/" + challenge.String() }

// hashCode returns the HMAC of a code, which is what the database holds. The key of each
// challenge is sealed: a plain hash of six digits could be reversed.
func hashCode(key secure.Secret, code string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(code))
	return mac.Sum(nil)
}

// isSentCode reports whether a code is the one that was sent by text message. The comparison
// takes constant time.
func (s *Service) isSentCode(c store.Challenge, code string) (bool, error) {
	key, err := s.ring.Open(c.CodeKeySealed, codeKeyPurpose(c.ID))
	return err == nil && hmac.Equal(hashCode(key, code), c.CodeHash), err
}
