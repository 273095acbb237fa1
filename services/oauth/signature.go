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
	requestSuffix   = "sauthc1_request" // ends the id of a request, and the chain of keys
	timeLayout      = "20060102T150405Z"
	dateLength      = len("20060102")
	maxAhead        = 15 * time.Minute
	maxBehind       = 60 * time.Minute
	nonceLifetime   = maxAhead + maxBehind
	maxNonce        = 100 // characters
)

// VerifySignature checks a signed request. An unknown key costs the same work as a
// wrong signature, and neither leaves a nonce behind.
func (s *Service) VerifySignature(ctx context.Context, in oauthapi.VerifySignature) (oauthapi.Key, error) {
	signed, err := time.Parse(timeLayout, in.Timestamp)
	if err != nil || signed.Format(timeLayout) != in.Timestamp || in.Nonce == "" || len(in.Nonce) > maxNonce ||
		strings.ContainsFunc(in.Nonce, notVisible) {
		return oauthapi.Key{}, errBadKey
	}
	now := s.now()
	if behind := now.Sub(signed); behind > maxBehind || behind < -maxAhead {
		return oauthapi.Key{}, apierr.Unauthorized.Because("the request was signed at %s, and it is %s; a clock may be %s slow and %s fast",
			in.Timestamp, now.UTC().Format(timeLayout), maxBehind, maxAhead)
	}
	k, err := s.signer(ctx, in.ID)
	if err != nil {
		return oauthapi.Key{}, err
	}
	if !hmac.Equal([]byte(signature(k.Secret, in)), []byte(in.Signature)) || k.ID != in.ID {
		return oauthapi.Key{}, errBadKey
	}
	if err := s.stillAdministers(ctx, k); err != nil {
		return oauthapi.Key{}, err
	}
	ctx = caller.WithTenant(ctx, k.TenantID)
	if err := s.nonces.add(ctx, store.Nonce{TenantID: k.TenantID, KeyID: k.ID, Nonce: in.Nonce}); err != nil {
		return oauthapi.Key{}, err
	}
	return k.Key, nil
}

// errNonce refuses a request whose nonce cannot be stored.
var errNonce = apierr.Unauthorized.
	Because("the nonce was used, or the API key is disabled; sign every request with a new nonce, a retry too")

// useNonces stores nonces, each once.
func (s *Service) useNonces(ctx context.Context, list []store.Nonce) []error {
	now := s.now()
	unique := slices.Compact(slices.SortedFunc(slices.Values(list), store.Nonce.Compare))
	var used *[]store.Nonce
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		used = tx.UseNonces(ctx, unique, now, now.Add(nonceLifetime))
		return nil
	})
	if err != nil {
		return all(len(list), err)
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
		delete(fresh, nonce) // the second request with it is a replay
	}
	return errs
}

// ManagementKey returns a key without a proof of its secret.
func (s *Service) ManagementKey(ctx context.Context, in oauthapi.ManagementKey) (oauthapi.Key, error) {
	k, err := s.signer(ctx, in.ID)
	if err != nil {
		return oauthapi.Key{}, err
	}
	if k.ID != in.ID || k.Status != directoryapi.Enabled {
		return oauthapi.Key{}, errBadKey
	}
	if err := s.stillAdministers(ctx, k); err != nil {
		return oauthapi.Key{}, err
	}
	return k.Key, nil
}

// signer returns the key with this id as it was at most keyMaxAge ago, and the
// dummy for one that does not exist.
func (s *Service) signer(ctx context.Context, name string) (store.Key, error) {
	if !isKeyID(name) {
		return s.unsealed(s.dummy, nil)
	}
	return s.signers.Get(ctx, name, func(ctx context.Context) (store.Key, error) {
		k, err := s.store.FindKey(ctx, name)
		if errors.Is(err, apierr.NotFound) {
			k, err = s.dummy, nil
		}
		return s.unsealed(k, err)
	})
}

// stillAdministers refuses a key whose account does not administer its tenant,
// as of at most keyMaxAge ago.
func (s *Service) stillAdministers(ctx context.Context, k store.Key) error {
	_, err := s.administrators.Get(ctx, k.ID, func(ctx context.Context) (struct{}, error) {
		administers, err := s.administers(ctx, k)
		if err == nil && !administers {
			err = errBadKey
		}
		return struct{}{}, err
	})
	return err
}

// signature returns the signature of a request under a secret.
func signature(secret secure.Secret, in oauthapi.VerifySignature) string {
	date := in.Timestamp[:dateLength]
	text := "HMAC-SHA-256\n" + in.Timestamp + "\n" + strings.Join([]string{in.ID, date, in.Nonce, requestSuffix}, "/") + "\n" + in.Request
	key := []byte(signatureScheme + secret.Reveal())
	for _, link := range []string{date, in.Nonce, requestSuffix} {
		key = mac(key, link)
	}
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum(nil)
}

// notVisible reports characters that no part of a request's id may contain.
func notVisible(r rune) bool { return r <= ' ' || r >= 0x7f || r == '/' || r == ',' }
