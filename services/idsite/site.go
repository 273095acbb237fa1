package idsite

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

const (
	// maxURL bounds a URL in the settings, in characters.
	maxURL = 2000
	// maxPEM bounds a certificate or a key, in characters.
	maxPEM = 64_000
	// maxBranch bounds the name of a branch, in characters.
	maxBranch = 255
	// maxDuration bounds the text of a session timeout, in characters.
	maxDuration = 255
	// defaultBranch is the branch that is fetched where the settings name none.
	defaultBranch = "master"
)

// The values of tlsStatus.
const (
	TLSNone    = "NONE"
	TLSValid   = "VALID"
	TLSInvalid = "INVALID"
	TLSExpired = "EXPIRED"
)

// SealedKey is shown in place of a private key. An update with this value keeps the key.
const SealedKey = "[sealed]"

// SiteChange is the body that updates the settings of a site. The two lists can also be named with
// URIs and URLs, as older descriptions of the interface name them.
type SiteChange struct {
	DomainName              field.Text `json:"domainName"`
	TLSPublicCert           field.Text `json:"tlsPublicCert"`
	TLSPrivateKey           field.Text `json:"tlsPrivateKey"`
	GitRepoURL              field.Text `json:"gitRepoUrl"`
	GitBranch               field.Text `json:"gitBranch"`
	AuthorizedOriginURIs    field.List `json:"authorizedOriginUris"`
	AuthorizedOriginURIs2   field.List `json:"authorizedOriginURIs"`
	AuthorizedOriginURLs    field.List `json:"authorizedOriginURLs"`
	AuthorizedRedirectURIs  field.List `json:"authorizedRedirectUris"`
	AuthorizedRedirectURIs2 field.List `json:"authorizedRedirectURIs"`
	AuthorizedRedirectURLs  field.List `json:"authorizedRedirectURLs"`
	LogoURL                 field.Text `json:"logoUrl"`
	AccentColor             field.Text `json:"accentColor"`
	SessionTTI              field.Text `json:"sessionTti"`
	SessionTTL              field.Text `json:"sessionTtl"`
	SessionCookiePersistent field.Bool `json:"sessionCookiePersistent"`
}

// Site returns the settings of a tenant's hosted pages, or apierr.NotFound. While the custom domain is
// unproved, it looks for the proof.
func (s *Service) Site(ctx context.Context, at id.Ref) (store.Site, error) {
	site, err := s.store.Site(ctx, at.Tenant, at.ID)
	if err != nil || DomainStatus(site) != DomainPending {
		return site, err
	}
	if isProved, _ := s.findProof(ctx, site); !isProved { // without an answer of DNS it stays unproved
		return site, nil
	}
	if err := s.recordProof(ctx, site); err != nil {
		return site, err
	}
	return s.store.Site(ctx, at.Tenant, at.ID)
}

// ListSites returns the tenant's site as a collection. The tenant named must be
// the caller's own: apierr.NotFound otherwise.
func (s *Service) ListSites(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[store.Site], error) {
	owner, err := s.peers.Directory.Tenant(ctx, tenant)
	if err != nil {
		return list.Page[store.Site]{}, err
	}
	return s.store.ListSites(ctx, tenant.Tenant, query.WithParentTimes(owner.CreatedAt, owner.ModifiedAt))
}

// UpdateSite changes what the body names (docs/interface/id-site.md#settings). It returns
// apierr.Exists for a domain that another tenant or the deployment has, apierr.Invalid for what is
// no address of a repository, and apierr.AfterMaximum for an idle timeout above the absolute one.
func (s *Service) UpdateSite(ctx context.Context, at id.Ref, in SiteChange) (site store.Site, err error) {
	proved, err := s.prepareDomain(ctx, at, in)
	if err != nil {
		return site, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if site, err = tx.LockSite(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		before := site
		if err := s.applySite(&site, in); err != nil {
			return err
		}
		if site.DomainName != before.DomainName {
			site.DomainClaimedAt, site.ProvedDomain = s.now(), nil
			if err := s.setDomain(ctx, tx, site); err != nil {
				return err
			}
		}
		if site.HasCustomDomain() && site.DomainName == proved {
			site.ProvedDomain = &proved
		}
		site.ModifiedAt = s.now()
		return tx.UpdateSite(ctx, site)
	})
	return site, err
}

// applySite checks the members of a body and writes them into a site.
func (s *Service) applySite(site *store.Site, in SiteChange) (err error) {
	var errs field.Errors
	if in.DomainName.Present && !field.Unchanged(in.DomainName, site.DomainName) {
		site.DomainName, err = domainName(in.DomainName, site.DefaultDomain)
		errs.Add(err)
	}
	errs.Optional(&site.TLSPublicCert, in.TLSPublicCert, "tlsPublicCert", maxPEM)
	if in.TLSPrivateKey.Present && in.TLSPrivateKey.Or("") != SealedKey {
		errs.Optional(&site.TLSPrivateKey, in.TLSPrivateKey, "tlsPrivateKey", maxPEM)
		site.TLSPrivateKeySealed = nil
		if key := site.TLSPrivateKey; key != nil && isPrivateKey(*key) {
			site.TLSPrivateKeySealed, site.TLSPrivateKey = s.ring.Seal(secure.Secret(*key), tlsKeyPurpose(site.TenantID)), nil
		}
	}
	errs.Add(s.applyRepository(site, in))
	if origins := firstPresent(in.AuthorizedOriginURIs, in.AuthorizedOriginURIs2, in.AuthorizedOriginURLs); origins.Present {
		site.AuthorizedOriginURIs, err = redirecturi.Origins(origins, "authorizedOriginUris", site.AuthorizedOriginURIs)
		errs.Add(err)
	}
	if redirects := firstPresent(in.AuthorizedRedirectURIs, in.AuthorizedRedirectURIs2, in.AuthorizedRedirectURLs); redirects.Present {
		site.AuthorizedRedirectURIs, err = redirecturi.Callbacks(redirects, "authorizedRedirectUris",
			site.AuthorizedRedirectURIs)
		errs.Add(err)
	}
	errs.Add(applyBranding(site, in))
	if in.SessionCookiePersistent.Null {
		errs.Add(apierr.Required.Because("sessionCookiePersistent cannot be null"))
	}
	site.SessionCookiePersistent = in.SessionCookiePersistent.Or(site.SessionCookiePersistent)
	errs.Add(applyLifetimes(site, in))
	return errs.First()
}

// applyRepository sets the Git repository of custom pages and its branch (repository.go).
func (s *Service) applyRepository(site *store.Site, in SiteChange) error {
	if in.GitRepoURL.Given() && !isRepositoryURL(in.GitRepoURL.Value) {
		return apierr.Invalid.Because(
			"gitRepoUrl is not the address of a git repository such as https://git.example.com/pages.git")
	}
	var errs field.Errors
	former := site.GitRepoURL
	errs.Optional(&site.GitRepoURL, in.GitRepoURL, "gitRepoUrl", maxURL)
	if in.GitRepoURL.Present {
		errs.Add(s.sealGitCredential(site, former))
	}
	errs.Optional(&site.GitBranch, in.GitBranch, "gitBranch", maxBranch)
	if err := errs.First(); err != nil {
		return err
	}
	if in.GitBranch.Null || site.GitRepoURL != nil && site.GitBranch == nil {
		branch := defaultBranch
		site.GitBranch = &branch
	}
	if !in.GitRepoURL.Present && !in.GitBranch.Present {
		return nil
	}
	site.GitStatus, site.GitMessage = store.GitPending, nil
	if site.GitRepoURL == nil {
		site.GitStatus = store.GitNone
		if in.GitRepoURL.Present && !in.GitBranch.Given() {
			site.GitBranch = nil
		}
	}
	return nil
}

// sealGitCredential takes the user name and the password out of the URL of a repository and seals
// them: SealedKey stands in their place. The whole of them, because some servers take a token as the
// user name. The URL as it was returned keeps them; SealedKey in any other URL is refused, because the
// credential would go to another server.
func (s *Service) sealGitCredential(site *store.Site, former *string) error {
	if site.GitRepoURL == nil {
		site.GitCredentialSealed = nil
		return nil
	}
	if former != nil && *site.GitRepoURL == *former {
		return nil
	}
	u, err := url.Parse(strings.TrimSpace(*site.GitRepoURL))
	if err != nil || u.User == nil {
		site.GitCredentialSealed = nil
		return nil
	}
	if password, _ := u.User.Password(); u.User.Username() == SealedKey || password == SealedKey {
		return apierr.Invalid.Because("gitRepoUrl has %s in place of its user name and password; send them again", SealedKey)
	}
	site.GitCredentialSealed = s.ring.Seal(secure.Secret(u.User.String()), gitCredentialPurpose(site.TenantID))
	u.User = url.User(SealedKey)
	sealed := u.String()
	site.GitRepoURL = &sealed
	return nil
}

// gitCredential returns the user name and the password of a repository, as its URL had them, or "".
func (s *Service) gitCredential(site store.Site) (secure.Secret, error) {
	if site.GitCredentialSealed == nil {
		return "", nil
	}
	return s.ring.Open(site.GitCredentialSealed, gitCredentialPurpose(site.TenantID))
}

// gitCredentialPurpose is the purpose for which the credential of a repository is sealed.
func gitCredentialPurpose(tenant id.ID) string { return "idsite.git/" + tenant.String() }

// isRepositoryURL reports whether a text is the address of a Git repository. Only http and https
// can be fetched; the other forms are accepted here, and their fetch fails (gitStatus).
func isRepositoryURL(text string) bool {
	text = strings.TrimSpace(text)
	if scpLike.MatchString(text) {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" || u.Scheme == "git" || u.Scheme == "ssh")
}

// scpLike matches addresses such as git@example.com:pages.git.
var scpLike = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s:]+$`)

var hexColor = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// applyBranding sets the branding (theme) of the built-in pages: logo and accent color.
func applyBranding(site *store.Site, in SiteChange) error {
	if in.LogoURL.Given() {
		u, err := url.Parse(in.LogoURL.Value)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
			return apierr.Format.Because("logoUrl must be an absolute http or https address")
		}
	}
	var errs field.Errors
	errs.Optional(&site.LogoURL, in.LogoURL, "logoUrl", maxURL)
	if in.AccentColor.Given() && !hexColor.MatchString(in.AccentColor.Value) {
		errs.Add(apierr.Format.Because("accentColor must be a color such as #2f5bea"))
	}
	errs.Optional(&site.AccentColor, in.AccentColor, "accentColor", len("#rrggbb"))
	return errs.First()
}

// applyLifetimes sets the idle timeout (sessionTti) and the absolute timeout (sessionTtl) of
// sessions.
func applyLifetimes(site *store.Site, in SiteChange) error {
	var errs field.Errors
	for _, limit := range []struct {
		name string
		in   field.Text
		to   *string
	}{{"sessionTti", in.SessionTTI, &site.SessionTTI}, {"sessionTtl", in.SessionTTL, &site.SessionTTL}} {
		if !limit.in.Present {
			continue
		}
		text, err := field.Required(limit.in, limit.name, maxDuration)
		if d, invalid := store.ParseDuration(text); err == nil && (invalid != nil || d < time.Second) {
			err = apierr.Format.Because("%s %q must be an ISO 8601 duration of at least a second, such as PT30M", limit.name,
				text)
		}
		errs.Add(err)
		*limit.to = text
	}
	if err := errs.First(); err != nil {
		return err
	}
	if idle, absolute, _ := site.Lifetimes(); idle > absolute {
		return apierr.AfterMaximum.Because("sessionTti %s must not exceed sessionTtl %s", site.SessionTTI, site.SessionTTL)
	}
	return nil
}

// TLSStatus is the state of the certificate and the private key of the tenant's custom domain.
func (s *Service) TLSStatus(site store.Site) string {
	if site.TLSPublicCert == nil && site.TLSPrivateKey == nil && site.TLSPrivateKeySealed == nil {
		return TLSNone
	}
	pair, err := s.KeyPair(site)
	switch {
	case err != nil || pair.Leaf == nil || pair.Leaf.VerifyHostname(site.DomainName) != nil:
		return TLSInvalid
	case s.now().After(pair.Leaf.NotAfter):
		return TLSExpired
	}
	return TLSValid
}

// KeyPair returns the certificate and the private key of the tenant's custom domain.
func (s *Service) KeyPair(site store.Site) (tls.Certificate, error) {
	if site.TLSPublicCert == nil || site.TLSPrivateKeySealed == nil {
		return tls.Certificate{}, apierr.NotFound
	}
	key, err := s.ring.Open(site.TLSPrivateKeySealed, tlsKeyPurpose(site.TenantID))
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair([]byte(*site.TLSPublicCert), []byte(key.Reveal()))
}

// isPrivateKey reports whether a text has a private key in PEM, also an incomplete one.
func isPrivateKey(text string) bool {
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return strings.Contains(text, "PRIVATE KEY")
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return true
		}
	}
}

// tlsKeyPurpose is the purpose for which the private key of a custom domain is sealed.
func tlsKeyPurpose(tenant id.ID) string { return "idsite.tlskey/" + tenant.String() }

// firstPresent returns the first list that the body gives.
func firstPresent(lists ...field.List) field.List {
	for _, each := range lists {
		if each.Present {
			return each
		}
	}
	return field.List{}
}

// SiteFile returns a file of a tenant's custom pages, or apierr.NotFound.
func (s *Service) SiteFile(ctx context.Context, tenant id.ID, path string) (store.File, error) {
	return s.store.File(ctx, tenant, path)
}
