package idsite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/words"
	"github.com/doorward/doorward/services/idsite/store"
)

// Bootstrap asks for the first tenant of an unattended deployment, with an API
// key whose id and secret are configured (docs/interface/authentication.md#sign-up).
type Bootstrap struct {
	KeyID      string
	KeySecret  secure.Secret
	OwnerEmail string
}

// keyTries bounds the search for a tenant key that nobody has.
const keyTries = 16

// SignUp makes a tenant over all services: the administrators directory with
// the owner's account, the console application and My Application, the API
// key, and the site of its hosted pages. Each step can be repeated, because its
// ids come from the key's id; so a sign-up that broke off is completed by the
// next, and two replicas that start together make one tenant. It returns the
// errors of the services: apierr.Exists for a key that has another secret,
// apierr.Unavailable for a service that is away.
//
// The owner has no password until it is reset by mail.
func (s *Service) SignUp(ctx context.Context, in Bootstrap) (directoryapi.Tenant, error) {
	named := func(what string) id.ID { return derived(in.KeyID, what) }
	ctx = caller.Into(ctx, caller.Caller{Tenant: named("tenant"), RequestID: caller.From(ctx).RequestID})
	made, err := s.signUpTenant(ctx, in.KeyID, directoryapi.SignUp{
		Tenant: named("tenant"), Directory: named("administrators"), Owner: named("owner"),
		DirectoryName: s.cfg.Title + " Administrators", Email: in.OwnerEmail,
	})
	if err != nil {
		return made.Tenant, fmt.Errorf("make the tenant: %w", err)
	}
	tenant := made.Tenant
	if _, err := s.peers.Application.SignUp(ctx, applicationapi.SignUp{
		Tenant: tenant.ID, Console: named("console"), ConsoleName: s.cfg.Title, Administrators: named("administrators"),
		ConsoleMapping: named("console mapping"),
		Application:    named("application"), ApplicationMapping: named("application mapping"), Directory: named("application directory"),
	}); err != nil {
		return tenant, fmt.Errorf("make the first applications: %w", err)
	}
	domain := tenant.Key + ".id." + s.cfg.Suffix
	now := s.now()
	site := store.Site{TenantID: tenant.ID, ID: named("site"), DomainName: domain, AuthorizedOriginURIs: []string{"https://" + domain},
		CreatedAt: now, ModifiedAt: now}
	if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.EnsureSite(ctx, site) }); err != nil {
		return tenant, fmt.Errorf("make the site of the hosted pages: %w", err)
	}
	// The key comes last: who holds a key that works holds a whole tenant.
	if _, err := s.peers.OAuth.EnsureKey(ctx, oauthapi.EnsureKey{Tenant: tenant.ID, Account: named("owner"), ID: in.KeyID,
		Secret: in.KeySecret}); err != nil {
		return tenant, fmt.Errorf("make the API key: %w", err)
	}
	return tenant, nil
}

// signUpTenant looks for a tenant key that is free. A tenant that is there
// already keeps its own.
func (s *Service) signUpTenant(ctx context.Context, seed string, in directoryapi.SignUp) (made directoryapi.SignedUp, err error) {
	for try := range keyTries {
		in.Key = words.Pair("doorward/bootstrap/" + seed + "/tenant key/" + strconv.Itoa(try))
		if made, err = s.peers.Directory.SignUp(ctx, in); !errors.Is(err, apierr.Exists) {
			return made, err
		}
	}
	return made, fmt.Errorf("none of %d keys is free: %s", keyTries, err.Error()) // no refusal of the API key: it may pass
}

// derived gives the id of a part of the first tenant: a UUID of version 8 (RFC
// 9562) made from the SHA-256 of the key's id and the part's name.
func derived(keyID, what string) id.ID {
	sum := sha256.Sum256([]byte("doorward/bootstrap/" + keyID + "/" + what))
	v := id.ID(sum[:16])
	v[6] = v[6]&0x0f | 0x80
	v[8] = v[8]&0x3f | 0x80
	return v
}
