package relyingparty

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	fetchTimeout = 5 * time.Second // also of a client ID metadata document
	// fetchedKeysAge is how long the keys of a client's jwksUri are used. A signature with an unknown kid asks for them
	// again, at most every keyFetchPause.
	fetchedKeysAge = 5 * time.Minute
	keyFetchPause  = 30 * time.Second
)

// fetchedKeys are the keys that a jwksUri has returned.
type fetchedKeys struct {
	keys      []secure.VerificationKey
	fetchedAt time.Time
}

func (f fetchedKeys) has(kid any) bool {
	for _, key := range f.keys {
		if key.ID() == kid {
			return true
		}
	}
	return false
}

// ErrKeys says that a client has no keys, or that those of its jwksUri cannot be read.
var ErrKeys = errors.New("relyingparty: there are no keys")

// PublicKeys returns the public keys of a client: those that it was registered with, or those of its jwksUri, which is
// asked through the guard of outbound connections. kid is the header of the signature, nil where it has none.
func (s *Clients) PublicKeys(ctx context.Context, client store.OpenIDClient, kid any) ([]secure.VerificationKey,
	error) {
	if client.Settings.JWKSURI == nil {
		if client.Settings.JWKS == nil {
			return nil, ErrKeys
		}
		return secure.ParseKeySet(*client.Settings.JWKS)
	}
	address := *client.Settings.JWKSURI
	fetch := func(ctx context.Context) (fetchedKeys, error) { return s.fetchKeys(ctx, address) }
	found, err := s.fetched.Get(ctx, address, fetch)
	if err == nil && kid != nil && !found.has(kid) && s.Now().Sub(found.fetchedAt) >= keyFetchPause {
		found, err = s.fetched.Refresh(ctx, address, fetch)
	}
	if err != nil {
		return nil, ErrKeys
	}
	return found.keys, nil
}

func (s *Clients) fetchKeys(ctx context.Context, address string) (fetchedKeys, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fetchedKeys{}, err
	}
	response, err := s.outbound.Do(request)
	if err != nil {
		return fetchedKeys{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	if err != nil || response.StatusCode != http.StatusOK || len(text) > maxKeySet {
		return fetchedKeys{}, errors.Join(err, errors.New("the address of keys does not answer with a key set"))
	}
	keys, err := secure.ParseKeySet(text)
	return fetchedKeys{keys, s.Now()}, err
}
