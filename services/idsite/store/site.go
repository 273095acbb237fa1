package store

import (
	"context"
	"errors"
	"time"

	"github.com/sosodev/duration"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// The states of the repository of custom pages.
const (
	GitNone    = "NONE"
	GitPending = "PENDING"
	GitOK      = "OK"
	GitFailed  = "FAILED"
)

// Site holds the settings of a tenant's hosted login pages
// (docs/interface/id-site.md#settings).
type Site struct {
	TenantID                id.ID
	ID                      id.ID
	DefaultDomain           string // <tenant key>.id.<suffix>
	DomainName              string // DefaultDomain, or the custom domain of the tenant
	DomainClaimedAt         time.Time
	ProvedDomain            *string // the domain whose control was proved; it counts while it is DomainName
	AnnouncedDomain         *string // the domain of the newest SiteDomainChanged; nil: there was none
	TLSPublicCert           *string `db:"tls_public_cert"`
	TLSPrivateKey           *string `db:"tls_private_key"` // a value that is no private key, as it was sent
	TLSPrivateKeySealed     []byte  `db:"tls_private_key_sealed"`
	GitRepoURL              *string `db:"git_repo_url"`          // without its credential
	GitCredentialSealed     []byte  `db:"git_credential_sealed"` // user name and password of the URL
	GitBranch               *string
	GitStatus               string
	GitMessage              *string
	GitFetchedAt            *time.Time
	GitFailures             int      // fetches that have failed since one succeeded
	AuthorizedOriginURIs    []string `db:"authorized_origin_uris"`
	AuthorizedRedirectURIs  []string `db:"authorized_redirect_uris"`
	LogoURL                 *string  `db:"logo_url"`
	AccentColor             *string  // #rrggbb
	SessionTTI              string   `db:"session_tti"` // ISO 8601 duration
	SessionTTL              string   `db:"session_ttl"` // ISO 8601 duration
	SessionCookiePersistent bool
	KeyMade                 bool // the first API key of the tenant was created; it may have been deleted since
	CreatedAt               time.Time
	ModifiedAt              time.Time
}

// Lifetimes returns the idle timeout and the absolute timeout of the tenant's sessions of single sign-on.
func (s Site) Lifetimes() (idle, absolute time.Duration, err error) {
	if idle, err = ParseDuration(s.SessionTTI); err != nil {
		return 0, 0, err
	}
	absolute, err = ParseDuration(s.SessionTTL)
	return idle, absolute, err
}

// ParseDuration parses an ISO 8601 duration. A year has 365 days and a month 30. It is not field.ParseDuration, which
// refuses forms that settings may have, such as PT0.5H: a site whose lifetimes cannot be read has no logins.
func ParseDuration(text string) (time.Duration, error) {
	d, err := duration.Parse(text)
	if err != nil {
		return 0, err
	}
	return d.ToTimeDuration(), nil
}

// HasCustomDomain reports whether the tenant uses a custom domain.
func (s Site) HasCustomDomain() bool { return s.DomainName != s.DefaultDomain }

// IsDomainProved reports whether the tenant has proved that it controls its custom domain.
func (s Site) IsDomainProved() bool { return s.ProvedDomain != nil && *s.ProvedDomain == s.DomainName }

const siteColumns = `tenant_id, id, default_domain, domain_name, domain_claimed_at, proved_domain, announced_domain,
	tls_public_cert, tls_private_key, tls_private_key_sealed, git_repo_url, git_credential_sealed, git_branch,
	git_status, git_message, git_fetched_at, git_failures, authorized_origin_uris, authorized_redirect_uris, logo_url,
	accent_color, session_tti, session_ttl, session_cookie_persistent, key_made, created_at, modified_at`

// Sites are searched and sorted by these attributes.
var Sites = list.Spec{
	"domainName": {Column: "domain_name"},
	"createdAt":  {Column: "created_at", Kind: list.Time},
	"modifiedAt": {Column: "modified_at", Kind: list.Time},
}

// Site returns a site, or apierr.NotFound.
func (s *Store) Site(ctx context.Context, tenant, site id.ID) (Site, error) {
	return pg.One[Site](ctx, s.db, `SELECT `+siteColumns+` FROM id_sites WHERE tenant_id = $1 AND id = $2`, tenant, site)
}

const tenantSiteQuery = `SELECT ` + siteColumns + ` FROM id_sites WHERE tenant_id = $1`

// TenantSite returns the site of a tenant, or apierr.NotFound.
func (s *Store) TenantSite(ctx context.Context, tenant id.ID) (Site, error) {
	return pg.One[Site](ctx, s.db, tenantSiteQuery, tenant)
}

// DomainTenant returns the tenant that a domain of hosted pages belongs to, or
// apierr.NotFound.
func (s *Store) DomainTenant(ctx context.Context, domain string) (id.ID, error) {
	return pg.Value[id.ID](ctx, s.db, `SELECT tenant_id FROM id_site_domains WHERE domain = $1`, domain)
}

// ListSites returns a page of the tenant's sites, of which there is one.
func (s *Store) ListSites(ctx context.Context, tenant id.ID, query list.Query) (list.Page[Site], error) {
	return listsql.Select[Site](ctx, s.db, Sites, query, siteColumns, `FROM id_sites WHERE tenant_id = $1`, "id", tenant)
}

// EnsureSite adds the site of a tenant with its default domain, and announces that, unless the tenant has a site.
func (tx *Tx) EnsureSite(ctx context.Context, site Site) error {
	tx.Queue(`INSERT INTO id_site_domains (domain, tenant_id, is_default) VALUES (lower($1), $2, true)
		ON CONFLICT DO NOTHING`, site.DomainName, site.TenantID)
	n, err := pg.Exec(ctx, tx, `INSERT INTO id_sites (tenant_id, id, default_domain, domain_name, authorized_origin_uris,
		created_at, modified_at)
		VALUES ($1, $2, $3, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		site.TenantID, site.ID, site.DomainName, site.AuthorizedOriginURIs, site.CreatedAt, site.ModifiedAt)
	if err != nil || n == 0 {
		return err
	}
	return tx.AnnounceDomain(ctx, site)
}

// UnannouncedDomains returns at most limit sites whose domain was not announced: it was set by a release that
// announced none.
func (s *Store) UnannouncedDomains(ctx context.Context, limit int) ([]Site, error) {
	return pg.All[Site](ctx, s.db, `SELECT `+siteColumns+` FROM id_sites
		WHERE announced_domain IS DISTINCT FROM domain_name ORDER BY tenant_id LIMIT $1`, limit)
}

// AnnounceDomain emits the domain of a site that the transaction has read, unless it was announced.
func (tx *Tx) AnnounceDomain(ctx context.Context, s Site) error {
	if s.AnnouncedDomain != nil && *s.AnnouncedDomain == s.DomainName {
		return nil
	}
	tx.Queue(`UPDATE id_sites SET announced_domain = $3 WHERE tenant_id = $1 AND id = $2`, s.TenantID, s.ID, s.DomainName)
	return tx.Emit(ctx, events.SiteDomainChanged{Tenant: s.TenantID, Domain: s.DomainName})
}

// MarkKeyMade records, with the commit, that the first API key of a tenant was created.
func (tx *Tx) MarkKeyMade(_ context.Context, tenant id.ID) error {
	tx.Queue(`UPDATE id_sites SET key_made = true WHERE tenant_id = $1`, tenant)
	return nil
}

// LockSite reads and locks a site, or returns apierr.NotFound.
func (tx *Tx) LockSite(ctx context.Context, tenant, site id.ID) (Site, error) {
	return pg.One[Site](ctx, tx, `SELECT `+siteColumns+` FROM id_sites WHERE tenant_id = $1 AND id = $2 FOR UPDATE`,
		tenant, site)
}

// LockTenantSite reads and locks the site of a tenant, or returns apierr.NotFound.
func (tx *Tx) LockTenantSite(ctx context.Context, tenant id.ID) (Site, error) {
	return pg.One[Site](ctx, tx, tenantSiteQuery+` FOR UPDATE`, tenant)
}

// UpdateSite writes the columns that a client can change, and announces the domain.
func (tx *Tx) UpdateSite(ctx context.Context, s Site) error {
	if err := tx.AnnounceDomain(ctx, s); err != nil {
		return err
	}
	return pg.MustChange(ctx, tx, `UPDATE id_sites SET `+pg.Set(`default_domain, domain_name, tls_public_cert,
		tls_private_key, tls_private_key_sealed, git_repo_url, git_branch, git_status, git_message, authorized_origin_uris,
		authorized_redirect_uris,
		logo_url, accent_color, session_tti, session_ttl, session_cookie_persistent, modified_at, git_credential_sealed,
		domain_claimed_at, proved_domain`)+` WHERE tenant_id = @tenant_id AND id = @id`, pg.Named(s))
}

// RecordProof records that the tenant of a site has proved its domain, unless the site has another one now.
func (tx *Tx) RecordProof(ctx context.Context, s Site) error {
	_, err := pg.Exec(ctx, tx, `UPDATE id_sites SET proved_domain = domain_name WHERE tenant_id = $1 AND id = $2
		AND domain_name = $3`, s.TenantID, s.ID, s.DomainName)
	return err
}

// DomainClaim is the claim of a custom domain by a tenant.
type DomainClaim struct {
	Domain   string
	TenantID id.ID
}

// conflicting is the condition for the claims of other tenants than $1 that conflict with that of the
// domain $2: they are of this domain, or of one that is a label above or below it.
const conflicting = `tenant_id <> $1
	AND (domain = $2 OR domain = substr($2, strpos($2, '.') + 1) OR substr(domain, strpos(domain, '.') + 1) = $2)`

// maxConflictingClaims bounds the claims that ConflictingClaims returns.
const maxConflictingClaims = 20

// ConflictingClaims returns some claims of other tenants that conflict with the claim of a domain, that
// of the domain itself first.
func (s *Store) ConflictingClaims(ctx context.Context, tenant id.ID, domain string) ([]DomainClaim, error) {
	return pg.All[DomainClaim](ctx, s.db, `SELECT domain, tenant_id FROM id_site_domains
		WHERE NOT is_default AND `+conflicting+` ORDER BY domain <> $2, domain LIMIT $3`, tenant, domain,
		maxConflictingClaims)
}

// ReleaseCustomDomain releases a custom domain of a tenant with the commit.
func (tx *Tx) ReleaseCustomDomain(tenant id.ID, domain string) {
	tx.Queue(`DELETE FROM id_site_domains WHERE tenant_id = $1 AND NOT is_default AND domain = $2`, tenant, domain)
}

// SetCustomDomain claims a custom domain for a tenant and releases its former one. The empty domain
// only releases. Where another tenant has the domain, or a domain one label above or below it,
// SetCustomDomain changes nothing and returns the domain of the other tenant.
func (tx *Tx) SetCustomDomain(ctx context.Context, tenant id.ID, domain string) (taken string, err error) {
	if domain != "" {
		if taken, err = tx.claimDomain(ctx, tenant, domain); taken != "" || err != nil {
			return taken, err
		}
	}
	tx.Queue(`DELETE FROM id_site_domains WHERE tenant_id = $1 AND NOT is_default AND domain <> $2`, tenant, domain)
	return "", nil
}

// claimDomain claims a domain. An advisory lock makes claims wait for each other until their
// transactions end: the unique key of the table alone does not prevent two tenants from claiming,
// at the same time, two domains of which one is a label below the other.
func (tx *Tx) claimDomain(ctx context.Context, tenant id.ID, domain string) (taken string, err error) {
	const lock = `SELECT pg_advisory_xact_lock(hashtextextended('claim of a domain of hosted pages', 0))`
	if _, err := pg.Exec(ctx, tx, lock); err != nil {
		return "", err
	}
	taken, err = pg.Value[string](ctx, tx, `SELECT domain FROM id_site_domains WHERE `+conflicting+` ORDER BY domain <> $2
		LIMIT 1`, tenant, domain)
	if !errors.Is(err, apierr.NotFound) {
		return taken, err
	}
	n, err := pg.Exec(ctx, tx, `INSERT INTO id_site_domains AS d (domain, tenant_id, is_default) VALUES ($1, $2, false)
		ON CONFLICT (domain) DO UPDATE SET domain = excluded.domain
		WHERE d.tenant_id = excluded.tenant_id AND NOT d.is_default`, domain, tenant)
	if err == nil && n == 0 {
		taken = domain
	}
	return taken, err
}
