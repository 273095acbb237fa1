package idsite_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/idsite"
	oauthrules "github.com/doorward/doorward/services/oauth/openid"
)

// announced are the domains of a tenant that were announced, in turn.
func (l *login) announced(t *testing.T) (domains []string) {
	t.Helper()
	for _, e := range envelopes(t, l.peers.DB) {
		var event events.SiteDomainChanged
		if e.Type != "SiteDomainChanged" || e.Tenant != l.tenant.ID {
			continue
		}
		if err := json.Unmarshal(e.Data, &event); err != nil {
			t.Fatal(err)
		}
		domains = append(domains, event.Domain)
	}
	return domains
}

// bringDomain hands the announcements to the OAuth service, as its consumer does.
func (l *login) bringDomain(t *testing.T) {
	t.Helper()
	for _, e := range envelopes(t, l.peers.DB) {
		for _, handler := range l.peers.OAuth.Rules.Handlers() {
			if handler.Event != e.Type {
				continue
			}
			if err := handler.Handle(e.Context(t.Context()), e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestEachDomainOfASiteIsAnnouncedOnce(t *testing.T) {
	l := newLogin(t)
	site, err := l.data.TenantSite(t.Context(), l.tenant.ID)
	if err != nil {
		t.Fatal(err)
	}
	c, own := claimant{l, id.Ref{Tenant: site.TenantID, ID: site.ID}}, site.DefaultDomain
	check := func(what string, want ...string) {
		t.Helper()
		if got := l.announced(t); !slices.Equal(got, want) {
			t.Errorf("%s: announced are %q, want %q", what, got, want)
		}
	}
	check("a new tenant", own)
	c.claims(t, ownDomain, idsite.DomainPending)
	c.claims(t, ownDomain, idsite.DomainPending)
	check("a domain of its own", own, ownDomain)
	null := idsite.SiteChange{DomainName: field.Text{Present: true, Null: true}}
	if _, err := c.UpdateSite(t.Context(), c.site, null); err != nil {
		t.Fatal(err)
	}
	check("the default domain again", own, ownDomain, own)
	if err := l.AnnounceDomains(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("the worker has nothing to do", own, ownDomain, own)
	if _, err := pg.Exec(t.Context(), l.peers.DB, `UPDATE id_sites SET announced_domain = NULL WHERE tenant_id = $1`,
		l.tenant.ID); err != nil { // as a former release leaves it
		t.Fatal(err)
	}
	if err := l.AnnounceDomains(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("a domain of a former release", own, ownDomain, own, own)
}

// The issuer is at the domain of the hosted pages, and what the browser keeps at the address of the deployment.
func TestALoginOfAnIssuerAtTheDomainOfTheHostedPages(t *testing.T) {
	l := newLogin(t)
	l.bringDomain(t)
	if _, err := l.peers.OAuth.Rules.OpenID.UpdateProvider(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: l.app.ID},
		oauthrules.ProviderChange{IssuerDomain: field.Some("ID_SITE")}); err != nil {
		t.Fatal(err)
	}
	p := newParty(t, l, nil)
	host := p.issuer
	p.issuer = apiBase.Origin(l.tenant.Key+".id.localhost") + "/oidc/" + l.app.ID.String()
	landed, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	p.wantCode(landed)
	if got := p.response(landed); got.Get("iss") != p.issuer {
		t.Errorf("the response is %v", got)
	}
	p.wantError("login_required", p.authorize(idsite.BrowserRequest{}, url.Values{"prompt": {"none"}}))
	asked := p.authorize(in, url.Values{"prompt": {"consent"}})
	if !strings.HasPrefix(asked.Location, host+"/consent?flow=") {
		t.Errorf("the consent page is %s", asked.Location)
	}
	began, err := p.OpenID.Authorize(p.Context(), p.app.ID, p.parameters(nil), true, in)
	if err != nil || !strings.HasPrefix(began.Location, host+"/authorize/begin?flow=") {
		t.Errorf("a form leads to %s, %v", began.Location, err)
	}
}
