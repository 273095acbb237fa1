package idsite

import (
	"context"
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/idsite/store"
)

// SiteOfHost returns the site that is shown at a host: that of the domain itself, or that of
// the parent domain. A domain of the tenant's own is served with a certificate that is valid.
// Otherwise it returns apierr.NotFound.
func (s *Service) SiteOfHost(ctx context.Context, host string) (store.Site, error) {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	_, parent, _ := strings.Cut(host, ".")
	for _, domain := range slices.Compact([]string{host, parent}) {
		tenant, err := s.store.DomainTenant(ctx, domain)
		if errors.Is(err, apierr.NotFound) {
			continue
		}
		if err != nil {
			return store.Site{}, err
		}
		site, err := s.store.TenantSite(caller.WithTenant(ctx, tenant), tenant)
		if err == nil && domain != site.DefaultDomain && s.TLSStatus(site) != TLSValid {
			err = apierr.NotFound.Because("the certificate of the domain is not valid")
		}
		return site, err
	}
	return store.Site{}, apierr.NotFound
}

// pageOrigin is the origin of the hosted pages. With usd the organization has a
// subdomain of the tenant's own domain.
func (s *Service) pageOrigin(f store.Flow, site store.Site) string {
	if origin := s.organizationOrigin(site, f.NameKey); f.UseSubdomain && origin != "" {
		return origin
	}
	return s.originOf(site.DomainName)
}

// organizationOrigin is the origin of an organization's pages: a subdomain of the
// tenant's own domain. It is empty where there is no organization or no such domain.
func (s *Service) organizationOrigin(site store.Site, nameKey string) string {
	if nameKey == "" || !site.HasCustomDomain() {
		return ""
	}
	return s.originOf(nameKey + "." + site.DomainName)
}

// originOf adds the port of the deployment's address to a host of hosted pages.
func (s *Service) originOf(host string) string {
	if base, err := url.Parse(s.cfg.Base.Host()); err == nil && base.Port() != "" && base.Port() != "443" {
		host += ":" + base.Port()
	}
	return "https://" + host
}

// setDomain takes the domain of a site. One that is a name of the deployment itself, or
// the domain of another tenant, or a label above or below that, is apierr.Exists: there
// organizations have their pages. The tenant's certificate would be served, and its pages
// shown, in place of theirs.
func (s *Service) setDomain(ctx context.Context, tx *store.Tx, site store.Site) error {
	custom := ""
	if site.HasCustomDomain() {
		custom = strings.ToLower(site.DomainName)
	}
	if custom != "" && s.cfg.isDeploymentDomain(custom) {
		return apierr.Exists.Because("domainName %q is a name of this deployment; take one of your own", custom)
	}
	taken, err := tx.SetCustomDomain(ctx, site.TenantID, custom)
	switch {
	case err != nil || taken == "":
		return err
	case taken == custom:
		return apierr.Exists.Because("domainName %q belongs to another tenant", custom)
	}
	return apierr.Exists.Because("domainName %q belongs to %q of another tenant, whose organizations have their pages a label below it",
		custom, taken)
}

// isDeploymentDomain reports whether a domain is a name of the deployment: that of its address, one
// above or below that, or one where applications and tenants have theirs. Below localhost
// developers have their domains.
func (c Config) isDeploymentDomain(domain string) bool {
	base := c.Base.Hostname()
	if domain == base || isBelow(base, domain) || base != "localhost" && isBelow(domain, base) {
		return true
	}
	return slices.ContainsFunc([]string{c.ClientSuffix, "id." + c.Suffix}, func(suffix string) bool {
		return domain == suffix || isBelow(domain, suffix)
	})
}

func isBelow(name, domain string) bool { return strings.HasSuffix(name, "."+domain) }

// domainName reads the host of hosted pages: a name of at least two labels,
// without port. Null is the default.
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
		return "", apierr.Format.Because("domainName %q must be a host name such as login.example.com, without scheme and port", name)
	}
	return name, nil
}

var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
