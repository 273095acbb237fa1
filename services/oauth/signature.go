package oauth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// What the scheme SAuthc1 sets (resolutions, section 11.3).
const (
	signatureScheme = "SAuthc1"
	signatureEnd    = "sauthc1_request" // ends the id of a request, and the chain of keys
	timeLayout      = "20060102T150405Z"
	dateLength      = len("20060102")
	signatureSkew   = 15 * time.Minute
	nonceMemory     = 2 * signatureSkew
	maxNonce        = 100 // characters
)

// VerifySignature checks a signed request. An unknown key costs the same work as a
// wrong signature, and neither leaves a nonce behind.
func (s *Service) VerifySignature(ctx context.Context, in oauthapi.VerifySignature) (oauthapi.Key, error) {
	signed, err := time.Parse(timeLayout, in.Timestamp)
	if err != nil || signed.Format(timeLayout) != in.Timestamp || in.Nonce == "" || len(in.Nonce) > maxNonce || strings.ContainsFunc(in.Nonce, notVisible) {
		return oauthapi.Key{}, errBadKey
	}
	now := s.now()
	if now.Sub(signed).Abs() > signatureSkew {
		return oauthapi.Key{}, apierr.Unauthorized.Because("the request was signed for %s, and the time is %s: they may differ by %s", in.Timestamp, now.Format(timeLayout), signatureSkew)
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
	err = s.tx(ctx, func(tx *store.Tx) error {
		tx.UseNonce(store.Nonce{TenantID: k.TenantID, KeyID: k.ID, Nonce: in.Nonce, ExpiresAt: now.Add(nonceMemory)}, now)
		return nil
	})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Unauthorized.Because("the nonce was used already, or the API key is disabled; sign every request with a nonce of its own, a repeated one too")
	}
	if err != nil {
		return oauthapi.Key{}, err
	}
	return k.Key, nil
}

// ManagementKey gives a key without a proof of its secret.
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

// signer gives the key with this id as it was at most keyMaxAge ago. One that
// does not exist is remembered too, as the dummy.
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

// signature signs a request as its sender did.
func signature(secret secure.Secret, in oauthapi.VerifySignature) string {
	date := in.Timestamp[:dateLength]
	text := "HMAC-SHA-256\n" + in.Timestamp + "\n" + strings.Join([]string{in.ID, date, in.Nonce, signatureEnd}, "/") + "\n" + in.Request
	key := []byte(signatureScheme + secret.Reveal())
	for _, link := range []string{date, in.Nonce, signatureEnd} {
		key = mac(key, link)
	}
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum(nil)
}

// notVisible reports what no part of a request's id may hold.
func notVisible(r rune) bool { return r <= ' ' || r >= 0x7f || r == '/' || r == ',' }
