package idsite

// The domains of hosted pages: the default domain of a tenant, its custom domain, and the subdomains
// of its organizations. Certificates of custom domains are in certificate.go and site.go.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/services/idsite/store"
)

// SiteOfHost returns the site whose pages are shown at a host: the host is a domain of the site, or
// one label below it, as for an organization. It returns apierr.NotFound for any other host, and
// for a custom domain without a valid certificate.
func (s *Service) SiteOfHost(ctx context.Context, host string) (store.Site, error) {
	tenant, domain, err := s.tenantOfHost(ctx, host)
	if err != nil {
		return store.Site{}, err
	}
	site, err := s.store.TenantSite(caller.WithTenant(ctx, tenant), tenant)
	if err == nil && domain != site.DefaultDomain && s.TLSStatus(site) != TLSValid {
		err = apierr.NotFound.Because("the certificate of the domain is not valid")
	}
	return site, err
}

// tenantOfHost returns the tenant of a host, and the domain by which it was found.
func (s *Service) tenantOfHost(ctx context.Context, host string) (tenant id.ID, domain string, err error) {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	_, parent, _ := strings.Cut(host, ".")
	for _, domain = range slices.Compact([]string{host, parent}) {
		tenant, err = s.store.DomainTenant(ctx, domain)
		if !errors.Is(err, apierr.NotFound) {
			return tenant, domain, err
		}
	}
	return id.ID{}, "", apierr.NotFound
}

// DomainTenant returns the tenant whose hosted pages have a domain, or one a label above it.
func (s *Service) DomainTenant(ctx context.Context, in idsiteapi.Domain) (idsiteapi.Tenant, error) {
	tenant, _, err := s.tenantOfHost(ctx, in.Name)
	return idsiteapi.Tenant{ID: tenant}, err
}

// pageOrigin is the origin of the hosted pages of a flow. If the request has the claim usd, it is
// the subdomain of the organization.
func (s *Service) pageOrigin(f store.Flow, site store.Site) string {
	if origin := s.organizationOrigin(site, f.NameKey); f.UseSubdomain && origin != "" {
		return origin
	}
	return s.cfg.Base.Origin(site.DomainName)
}

// organizationOrigin is the origin of an organization's pages, a subdomain of the tenant's custom
// domain. It is "" where there is no organization or no custom domain.
func (s *Service) organizationOrigin(site store.Site, nameKey string) string {
	if nameKey == "" || !site.HasCustomDomain() {
		return ""
	}
	return s.cfg.Base.Origin(nameKey + "." + site.DomainName)
}

// setDomain claims the custom domain of a site. It returns apierr.Exists for the domain of another
// tenant, and for a domain one label above or below that, where organizations have their pages (domain
// takeover): this tenant's certificate and pages would be served in place of those of the other.
// prepareDomain has released what does not keep the domain.
func (s *Service) setDomain(ctx context.Context, tx *store.Tx, site store.Site) error {
	custom := ""
	if site.HasCustomDomain() {
		custom = site.DomainName
	}
	taken, err := tx.SetCustomDomain(ctx, site.TenantID, custom)
	if err != nil || taken == "" {
		return err
	}
	reason := fmt.Sprintf("domainName %q belongs to another tenant", custom)
	if taken != custom {
		reason = fmt.Sprintf("domainName %q is a label above or below %q of another tenant, whose organizations have their "+
			"pages there", custom, taken)
	}
	record := domainRecord(site.ID, custom)
	return apierr.Exists.Because("%s; unless that tenant has proved it, it is yours once you prove it: publish the TXT "+
		"record %s with the text %q, or send a certificate of a public authority with its key, and repeat the request",
		reason, record.Name, record.Value)
}

const (
	announceInterval = time.Minute
	announceBatch    = 500 // sites of one query
)

// DomainAnnouncer is the worker that announces the domains of sites that a former release has set, until ctx ends.
// Every other change of a domain is announced by its own transaction (store.UpdateSite).
func (s *Service) DomainAnnouncer(ctx context.Context) error {
	return purge.Periodically(announceInterval, "announcement of domains failed, retrying", s.AnnounceDomains)(ctx)
}

// AnnounceDomains announces the domains of all sites that were not announced.
func (s *Service) AnnounceDomains(ctx context.Context) error {
	for {
		sites, err := s.store.UnannouncedDomains(ctx, announceBatch)
		if err != nil || len(sites) == 0 {
			return err
		}
		for _, site := range sites {
			err := s.store.Tx(ctx, func(tx *store.Tx) error {
				locked, err := tx.LockSite(ctx, site.TenantID, site.ID)
				if err != nil {
					return err
				}
				return tx.AnnounceDomain(ctx, locked)
			})
			if err != nil && !errors.Is(err, apierr.NotFound) { // its tenant was deleted meanwhile
				return err
			}
		}
	}
}

// isDeploymentDomain reports whether a domain belongs to the deployment: that of its address, a
// domain above or below that, or one under which applications and tenants have their default
// domains. Domains below localhost are allowed, for developers.
func (c Config) isDeploymentDomain(domain string) bool {
	base := c.Base.Hostname()
	if domain == base || isBelow(base, domain) || base != "localhost" && isBelow(domain, base) {
		return true
	}
	return slices.ContainsFunc([]string{c.ClientSuffix, "id." + c.Suffix}, func(suffix string) bool {
		return domain == suffix || isBelow(domain, suffix)
	})
}

// isBelow reports whether a name is a subdomain of a domain.
func isBelow(name, domain string) bool { return strings.HasSuffix(name, "."+domain) }

// domainName validates the domain of hosted pages: a host name of at least two labels, without a
// port. Null stands for the default domain.
func domainName(in field.Text, fallback string) (string, error) {
	if in.Null {
		return fallback, nil
	}
	name, err := field.Required(in, "domainName", 253)
	if err != nil {
		return "", err
	}
	name = strings.ToLower(name)
	if !hostName.MatchString(name) || len(name) > 253 || net.ParseIP(name) != nil {
		return "", apierr.Format.Because(
			"domainName %q must be a host name such as login.example.com, without scheme and port", name)
	}
	if redirecturi.IsPublicSuffix(name) {
		return "", apierr.Format.Because(
			"domainName %q is a public suffix, under which anybody may register a domain; take one of your own", name)
	}
	return name, nil
}

var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
