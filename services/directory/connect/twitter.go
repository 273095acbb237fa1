package connect

import (
	"context"
	"net/http"

	"github.com/dghubble/oauth1"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/secure"
)

// contextTransport binds calls to a context, which package oauth1 does not take.
type contextTransport struct {
	ctx  context.Context //nolint:containedctx // of one login
	next http.RoundTripper
}

func (w contextTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.next.RoundTrip(request.WithContext(w.ctx))
}

func (c *Client) oauth1(ctx context.Context, p provider, callback string) *oauth1.Config {
	return &oauth1.Config{
		ConsumerKey: p.ClientID, ConsumerSecret: p.ClientSecret.Reveal(), CallbackURL: callback,
		Endpoint: oauth1.Endpoint{RequestTokenURL: p.RequestToken, AuthorizeURL: p.Authorization,
			AccessTokenURL: p.Token},
		HTTPClient: &http.Client{
			Transport: contextTransport{ctx, c.http.Transport}, CheckRedirect: c.http.CheckRedirect,
			Timeout: callTimeout,
		},
	}
}

// beginTwitter fetches a request token (OAuth 1.0a, section 6.1). The state is a parameter of the
// callback URL, as the protocol has none.
func (c *Client) beginTwitter(ctx context.Context, p provider, in AuthorizationRequest) (StartedLogin, error) {
	s := &providerLogin{Client: c, provider: p}
	config := c.oauth1(ctx, p, withQuery(in.RedirectURI, "state", in.State.Reveal()))
	token, tokenSecret, err := config.RequestToken()
	if err != nil {
		return StartedLogin{}, s.callError(err)
	}
	address, err := config.AuthorizationURL(token)
	if err != nil {
		return StartedLogin{}, s.callError(err)
	}
	return StartedLogin{URL: address.String(), RequestSecret: secure.Secret(tokenSecret)}, nil
}

// twitter fetches the user of an access token. With a code, which is the verifier of OAuth 1.0a,
// the access token of the login is the request token.
func (s *providerLogin) twitter(ctx context.Context) (directoryapi.ProviderUser, error) {
	config := s.oauth1(ctx, s.provider, "")
	if s.login.Code != "" {
		token, tokenSecret, err := config.AccessToken(s.login.AccessToken.Reveal(), s.login.AccessTokenSecret.Reveal(),
			s.login.Code.Reveal())
		if err != nil {
			return directoryapi.ProviderUser{}, s.callError(err)
		}
		s.tokens = directoryapi.ProviderTokens{
			AccessToken: secure.Secret(token), AccessTokenSecret: secure.Secret(tokenSecret),
		}
	}
	signed := config.Client(context.WithValue(ctx, oauth1.HTTPClient, s.http),
		oauth1.NewToken(s.tokens.AccessToken.Reveal(),
			s.tokens.AccessTokenSecret.Reveal()))
	signed.CheckRedirect, signed.Timeout = s.http.CheckRedirect, callTimeout
	plain := *s
	plain.Client = &Client{http: signed}
	object, raw, err := plain.get(ctx, withQuery(s.provider.Resource, "include_email", "true", "skip_status", "true"),
		nil)
	if err != nil {
		return directoryapi.ProviderUser{}, err
	}
	if id := firstText(object, "id_str"); id != "" {
		object["id"] = id
	}
	u, err := s.profile(object, raw)
	u.EmailVerified = u.Email != "" // Twitter returns verified emails only
	splitName(&u, firstText(object, "name"))
	return u, err
}
