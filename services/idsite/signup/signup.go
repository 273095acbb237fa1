// Package signup creates tenants: the first one of a deployment (bootstrap.go), and those of anybody who signs up.
package signup

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/words"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// Bootstrap configures the first tenant of a deployment and its API key
// (docs/interface/authentication.md#sign-up). bootstrap.go retries its creation.
type Bootstrap struct {
	KeyID      string
	KeySecret  secure.Secret
	OwnerEmail string
}

// Config has the names of what a tenant gets.
type Config struct {
	AliasTitle string // of the directory of the administrators, and of the console
	Suffix     string // of the default domains of hosted pages
	SignUp     bool   // anybody may create a tenant at /register
}

// Tenants creates tenants.
type Tenants struct {
	store *store.Store
	peers journey.Peers
	ring  *secure.Keyring
	now   func() time.Time
	cfg   Config
}

// New makes what creates tenants.
func New(s *store.Store, peers journey.Peers, ring *secure.Keyring, now func() time.Time, cfg Config) *Tenants {
	return &Tenants{s, peers, ring, now, cfg}
}

// maxKeyAttempts is how many tenant keys are tried until one is free.
const maxKeyAttempts = 16

// SignUpFirstTenant creates the first tenant in all services: the administrators directory with
// the owner's account, the console application and My Application, the site of its hosted pages,
// and the API key. Each step is idempotent, because all ids are derived from the id of the key:
// an attempt that failed is completed by the next one, and two replicas that start at once create
// one tenant. It returns the errors of the services: apierr.Exists for a key that has another
// secret, apierr.Unavailable for a service that is unavailable. A key that was deleted is not
// created again, so that a leaked key can be revoked.
//
// The owner has no password until it is reset by mail.
func (t *Tenants) SignUpFirstTenant(ctx context.Context, in Bootstrap) (directoryapi.Tenant, error) {
	return t.createTenant(ctx, in.KeyID, directoryapi.SignUp{Tenant: derivedID(in.KeyID, "tenant"), Email: in.OwnerEmail},
		oauthapi.EnsureKey{ID: in.KeyID, Secret: in.KeySecret})
}

// createTenant creates the tenant of owner, with parts whose ids are derived from seed.
func (t *Tenants) createTenant(ctx context.Context, seed string, owner directoryapi.SignUp, key oauthapi.EnsureKey) (
	directoryapi.Tenant, error) {
	by := caller.From(ctx)
	by.Tenant, by.Key, by.Account = owner.Tenant, "", id.ID{}
	ctx = caller.Into(ctx, by)
	named, err := t.partIDs(ctx, owner.Tenant, seed)
	if err != nil {
		return directoryapi.Tenant{}, fmt.Errorf("look for the tenant: %w", err)
	}
	owner.Directory, owner.DirectoryName = named("administrators"), t.cfg.AliasTitle+" Administrators"
	if owner.Owner.IsZero() {
		owner.Owner = named("owner")
	}
	made, err := t.signUpWithFreeKey(ctx, seed, owner)
	if err != nil {
		return made.Tenant, fmt.Errorf("make the tenant: %w", err)
	}
	tenant := made.Tenant
	if _, err := t.peers.Application.SignUp(ctx, applicationapi.SignUp{
		Tenant: tenant.ID, Console: named("console"), ConsoleName: t.cfg.AliasTitle, Administrators: named("administrators"),
		ConsoleMapping: named("console mapping"), Application: named("application"),
		ApplicationMapping: named("application mapping"),
		Directory:          named("application directory"),
	}); err != nil {
		return tenant, fmt.Errorf("make the first applications: %w", err)
	}
	domain := tenant.Key + ".id." + t.cfg.Suffix
	now := t.now()
	site := store.Site{
		TenantID: tenant.ID, ID: named("site"), DomainName: domain, AuthorizedOriginURIs: []string{"https://" + domain},
		CreatedAt:  now,
		ModifiedAt: now,
	}
	err = t.store.Tx(ctx, func(tx *store.Tx) error { return tx.EnsureSite(ctx, site) })
	if err == nil {
		site, err = t.store.TenantSite(ctx, tenant.ID)
	}
	if err != nil {
		return tenant, fmt.Errorf("make the site of the hosted pages: %w", err)
	}
	// The key is created last, so that a key that works has a complete tenant.
	key.Tenant, key.Account, key.MustExist = tenant.ID, owner.Owner, site.KeyMade
	_, err = t.peers.OAuth.EnsureKey(ctx, key)
	switch {
	case site.KeyMade && errors.Is(err, apierr.NotFound):
		slog.WarnContext(ctx, "the first API key of the tenant was deleted, and is not made again", "key", key.ID, "tenant",
			tenant.ID)
		return tenant, nil
	case err != nil:
		return tenant, fmt.Errorf("make the API key: %w", err)
	case site.KeyMade:
		return tenant, nil
	}
	slog.InfoContext(ctx, "made the first API key of a tenant", "key", key.ID, "tenant", tenant.ID)
	return tenant, t.store.Tx(ctx, func(tx *store.Tx) error { return tx.MarkKeyMade(ctx, tenant.ID) })
}

// SignUpEnabled reports whether anybody may create a tenant.
func (t *Tenants) SignUpEnabled() bool { return t.cfg.SignUp }

// RequestSignUp sends the mail that confirms the sign-up of a tenant
// (docs/interface/authentication.md#sign-up). It returns apierr.NotFound where sign-up is off,
// apierr.TooMany, and the errors of a new account, but none that tells whether the email is known
// (user enumeration).
func (t *Tenants) RequestSignUp(ctx context.Context, owner directoryapi.NewAccount) error {
	if !t.cfg.SignUp {
		return apierr.NotFound
	}
	now := t.now()
	_, err := t.peers.Directory.RequestSignUp(ctx,
		directoryapi.RequestSignUp{Tenant: id.New(now), Account: id.New(now), Owner: owner})
	return err
}

// PendingSignUp returns the sign-up or the invitation of a mailed token, or apierr.NotFound.
func (t *Tenants) PendingSignUp(ctx context.Context, token secure.Secret) (directoryapi.PendingSignUp, error) {
	return t.peers.Directory.PendingSignUp(ctx, directoryapi.SignUpToken{Token: token})
}

// CompleteSignUp creates the tenant of a sign-up that was confirmed by its mail, and returns it
// with the API key of its owner. It consumes the token at the end: of parallel calls one succeeds
// and the others return apierr.NotFound, and a call that fails can be repeated.
func (t *Tenants) CompleteSignUp(ctx context.Context,
	token secure.Secret) (directoryapi.Tenant, oauthapi.EnsureKey, error) {
	pending, err := t.PendingSignUp(ctx, token)
	if err == nil && pending.Invitation {
		err = apierr.NotFound
	}
	if err != nil {
		return directoryapi.Tenant{}, oauthapi.EnsureKey{}, err
	}
	seed := pending.Tenant.String()
	// The API key is derived from the token, so that a repeated call returns the same key.
	_, master := t.ring.Derive("idsite.sign-up/" + seed)
	part := func(what string) []byte { return []byte(secure.Derive(master, what+token.Reveal())) }
	key := oauthapi.EnsureKey{
		ID:     base32.StdEncoding.EncodeToString(part("key id"))[:26],
		Secret: secure.Secret(base64.RawURLEncoding.EncodeToString(part("key secret"))),
	}
	tenant, err := t.createTenant(ctx, seed,
		directoryapi.SignUp{Tenant: pending.Tenant, Owner: pending.Account, Pending: true}, key)
	if err == nil {
		_, err = t.peers.Directory.EndSignUp(ctx, directoryapi.SignUpToken{Token: token})
	}
	return tenant, key, err
}

// AcceptInvitation creates the account of an invited administrator. It returns apierr.NotFound for
// an invalid token, apierr.OtherInvitee for another email than the invitation's, and the errors
// of a new account.
func (t *Tenants) AcceptInvitation(ctx context.Context, token secure.Secret,
	in directoryapi.NewAccount) (directoryapi.Account, error) {
	return t.peers.Directory.AcceptInvitation(ctx, directoryapi.AcceptInvitation{Token: token, Account: in})
}

// signUpWithFreeKey creates the tenant in the directory service with a tenant key that is free. A
// tenant that exists already keeps its key. A key that an operator has chosen is the only one that is tried.
func (t *Tenants) signUpWithFreeKey(ctx context.Context, seed string,
	in directoryapi.SignUp) (made directoryapi.SignedUp, err error) {
	if in.Key != "" {
		return t.peers.Directory.SignUp(ctx, in)
	}
	for attempt := range maxKeyAttempts {
		in.Key = words.Pair("doorward/bootstrap/" + seed + "/tenant key/" + strconv.Itoa(attempt))
		if made, err = t.peers.Directory.SignUp(ctx, in); !errors.Is(err, apierr.Exists) {
			return made, err
		}
	}
	// The error does not wrap apierr.Exists, which would mean the API key: a retry may succeed.
	return made, fmt.Errorf("none of %d keys is free: %s", maxKeyAttempts, err.Error())
}

// parts are the parts of a tenant in the order in which lists have them.
var parts = []string{"administrators", "owner", "application directory", "console", "console mapping", "application",
	"application mapping", "site"}

// partIDs returns the function of the ids of a tenant's parts. The ids sort in the order of parts and
// before every id.New, because lists sort by id where they are to sort by time. A tenant that an
// earlier release has begun keeps its ids, which are hashes as a whole.
func (t *Tenants) partIDs(ctx context.Context, tenant id.ID, seed string) (func(what string) id.ID, error) {
	hashed := func(what string) id.ID { return derivedID(seed, what) }
	_, err := t.peers.Directory.Directory(ctx, directoryapi.Ref{Tenant: tenant, ID: hashed("administrators")})
	if !errors.Is(err, apierr.NotFound) {
		return hashed, err
	}
	return func(what string) id.ID {
		v := hashed(what)
		copy(v[:8], []byte{6: 0x80, 7: byte(slices.Index(parts, what))}) // the time zero, version 8, the order
		return v
	}, nil
}

// derivedID returns an id that is a hash as a whole: a UUID of version 8 (RFC 9562) made from the
// SHA-256 of a seed, such as the id of the API key, and the name of what has the id.
func derivedID(seed, what string) id.ID {
	sum := sha256.Sum256([]byte("doorward/bootstrap/" + seed + "/" + what))
	v := id.ID(sum[:16])
	v[6] = v[6]&0x0f | 0x80
	v[8] = v[8]&0x3f | 0x80
	return v
}
