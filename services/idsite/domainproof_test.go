package idsite_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/store"
)

const ownDomain = "login.example.test"

// claimant is a tenant that claims domains.
type claimant struct {
	*login
	site id.Ref
}

func newClaimant(t *testing.T, l *login, key string) claimant {
	t.Helper()
	return claimant{l, siteOfKey(t, l.Service, key)}
}

// install gives the site a certificate with its key.
func (c claimant) install(t *testing.T, certificate, key string) store.Site {
	t.Helper()
	site, err := c.UpdateSite(t.Context(), c.site, idsite.SiteChange{
		TLSPublicCert: field.Some(certificate), TLSPrivateKey: field.Some(key),
	})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

func (c claimant) claim(t *testing.T, domain string) (store.Site, error) {
	t.Helper()
	return c.UpdateSite(t.Context(), c.site, idsite.SiteChange{DomainName: field.Some(domain)})
}

// claims checks that a domain becomes that of the tenant, with a status.
func (c claimant) claims(t *testing.T, domain, status string) {
	t.Helper()
	site, err := c.claim(t, domain)
	if err != nil || site.DomainName != domain || idsite.DomainStatus(site) != status {
		t.Fatalf("the claim of %s gives %s, %s, %v; want %s", domain, site.DomainName, idsite.DomainStatus(site), err, status)
	}
}

// isRefused checks that a domain does not become that of the tenant.
func (c claimant) isRefused(t *testing.T, domain string) {
	t.Helper()
	_, err := c.claim(t, domain)
	if !errors.Is(err, apierr.Exists) {
		t.Fatalf("the claim of %s gives %v, want %v", domain, err, apierr.Exists)
	}
}

// has checks which domain the tenant has, with a status.
func (c claimant) has(t *testing.T, domain, status string) {
	t.Helper()
	site, err := c.Site(t.Context(), c.site)
	if err != nil {
		t.Fatal(err)
	}
	if domain == "" {
		domain = site.DefaultDomain
	}
	if site.DomainName != domain || idsite.DomainStatus(site) != status {
		t.Fatalf("the tenant has %s, %s; want %s, %s", site.DomainName, idsite.DomainStatus(site), domain, status)
	}
}

// publish publishes the TXT record by which the tenant proves a domain, as the refusal of its claim names it.
func (c claimant) publish(t *testing.T, domain string) {
	t.Helper()
	site, err := c.Site(t.Context(), c.site)
	if err != nil {
		t.Fatal(err)
	}
	site.DomainName = domain
	record := idsite.DomainVerification(site)
	if record.Type != "TXT" || record.Name != "_doorward."+domain ||
		!strings.HasPrefix(record.Value, "doorward-verification=") {
		t.Fatalf("the record is %+v", record)
	}
	c.peers.DNS.Publish(record.Name, "another text")
	c.peers.DNS.Publish(record.Name, record.Value)
}

func TestACustomDomainIsProvedByItsTXTRecord(t *testing.T) {
	l := newLogin(t)
	owner := newClaimant(t, l, "owner")
	owner.has(t, "", idsite.DomainNone)
	if before := l.peers.DNS.Lookups(); before != 0 {
		t.Errorf("%d lookups for a default domain", before)
	}
	owner.claims(t, ownDomain, idsite.DomainPending)
	owner.has(t, ownDomain, idsite.DomainPending)
	newClaimant(t, l, "neighbor").publish(t, ownDomain)
	owner.has(t, ownDomain, idsite.DomainPending)
	owner.publish(t, ownDomain)
	owner.has(t, ownDomain, idsite.DomainProved)
	lookups := l.peers.DNS.Lookups()
	owner.claims(t, ownDomain, idsite.DomainProved)
	if again := l.peers.DNS.Lookups(); again != lookups {
		t.Error("a proved domain is looked up again")
	}
	owner.claims(t, "other.example.test", idsite.DomainPending)
	l.peers.DNS.SetDown(true)
	owner.claims(t, ownDomain, idsite.DomainPending) // another claim, which needs a proof of its own
}

func TestACustomDomainIsProvedByACertificateOfAPublicAuthority(t *testing.T) {
	l := newLogin(t)
	owner := newClaimant(t, l, "owner")
	owner.claims(t, ownDomain, idsite.DomainPending)
	start, end := l.clock.Now().Add(-time.Hour), l.clock.Now().Add(time.Hour)
	good, key := certify(publicAuthority, ownDomain, start, end)
	expired, expiredKey := certify(publicAuthority, ownDomain, start, start.Add(time.Minute))
	foreign, foreignKey := certify(publicAuthority, "other.example.test", start, end)
	unknown, unknownKey := certify(newAuthority(), ownDomain, start, end)
	for _, c := range []struct{ what, certificate, key, tls, domain string }{
		{"of an unknown authority", unknown, unknownKey, idsite.TLSValid, idsite.DomainPending},
		{"of another host", foreign, foreignKey, idsite.TLSInvalid, idsite.DomainPending},
		{"that has expired", expired, expiredKey, idsite.TLSExpired, idsite.DomainPending},
		{"without its key", good, foreignKey, idsite.TLSInvalid, idsite.DomainPending},
		{"that is valid", good, key, idsite.TLSValid, idsite.DomainProved},
		{"of an unknown authority, afterwards", unknown, unknownKey, idsite.TLSValid, idsite.DomainProved},
	} {
		site := owner.install(t, c.certificate, c.key)
		if tls, domain := l.TLSStatus(site), idsite.DomainStatus(site); tls != c.tls || domain != c.domain {
			t.Errorf("with a certificate %s the states are %s and %s, want %s and %s", c.what, tls, domain, c.tls, c.domain)
		}
	}
}

// A domain one label above or below conflicts as the domain itself does.
func TestAnUnprovedClaimGivesWayAfterADay(t *testing.T) {
	for _, wanted := range []string{ownDomain, "example.test", "acme.login.example.test"} {
		t.Run(wanted, func(t *testing.T) {
			l := newLogin(t)
			squatter, other := newClaimant(t, l, "squatter"), newClaimant(t, l, "other")
			squatter.claims(t, ownDomain, idsite.DomainPending)
			l.clock.Move(24 * time.Hour)
			squatter.claims(t, ownDomain, idsite.DomainPending) // the same claim, not a new one
			other.isRefused(t, wanted)
			l.clock.Move(time.Second)
			other.claims(t, wanted, idsite.DomainPending)
			squatter.has(t, "", idsite.DomainNone)
			squatter.isRefused(t, ownDomain)
			other.has(t, wanted, idsite.DomainPending)
		})
	}
}

func TestAProofWinsOverAnUnprovedClaim(t *testing.T) {
	for _, wanted := range []string{ownDomain, "example.test", "acme.login.example.test"} {
		t.Run(wanted, func(t *testing.T) {
			l := newLogin(t)
			squatter, owner := newClaimant(t, l, "squatter"), newClaimant(t, l, "owner")
			squatter.claims(t, ownDomain, idsite.DomainPending)
			owner.isRefused(t, wanted)
			owner.publish(t, wanted)
			owner.claims(t, wanted, idsite.DomainProved)
			squatter.has(t, "", idsite.DomainNone)
			l.clock.Move(48 * time.Hour)
			squatter.isRefused(t, ownDomain)
		})
	}
}

func TestAProvedClaimHolds(t *testing.T) {
	l := newLogin(t)
	owner, other := newClaimant(t, l, "owner"), newClaimant(t, l, "other")
	owner.claims(t, ownDomain, idsite.DomainPending)
	owner.publish(t, ownDomain)
	l.clock.Move(48 * time.Hour)
	other.isRefused(t, ownDomain) // the record is looked for before the claim would give way
	other.publish(t, ownDomain)
	other.isRefused(t, ownDomain)
	owner.has(t, ownDomain, idsite.DomainProved)
}

// Where DNS does not answer, a claim that may be proved is not released without a proof against it.
func TestAClaimHoldsWhileItsProofCannotBeLookedUp(t *testing.T) {
	l := newLogin(t)
	holder, other := newClaimant(t, l, "holder"), newClaimant(t, l, "other")
	holder.claims(t, ownDomain, idsite.DomainPending)
	l.clock.Move(48 * time.Hour)
	l.peers.DNS.SetDown(true)
	other.isRefused(t, ownDomain)
	certificate, key := certify(publicAuthority, ownDomain, l.clock.Now().Add(-time.Hour), l.clock.Now().Add(time.Hour))
	other.install(t, certificate, key)
	other.claims(t, ownDomain, idsite.DomainProved)
	holder.has(t, "", idsite.DomainNone)
}

func TestAClaimThatIsProvedMeanwhileHolds(t *testing.T) {
	l := newLogin(t)
	owner, other := newClaimant(t, l, "owner"), newClaimant(t, l, "other")
	owner.claims(t, ownDomain, idsite.DomainPending)
	l.clock.Move(48 * time.Hour)
	certificate, key := certify(publicAuthority, ownDomain, l.clock.Now().Add(-time.Hour), l.clock.Now().Add(time.Hour))
	lookups := 0
	l.peers.DNS.OnLookup = func(string) {
		if lookups++; lookups == 2 { // of the owner's record, when its claim has been read
			owner.install(t, certificate, key)
		}
	}
	other.isRefused(t, ownDomain)
	owner.has(t, ownDomain, idsite.DomainProved)
}

// No claim is released in vain: where one of the conflicting claims holds, all of them do.
func TestAClaimThatIsRefusedReleasesNone(t *testing.T) {
	l := newLogin(t)
	owner, squatter, other := newClaimant(t, l, "owner"), newClaimant(t, l, "squatter"), newClaimant(t, l, "other")
	owner.publish(t, "b.example.test")
	owner.claims(t, "b.example.test", idsite.DomainProved)
	squatter.claims(t, "a.example.test", idsite.DomainPending)
	l.clock.Move(48 * time.Hour)
	other.isRefused(t, "example.test")
	squatter.has(t, "a.example.test", idsite.DomainPending)
}

// A rule of form that became stricter does not lock out the tenant whose domain is older than the rule, and
// the same domain again is not a new claim.
func TestADomainThatIsSentBackAsItIsStays(t *testing.T) {
	l := newLogin(t)
	owner := newClaimant(t, l, "owner")
	const publicSuffix = "co.uk"
	site, err := owner.Site(t.Context(), owner.site)
	if err != nil {
		t.Fatal(err)
	}
	site.DomainName, site.ProvedDomain = publicSuffix, new(publicSuffix)
	err = l.data.Tx(t.Context(), func(tx *store.Tx) error { return tx.UpdateSite(t.Context(), site) })
	if err != nil {
		t.Fatal(err)
	}
	l.clock.Move(time.Hour)
	owner.claims(t, publicSuffix, idsite.DomainProved)
	after, err := owner.Site(t.Context(), owner.site)
	if err != nil || !after.DomainClaimedAt.Equal(site.DomainClaimedAt) {
		t.Errorf("the claim is of %v, %v; want %v", after.DomainClaimedAt, err, site.DomainClaimedAt)
	}
}
