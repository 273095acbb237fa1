// Package store has all SQL of the OAuth service, one file per noun. Store reads; Tx writes.
// Every query names its tenant, but for FindAPIKey, by which the tenant of a request is
// found, and the purges, which delete expired rows of all tenants.
package store

import (
	"context"
	"embed"
	"io/fs"
	"time"

	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	pgcache "github.com/doorward/doorward/pkg/pg/cache"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/secure"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations returns the migrations of the service's tables.
func Migrations() fs.FS { return pg.Embedded(files) }

// Config returns the address of the service's database, its schema and its migrations.
func Config(url secure.Secret) pg.Config {
	return pg.Config{
		URL: url, Schema: "oauth",
		Migrations: []fs.FS{outbox.Migrations(), counter.Migrations(), customdatastore.Migrations(), Migrations()},
	}
}

// Store reads the tables of the service.
type Store struct {
	purgesql.Purger
	db     *pg.DB
	outbox *outbox.Outbox

	apiKeys         *pgcache.Cache[APIKey] // of all tenants
	apiKeyFeed      *pgcache.Feed
	policies        *pgcache.Cache[Policy]
	signingKeys     *pgcache.Cache[SigningKey]
	openIDProviders *pgcache.Cache[OpenIDProvider]
	openIDClients   *pgcache.Cache[OpenIDClient]
	clientSecrets   *pgcache.Cache[ClientSecret]
	siteDomains     *pgcache.Cache[SiteDomain]
	webConfigs      *pgcache.Cache[WebConfig]
	tokens          map[TokenKind]*pgcache.Cache[Token]
}

// tokenCacheSize is twice the number of tokens of a kind that are cached, half a kilobyte
// each.
const tokenCacheSize = 1 << 16

// apiKeyChannel is the channel of PostgreSQL notifications (NOTIFY) with the API keys that are created,
// enabled, disabled and deleted.
const apiKeyChannel = "oauth.apiKeys"

// apiKeyCacheSize is twice the number of API keys that are cached, half a kilobyte each.
const apiKeyCacheSize = 1 << 14

// policyCacheSize is in applications. A validation reads the policy, because it says whether
// a change of the password revokes tokens.
const policyCacheSize = 1 << 15

// signingKeyCacheSize is in keys: those of the tenants that sign tokens at present.
const signingKeyCacheSize = 1 << 14

// New returns the store of the service.
func New(db *pg.DB, now func() time.Time) *Store {
	tokens := func(name string, kind TokenKind) *pgcache.Cache[Token] {
		return pgcache.NewWithin[Token](db, pgcache.FreshBounds(tokenCacheSize), name, "oauth.tokens", kind.selectByID(), nil)
	}
	return &Store{
		Purger: purgesql.NewPurger(db), db: db, outbox: outbox.New(db, "oauth", now),
		apiKeys:    pgcache.NewWithin[APIKey](db, pgcache.FreshBounds(apiKeyCacheSize), "oauth.apiKeys", apiKeyChannel, "", nil),
		apiKeyFeed: pgcache.NewFeed(db, apiKeyChannel),
		policies: pgcache.NewWithin[Policy](db, pgcache.FreshBounds(policyCacheSize), "oauth.policies", "oauth.policies",
			policyQuery, nil),
		signingKeys: pgcache.NewWithin[SigningKey](db, pgcache.FreshBounds(signingKeyCacheSize), "oauth.signingKeys",
			"oauth.signingKeys", signingKeysQuery, nil),
		openIDProviders: pgcache.NewWithin[OpenIDProvider](db, pgcache.FreshBounds(policyCacheSize), "oauth.openIdProviders",
			"oauth.openIdProviders", openIDProviderQuery, nil),
		openIDClients: pgcache.NewWithin[OpenIDClient](db, pgcache.FreshBounds(policyCacheSize), "oauth.openIdClients",
			"oauth.openIdClients", openIDClientQuery, nil),
		clientSecrets: pgcache.NewWithin[ClientSecret](db, pgcache.FreshBounds(policyCacheSize), "oauth.clientSecrets",
			"oauth.clientSecrets", clientSecretQuery, nil),
		siteDomains: pgcache.NewWithin[SiteDomain](db, pgcache.FreshBounds(policyCacheSize), "oauth.siteDomains",
			"oauth.siteDomains", siteDomainQuery, nil),
		webConfigs: pgcache.New[WebConfig](db, "oauth.webConfigs", "oauth.webConfigs", webConfigQuery, nil),
		tokens: map[TokenKind]*pgcache.Cache[Token]{Access: tokens("oauth.accessTokens", Access),
			Refresh: tokens("oauth.refreshTokens", Refresh)},
	}
}

// Outbox runs the service's transactions, and records the events that the service has
// handled.
func (s *Store) Outbox() *outbox.Outbox { return s.outbox }

// Tx writes in a transaction. Its Seen commits the id of a handled event together with the
// effect of the event.
type Tx struct {
	*outbox.Tx
	counter.Counters
	store *Store
}

// Tx runs fn in a transaction. After the commit, RecentToken of this process does not return
// a token that was deleted by DeleteToken or DeleteTokenPair.
func (s *Store) Tx(ctx context.Context, fn func(*Tx) error) error {
	return s.outbox.InTx(ctx, func(tx *outbox.Tx) error { return fn(&Tx{tx, counter.In(tx), s}) })
}

// invalidateTokens removes tokens from the caches of all processes when the transaction commits.
func (tx *Tx) invalidateTokens(kind TokenKind, tenant id.ID, tokens ...id.ID) {
	for _, token := range tokens {
		tx.store.tokens[kind].InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: token})
	}
}
