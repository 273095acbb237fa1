package relyingparty

import (
	"context"
	"errors"
	"fmt"
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

// errKeys says that a client has no keys, or that those of its jwksUri cannot be read.
var errKeys = errors.New("relyingparty: there are no keys")

// publicKeys returns the public keys of a client: those that it was registered with, or those of its jwksUri, which is
// asked through the guard of outbound connections. kid is the header of the signature, nil where it has none.
func (s *Clients) publicKeys(ctx context.Context, client store.OpenIDClient, kid any) ([]secure.VerificationKey,
	error) {
	if client.Settings.JWKSURI == nil {
		if client.Settings.JWKS == nil {
			return nil, errKeys
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
		return nil, errKeys
	}
	return found.keys, nil
}

func (s *Clients) fetchKeys(ctx context.Context, address string) (fetchedKeys, error) {
	text, _, err := s.fetch(ctx, address, "*/*", maxKeySet)
	if err != nil {
		return fetchedKeys{}, err
	}
	keys, err := secure.ParseKeySet(text)
	return fetchedKeys{keys, s.Now()}, err
}

// fetch gets a text from the server of a client, through the guard of outbound connections. Its error has no
// text of the server, and may be shown.
func (s *Clients) fetch(ctx context.Context, address, accept string, most int) ([]byte, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", accept)
	response, err := s.outbound.Do(request)
	if err != nil {
		return nil, nil, errors.New("its server cannot be reached")
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, nil, errors.New("its server breaks off")
	case response.StatusCode != http.StatusOK:
		return nil, nil, fmt.Errorf("its server answers %d", response.StatusCode)
	case len(text) > most:
		return nil, nil, fmt.Errorf("it has more than %d KiB", most>>10)
	}
	return text, response.Header, nil
}
