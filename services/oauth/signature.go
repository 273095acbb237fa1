package oauth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// The values of the scheme SAuthc1 (docs/interface/authentication.md#sauthc1).
// One family of clients writes the month where the minutes belong: its clock
// seems to be up to 58 minutes slow.
const (
	signatureScheme = "SAuthc1"
	requestSuffix   = "sauthc1_request" // last part of the id of a request, and of the key derivation
	timeLayout      = "20060102T150405Z"
	dateLength      = len("20060102")
	maxClockAhead   = 15 * time.Minute
	maxClockBehind  = 60 * time.Minute
	nonceLifetime   = maxClockAhead + maxClockBehind
	maxNonce        = 100 // characters
)

// VerifySignature verifies a request that was signed with an API key (SAuthc1, HMAC-SHA-256;
// replay protection by nonce). The gateway makes the canonical request
// (gateway/sauthc1.go). An unknown key takes the same time as a wrong signature, and for
// neither a nonce is stored.
func (s *Service) VerifySignature(ctx context.Context, in oauthapi.VerifySignature) (oauthapi.Key, error) {
	signed, err := time.Parse(timeLayout, in.Timestamp)
	if err != nil || signed.Format(timeLayout) != in.Timestamp || in.Nonce == "" || len(in.Nonce) > maxNonce ||
		strings.ContainsFunc(in.Nonce, notVisible) {
		return oauthapi.Key{}, errBadAPIKey
	}
	now := s.now()
	if behind := now.Sub(signed); behind > maxClockBehind || behind < -maxClockAhead {
		return oauthapi.Key{}, apierr.Unauthorized.Because("the request was signed at %s, and it is %s; a clock may be %s slow and %s fast",
			in.Timestamp, now.UTC().Format(timeLayout), maxClockBehind, maxClockAhead)
	}
	k, err := s.keyOrDummy(ctx, in.ID)
	if err != nil {
		return oauthapi.Key{}, err
	}
	if !hmac.Equal([]byte(requestSignature(k.Secret, in)), []byte(in.Signature)) || k.ID != in.ID {
		return oauthapi.Key{}, errBadAPIKey
	}
	key, err := s.managementKey(ctx, k)
	if err != nil {
		return oauthapi.Key{}, err
	}
	ctx = caller.WithTenant(ctx, k.TenantID)
	if err := s.nonceInserts.add(ctx, store.Nonce{TenantID: k.TenantID, KeyID: k.ID, Nonce: in.Nonce}); err != nil {
		return oauthapi.Key{}, err
	}
	return key, nil
}

// errNonce refuses a request whose nonce was used already, or whose API key is disabled: the
// statement that stores nonces checks both.
var errNonce = apierr.Unauthorized.
	Because("the nonce was used, or the API key is disabled; sign every request with a new nonce, a retry too")

// useNonces stores nonces in one statement, for the group commit. The error of a nonce that
// was used before, or that occurs earlier in the list, is errNonce.
func (s *Service) useNonces(ctx context.Context, list []store.Nonce) []error {
	now := s.now()
	unique := slices.Compact(slices.SortedFunc(slices.Values(list), store.Nonce.Compare))
	var used *[]store.Nonce
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		used = tx.UseNonces(ctx, unique, now, now.Add(nonceLifetime))
		return nil
	})
	if err != nil {
		return repeatError(len(list), err)
	}
	fresh := map[store.Nonce]bool{}
	for _, nonce := range *used {
		fresh[nonce] = true
	}
	errs := make([]error, len(list))
	for i, nonce := range list {
		if !fresh[nonce] {
			errs[i] = errNonce
		}
		delete(fresh, nonce) // a second request with the same nonce is a replay
	}
	return errs
}

// ManagementKey returns the enabled API key of an administrator by its id, without a check of
// its secret.
func (s *Service) ManagementKey(ctx context.Context, in oauthapi.ManagementKey) (oauthapi.Key, error) {
	k, err := s.keyOrDummy(ctx, in.ID)
	if err != nil {
		return oauthapi.Key{}, err
	}
	if k.ID != in.ID || k.Status != directoryapi.Enabled {
		return oauthapi.Key{}, errBadAPIKey
	}
	return s.managementKey(ctx, k)
}

// keyOrDummy returns the API key with an id, of any tenant, with its secret. For an unknown id it
// returns the dummy key, so that the check that follows takes the same time.
func (s *Service) keyOrDummy(ctx context.Context, keyID string) (store.APIKey, error) {
	if !isAPIKeyID(keyID) {
		return s.unsealSecret(s.dummy, nil)
	}
	k, err := s.store.FindAPIKey(ctx, keyID)
	if errors.Is(err, apierr.NotFound) {
		k, err = s.dummy, nil
	}
	return s.unsealSecret(k, err)
}

// requestSignature computes the signature of a request with the secret of an API key.
func requestSignature(secret secure.Secret, in oauthapi.VerifySignature) string {
	date := in.Timestamp[:dateLength]
	text := "HMAC-SHA-256\n" + in.Timestamp + "\n" + strings.Join([]string{in.ID, date, in.Nonce, requestSuffix}, "/") + "\n" + in.Request
	key := []byte(signatureScheme + secret.Reveal())
	for _, part := range []string{date, in.Nonce, requestSuffix} {
		key = hmacSHA256(key, part)
	}
	return hex.EncodeToString(hmacSHA256(key, text))
}

func hmacSHA256(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum(nil)
}

// notVisible reports whether a character may not stand in a part of a request's id.
func notVisible(r rune) bool { return r <= ' ' || r >= 0x7f || r == '/' || r == ',' }
