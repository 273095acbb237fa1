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
	// placeholder stands for the code in a message.
	placeholder    = "${code}"
	defaultMessage = "Your verification code is " + placeholder
	maxMessage     = 160 // characters, before the code is put in
)

// FactorPhone names the phone of a new factor: by the href of one of the account, or
// by a number, for which a phone is created unless the account has one. The other
// members are those of a new phone.
type FactorPhone struct {
	Href field.Text `json:"href"`
	PhoneText
}

// UnmarshalJSON reads the members, and refuses others than a phone has.
func (in *FactorPhone) UnmarshalJSON(data []byte) error {
	type members FactorPhone // without this method
	var readOnly struct {
		CreatedAt  string `json:"createdAt"`
		ModifiedAt string `json:"modifiedAt"`
		Account    string `json:"account"`
	}
	return field.Nested(data, (*members)(in), readOnly)
}

// factorPhone returns the phone of a new factor.
func (s *Service) factorPhone(ctx context.Context, tx *store.Tx, a directoryapi.Account, in FactorPhone) (id.ID, error) {
	if in.Href.Given() {
		return s.namedPhone(ctx, tx, a, in)
	}
	p, err := s.newPhone(a, in.PhoneText)
	if err != nil {
		return id.ID{}, err
	}
	existing, err := tx.PhoneOfNumber(ctx, a.TenantID, a.ID, p.Number)
	if errors.Is(err, apierr.NotFound) {
		return p.ID, tx.InsertPhone(ctx, p)
	}
	return existing.ID, err
}

// namedPhone returns the account's phone at an href, or apierr.NotFound, Reference
// for that of another account, and PhoneContradicts where its number is not the
// given one.
func (s *Service) namedPhone(ctx context.Context, tx *store.Tx, a directoryapi.Account, in FactorPhone) (id.ID, error) {
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

// readMessage reads the text of a message, in which the placeholder stays.
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

// send sets the code of a challenge and emits the event that sends it to the
// factor's phone, within the limits of messages.
func (s *Service) send(ctx context.Context, tx *store.Tx, f store.Factor, c *store.Challenge, text field.Text) error {
	message, err := readMessage(text)
	if err != nil {
		return err
	}
	phone, err := tx.LockPhone(ctx, f.TenantID, f.PhoneID)
	if err != nil {
		return err
	}
	if err := usable(phone); err != nil {
		return err
	}
	if err := s.countMessage(ctx, tx, phone); err != nil {
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

// usable returns apierr.PhoneDisabled for a phone that is disabled.
func usable(p store.Phone) error {
	if p.Status != store.Enabled {
		return apierr.PhoneDisabled.Because("the phone %s of the factor is disabled", p.Number)
	}
	return nil
}

// newCode returns six random digits, uniformly distributed.
func newCode() secure.Secret {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // crypto/rand's Reader never fails
	}
	return secure.Secret(fmt.Sprintf("%06d", n))
}

// codeKeyPurpose is the purpose that the key of a challenge's code is sealed for.
func codeKeyPurpose(challenge id.ID) string { return "mfa.codekey/" + challenge.String() }

// hashCode returns what is stored of a code. The key is sealed: a plain hash of six
// digits could be reversed.
func hashCode(key secure.Secret, code string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(code))
	return mac.Sum(nil)
}

// isSent reports whether a code is the one that was sent, in constant time.
func (s *Service) isSent(c store.Challenge, code string) (bool, error) {
	key, err := s.ring.Open(c.CodeKeySealed, codeKeyPurpose(c.ID))
	return err == nil && hmac.Equal(hashCode(key, code), c.CodeHash), err
}
