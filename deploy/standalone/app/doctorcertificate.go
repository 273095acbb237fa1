package app

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/pg"
)

// errNoCertificate is the error of a chain in PEM that has no certificate.
var errNoCertificate = errors.New("it holds no certificate")

// certificates checks the certificates of the public address and of the services' addresses.
func (d *doctor) certificates(cfg doctorConfig) {
	if cfg.Certificate != "" {
		d.certificate("certificate", "DOORWARD_TLS_CERT", cfg.Certificate, cfg.hostname(),
			"any.id."+cfg.IDSite, "any."+cfg.ClientAPI.Suffix)
	}
	if cfg.Internal != "" {
		d.certificate("certificate internal", "DOORWARD_INTERNAL_TLS_CERT", cfg.Internal)
	}
}

// certificate checks when a chain ends, and that its first certificate is for the hosts.
func (d *doctor) certificate(check, variable, chain string, hosts ...string) {
	leaf, ends, err := readChain(chain)
	if err != nil {
		d.add(check, "failed", "set "+variable+" to a chain in PEM", "%v", err)
		return
	}
	var missing []string
	for _, host := range hosts {
		if leaf.VerifyHostname(host) != nil {
			missing = append(missing, strings.Replace(host, "any.", "*.", 1))
		}
	}
	if len(missing) > 0 {
		d.add(check, "failed", "get one for these names too, or correct DOORWARD_BASE_URL, DOORWARD_IDSITE_SUFFIX and DOORWARD_CLIENT_API_SUFFIX",
			"it is not for %s", strings.Join(missing, ", "))
		return
	}
	d.expiry(check, ends)
}

// expiry reports when a certificate ends.
func (d *doctor) expiry(check string, ends time.Time) {
	remaining, status := ends.Sub(d.now()), "ok"
	switch {
	case remaining <= 0:
		status = "failed"
	case remaining < expiryWarning:
		status = "warning"
	}
	d.add(check, status, "renew it: docs/runbooks/certificate-ends.md", "good until %s", ends.UTC().Format(time.DateOnly))
}

// readChain returns the first certificate of a chain in PEM, and when the first of them all ends.
func readChain(chain string) (leaf *x509.Certificate, ends time.Time, err error) {
	rest := []byte(chain)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, ends, err
		}
		if leaf == nil {
			leaf, ends = certificate, certificate.NotAfter
		}
		if certificate.NotAfter.Before(ends) {
			ends = certificate.NotAfter
		}
	}
	if leaf == nil {
		return nil, ends, errNoCertificate
	}
	return leaf, ends, nil
}

// ownDomain is a domain of a tenant's own with the certificate that the gateway serves for it.
type ownDomain struct {
	Domain      string
	Certificate string
}

// ownDomains checks the certificate of each domain of a tenant's own. That of a tenant is no failure of the
// deployment.
func (d *doctor) ownDomains(ctx context.Context, db *pg.DB) {
	found, err := pg.All[ownDomain](ctx, db, `SELECT domain_name AS domain, tls_public_cert AS certificate FROM id_sites
		WHERE domain_name <> default_domain AND tls_public_cert <> '' AND tls_private_key_sealed IS NOT NULL ORDER BY domain_name`)
	if err != nil {
		d.add("own domains", "failed", "see what PostgreSQL logs", "%s", pg.Cause(err))
		return
	}
	const advice = "let the tenant's administrator set another in the site: docs/runbooks/certificate-ends.md"
	for _, own := range found {
		leaf, ends, err := readChain(own.Certificate)
		switch {
		case err != nil:
			d.add(own.Domain, "warning", advice, "%v", err)
		case leaf.VerifyHostname(own.Domain) != nil:
			d.add(own.Domain, "warning", advice, "its certificate is for other names")
		case ends.Sub(d.now()) < expiryWarning:
			d.add(own.Domain, "warning", advice, "good until %s", ends.UTC().Format(time.DateOnly))
		default:
			d.add(own.Domain, "ok", "", "good until %s", ends.UTC().Format(time.DateOnly))
		}
	}
}
