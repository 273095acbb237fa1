package idsite

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// Bootstrap asks for the first tenant of an unattended deployment, with an API
// key whose id and secret are configured (resolutions, section 11.2).
type Bootstrap struct {
	KeyID      string
	KeySecret  secure.Secret
	OwnerEmail string
}

// SignUp makes a tenant over all services: the administrators directory with
// the owner's account, the console application and My Application, the API
// key, and the site of its hosted pages. Each step can be repeated, because its
// ids come from the key's id; so a sign-up that broke off is completed by the
// next, and two replicas that start together make one tenant.
//
// The owner has no password until it is reset by mail.
func (s *Service) SignUp(ctx context.Context, in Bootstrap) error {
	named := func(what string) id.ID { return derived(in.KeyID, what) }
	key := tenantKey(named("tenant key"))
	tenant, owner := named("tenant"), named("owner")
	if _, err := s.peers.Directory.SignUp(ctx, directoryapi.SignUp{
		Tenant: tenant, Directory: named("administrators"), Owner: owner,
		Key: key, DirectoryName: s.cfg.Title + " Administrators", Email: in.OwnerEmail,
	}); err != nil {
		return fmt.Errorf("make the tenant: %w", err)
	}
	if _, err := s.peers.Application.SignUp(ctx, applicationapi.SignUp{
		Tenant: tenant, Console: named("console"), ConsoleName: s.cfg.Title, Administrators: named("administrators"), ConsoleMapping: named("console mapping"),
		Application: named("application"), ApplicationMapping: named("application mapping"), Directory: named("application directory"),
	}); err != nil {
		return fmt.Errorf("make the first applications: %w", err)
	}
	domain := key + ".id." + s.cfg.Suffix
	now := s.now()
	site := store.Site{TenantID: tenant, ID: named("site"), DomainName: domain, AuthorizedOriginURIs: []string{"https://" + domain}, CreatedAt: now, ModifiedAt: now}
	if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.EnsureSite(ctx, site) }); err != nil {
		return fmt.Errorf("make the site of the hosted pages: %w", err)
	}
	// The key comes last: who holds a key that works holds a whole tenant.
	if _, err := s.peers.OAuth.EnsureKey(ctx, oauthapi.EnsureKey{Tenant: tenant, Account: owner, ID: in.KeyID, Secret: in.KeySecret}); err != nil {
		return fmt.Errorf("make the API key: %w", err)
	}
	return nil
}

// Ensure signs the first tenant up, and tries again until it is done or ctx
// ends: the other services may start later than this one.
func (s *Service) Ensure(ctx context.Context, in Bootstrap) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := s.SignUp(ctx, in)
		if err == nil || ctx.Err() != nil {
			return err
		}
		slog.WarnContext(ctx, "the first tenant is not complete yet", "error", err.Error())
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
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

var (
	adjectives = []string{"amber", "brave", "brisk", "calm", "clear", "cosy", "eager", "fair", "gentle", "glad", "keen", "kind", "light", "lively", "merry", "mild", "neat", "quick", "quiet", "ready", "shy", "silver", "soft", "steady", "still", "swift", "tidy", "warm", "wide", "wise", "young", "zesty"}
	animals    = []string{"badger", "beaver", "bison", "crane", "deer", "dove", "eagle", "falcon", "finch", "fox", "goose", "hare", "heron", "ibis", "jay", "koala", "lark", "lemur", "lynx", "marten", "mole", "moose", "newt", "otter", "owl", "panda", "puffin", "raven", "robin", "seal", "stork", "wren"}
)

// tenantKey makes two words joined by a hyphen.
func tenantKey(from id.ID) string {
	return adjectives[int(from[0])%len(adjectives)] + "-" + animals[int(from[1])%len(animals)]
}
