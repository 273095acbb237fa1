package openid

import (
	"context"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/store"
)

// BeginDevice begins the login of a user who has typed the code of a device (RFC 8628, section 3.3). It returns
// apierr.NotFound for a code that is unknown, expired or answered.
func (p *Provider) BeginDevice(ctx context.Context, application id.ID, userCode string,
	in journey.BrowserRequest) (journey.Redirect, error) {
	app, err := p.application(ctx, application)
	if err != nil {
		return journey.Redirect{}, err
	}
	ctx = caller.WithTenant(ctx, app.TenantID)
	asked, err := p.Peers.OAuth.DeviceRequest(ctx, oauthapi.DeviceCode{Application: application, UserCode: userCode})
	if err != nil {
		return journey.Redirect{}, err
	}
	browser := journey.NewBrowserToken()
	f, err := p.newFlow(ctx, app, store.OpenIDRequest{Authorization: asked, UserCode: userCode}, browser)
	if err != nil {
		return journey.Redirect{}, err
	}
	if err := p.Journey.BeginAnonymous(ctx, f); err != nil {
		return journey.Redirect{}, err
	}
	out, err := p.begin(ctx, f, in)
	out.Browser = browser
	return out, err
}

// answerDevice tells a device that its user has allowed what it has asked for, by a login, or refused it (nil), and
// leads the browser to the page that says so.
func (p *Provider) answerDevice(ctx context.Context, r store.OpenIDRequest,
	login *oauthapi.Login) (journey.Redirect, error) {
	answer := oauthapi.DeviceAnswer{
		DeviceCode: oauthapi.DeviceCode{Application: r.Application, UserCode: r.UserCode}, Scopes: r.Scopes,
	}
	done := "denied"
	if login != nil {
		answer.Allowed, answer.Login, done = true, *login, "allowed"
	}
	_, err := p.Peers.OAuth.AnswerDevice(ctx, answer)
	if apierr.IsRefusal(err) {
		err, done = nil, "expired"
	}
	return journey.Redirect{Location: p.address(r.Application, "/device?done="+done)}, err
}
