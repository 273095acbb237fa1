package connect

import (
	"context"
	"net/http"

	"github.com/dghubble/oauth1"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/secure"
)

// within binds calls to a context, which oauth1 does not take.
type within struct {
	ctx  context.Context //nolint:containedctx // of one login
	next http.RoundTripper
}

func (w within) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.next.RoundTrip(request.WithContext(w.ctx))
}

func (c *Client) oauth1(ctx context.Context, p provider, callback string) *oauth1.Config {
	return &oauth1.Config{
		ConsumerKey: p.ClientID, ConsumerSecret: p.ClientSecret.Reveal(), CallbackURL: callback,
		Endpoint:   oauth1.Endpoint{RequestTokenURL: p.RequestToken, AuthorizeURL: p.Authorization, AccessTokenURL: p.Token},
		HTTPClient: &http.Client{Transport: within{ctx, c.http.Transport}, CheckRedirect: c.http.CheckRedirect, Timeout: callTimeout},
	}
}

// beginTwitter asks for a request token (OAuth 1.0a, section 6.1). The state goes
// along in the address to come back to, as the protocol has no place for it.
func (c *Client) beginTwitter(ctx context.Context, p provider, in AuthorizationRequest) (Started, error) {
	s := &session{Client: c, provider: p}
	config := c.oauth1(ctx, p, withQuery(in.RedirectURI, "state", in.State.Reveal()))
	token, tokenSecret, err := config.RequestToken()
	if err != nil {
		return Started{}, s.failed(err)
	}
	address, err := config.AuthorizationURL(token)
	if err != nil {
		return Started{}, s.failed(err)
	}
	return Started{URL: address.String(), RequestSecret: secure.Secret(tokenSecret)}, nil
}

// twitter asks for the user of an access token. With a code, which is the verifier
// of OAuth 1.0a, the access token of the login is the request token.
func (s *session) twitter(ctx context.Context) (directoryapi.ProviderAccount, error) {
	config := s.oauth1(ctx, s.provider, "")
	if s.login.Code != "" {
		token, tokenSecret, err := config.AccessToken(s.login.AccessToken.Reveal(), s.login.AccessTokenSecret.Reveal(), s.login.Code.Reveal())
		if err != nil {
			return directoryapi.ProviderAccount{}, s.failed(err)
		}
		s.tokens = directoryapi.ProviderTokens{AccessToken: secure.Secret(token), AccessTokenSecret: secure.Secret(tokenSecret)}
	}
	signed := config.Client(context.WithValue(ctx, oauth1.HTTPClient, s.http), oauth1.NewToken(s.tokens.AccessToken.Reveal(),
		s.tokens.AccessTokenSecret.Reveal()))
	signed.CheckRedirect, signed.Timeout = s.http.CheckRedirect, callTimeout
	plain := *s
	plain.Client = &Client{http: signed}
	object, kept, err := plain.get(ctx, withQuery(s.provider.Resource, "include_email", "true", "skip_status", "true"), nil)
	if err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	if id := text(object, "id_str"); id != "" {
		object["id"] = id
	}
	u, err := s.user(object, kept)
	u.EmailVerified = u.Email != "" // it shares none that is not confirmed
	splitName(&u, text(object, "name"))
	return u, err
}
