package rest_test

import (
	"context"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
)

// tenants notes for which tenant accounts were looked for.
type tenants struct {
	applicationapi.API
	applicationapi.Hosted
	asked []id.ID
}

func (a *tenants) Login(ctx context.Context, in applicationapi.Login) (applicationapi.LoggedIn, error) {
	a.asked = append(a.asked, caller.From(ctx).Tenant)
	return a.API.Login(ctx, in)
}

func (a *tenants) LoginDirectories(ctx context.Context, in applicationapi.LoginTarget) (applicationapi.LoginDirectories, error) {
	a.asked = append(a.asked, caller.From(ctx).Tenant)
	return a.Hosted.LoginDirectories(ctx, in)
}

func (a *tenants) note(peers *idsite.Peers) {
	a.API, a.Hosted = peers.Application, peers.Application
	peers.Application = a
}

func (a *tenants) want(t *testing.T, what string, tenant id.ID) {
	t.Helper()
	if len(a.asked) == 0 {
		t.Errorf("%s asks nothing", what)
	}
	for _, asked := range a.asked {
		if asked != tenant {
			t.Errorf("%s asks for the tenant %s", what, asked)
		}
	}
	a.asked = nil
}

// What a browser asks without an API key counts for the tenant that it belongs to: in
// the log, and for the tenant's share of database connections.
func TestHostedRequestsCountForTheirTenant(t *testing.T) {
	var pages tenants
	p := newPage(t, pages.note)
	request, err := secure.SignJWT(map[string]any{"typ": "JWT"}, secure.Claims{
		"iss": "K1", "sub": base.To("applications", p.application), "cb_uri": returnTo, "iat": 1795242600, "jti": "another", "onk": "nobody",
	}, "secret")
	if err != nil {
		t.Fatal(err)
	}
	p.send(t, "GET", "/sso?jwtRequest="+request, "", "")
	pages.want(t, "the request", p.tenant)
	p.logIn(t, "jo@example.test", idsitetest.Password.Reveal())
	pages.want(t, "the password", p.tenant)
	var frontEnd tenants
	c, user := newClientAPI(t, frontEnd.note)
	c.call(t, "GET", "/login", "")
	frontEnd.want(t, "the model", user.TenantID)
}
