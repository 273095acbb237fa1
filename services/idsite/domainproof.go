package idsite

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite/store"
)

// Domain verification: a tenant proves that it controls its custom domain by a TXT record, or by a
// certificate of a trusted authority with its key (docs/interface/id-site.md#custom-domains). A domain
// works without a proof, and an unproved claim keeps it from other tenants for a day, or until one of
// them proves it. Proofs are looked for when the settings are saved or read, and when another tenant
// claims the domain.

// The values of domainStatus.
const (
	DomainNone    = "NONE"
	DomainPending = "PENDING"
	DomainProved  = "PROVED"
)

const (
	// unprovedClaimAge is how long an unproved claim keeps a domain from other tenants.
	unprovedClaimAge = 24 * time.Hour
	// txtTimeout bounds the lookup of a TXT record.
	txtTimeout = 2 * time.Second
)

// DomainRecord is the DNS record that proves a custom domain.
type DomainRecord struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// DomainStatus returns the state of the tenant's claim of its custom domain.
func DomainStatus(site store.Site) string {
	switch {
	case !site.HasCustomDomain():
		return DomainNone
	case site.IsDomainProved():
		return DomainProved
	}
	return DomainPending
}

// DomainVerification returns the record that proves the custom domain of a site, or nil.
func DomainVerification(site store.Site) *DomainRecord {
	if !site.HasCustomDomain() {
		return nil
	}
	return domainRecord(site.ID, site.DomainName)
}

// domainRecord returns the record by which a site proves a domain. Its value need not be secret: it
// says which site the owner of the domain has chosen, and only the owner can publish it.
func domainRecord(site id.ID, domain string) *DomainRecord {
	sum := sha256.Sum256([]byte("domain verification/" + site.String()))
	return &DomainRecord{
		Type: "TXT", Name: "_doorward." + domain, Value: "doorward-verification=" + hex.EncodeToString(sum[:16]),
	}
}

// findProof reports whether the tenant of a site has proved its custom domain, or proves it now. The
// error says that DNS did not answer.
func (s *Service) findProof(ctx context.Context, site store.Site) (bool, error) {
	if !site.HasCustomDomain() || site.IsDomainProved() || s.hasTrustedCertificate(site) {
		return site.HasCustomDomain(), nil
	}
	return s.hasTXTRecord(ctx, site)
}

// recordProof records that the tenant of a site has proved its domain, unless it has another one meanwhile.
func (s *Service) recordProof(ctx context.Context, site store.Site) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.RecordProof(ctx, site) })
}

// hasTrustedCertificate reports whether the site has a valid certificate of a trusted authority for its
// domain, with its key. tlsStatus asks for less: a self-signed certificate is served, and proves nothing.
func (s *Service) hasTrustedCertificate(site store.Site) bool {
	pair, err := s.KeyPair(site)
	if err != nil || pair.Leaf == nil {
		return false
	}
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if certificate, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(certificate)
		}
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		DNSName: site.DomainName, Roots: s.cfg.Roots, Intermediates: intermediates, CurrentTime: s.now(),
	})
	return err == nil
}

// hasTXTRecord reports whether the TXT record of the site is published.
func (s *Service) hasTXTRecord(ctx context.Context, site store.Site) (bool, error) {
	record := domainRecord(site.ID, site.DomainName)
	ctx, cancel := context.WithTimeout(ctx, txtTimeout)
	defer cancel()
	texts, err := s.cfg.LookupTXT(ctx, record.Name+".") // absolute, without the search domains of this machine
	var failure *net.DNSError
	if errors.As(err, &failure) && failure.IsNotFound {
		return false, nil
	}
	return slices.ContainsFunc(texts, func(text string) bool { return strings.TrimSpace(text) == record.Value }), err
}

// prepareDomain returns the custom domain that the site would have and the tenant proves, or "". If it is
// a new one, claims of other tenants that do not keep it are released. It runs before the transaction
// that claims the domain, because it waits for DNS; whoever is first in that transaction has the domain.
func (s *Service) prepareDomain(ctx context.Context, at id.Ref, in SiteChange) (proved string, err error) {
	site, err := s.store.Site(ctx, at.Tenant, at.ID)
	if err != nil {
		return "", err
	}
	before := site.DomainName
	if err := s.applySite(&site, in); err != nil || !site.HasCustomDomain() {
		return "", err
	}
	if site.DomainName != before {
		site.ProvedDomain = nil
	}
	isProved, dnsErr := s.findProof(ctx, site)
	if dnsErr != nil {
		slog.InfoContext(ctx, "lookup of the TXT record of a custom domain failed",
			"domain", site.DomainName, "error", dnsErr.Error())
	}
	if isProved {
		proved = site.DomainName
	}
	if site.DomainName == before {
		return proved, nil
	}
	if s.cfg.isDeploymentDomain(site.DomainName) {
		return "", apierr.Exists.Because("domainName %q is a name of this deployment; take one of your own", site.DomainName)
	}
	return proved, s.releaseConflicting(ctx, site, isProved)
}

// releaseConflicting releases the claims of other tenants that conflict with the custom domain of a site. It
// releases none where one of them holds: then the transaction that claims the domain refuses it.
func (s *Service) releaseConflicting(ctx context.Context, site store.Site, isProved bool) error {
	claims, err := s.store.ConflictingClaims(ctx, site.TenantID, site.DomainName)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if holds, err := s.holds(ctx, claim, isProved); err != nil || holds {
			return err
		}
	}
	for _, claim := range claims {
		if err := s.releaseClaim(ctx, claim, isProved); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a claim holds against that of another tenant, which is contesting if that tenant
// has proved its domain. It looks for the proof of the claim, and records it.
func (s *Service) holds(ctx context.Context, claim store.DomainClaim, contesting bool) (bool, error) {
	ctx = caller.WithTenant(ctx, claim.TenantID)
	site, err := s.store.TenantSite(ctx, claim.TenantID)
	if err != nil {
		return false, err
	}
	if s.keepsDomain(site, claim.Domain, contesting) {
		return true, nil
	}
	if site.DomainName != claim.Domain {
		return false, nil
	}
	isProved, err := s.findProof(ctx, site)
	if !isProved {
		return err != nil && !contesting, nil // without an answer of DNS it may be proved
	}
	return true, s.recordProof(ctx, site)
}

// releaseClaim releases a claim that does not hold. The site of its tenant has its default domain from then on.
func (s *Service) releaseClaim(ctx context.Context, claim store.DomainClaim, contesting bool) error {
	ctx = caller.WithTenant(ctx, claim.TenantID)
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		site, err := tx.LockTenantSite(ctx, claim.TenantID)
		if err != nil || s.keepsDomain(site, claim.Domain, contesting) {
			return err
		}
		tx.ReleaseCustomDomain(claim.TenantID, claim.Domain)
		if site.DomainName != claim.Domain {
			return nil
		}
		slog.InfoContext(ctx, "custom domain released: its tenant has not proved it, and another tenant claims it",
			"domain", claim.Domain, "tenant", claim.TenantID.String())
		site.DomainName, site.ModifiedAt = site.DefaultDomain, s.now()
		return tx.UpdateSite(ctx, site)
	})
}

// keepsDomain reports whether a site keeps a domain for what is stored: it has proved it, or its claim is young
// and not contested by a proof. A claim that the site has given up meanwhile is not kept.
func (s *Service) keepsDomain(site store.Site, domain string, contesting bool) bool {
	if site.DomainName != domain {
		return false
	}
	return site.IsDomainProved() || !contesting && s.now().Sub(site.DomainClaimedAt) <= unprovedClaimAge
}
