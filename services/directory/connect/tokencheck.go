package connect

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/secure"
)

// tokenClient asks the provider to which client it issued an access token that a client hands
// over. Whoever runs another application of the provider has access tokens of its users, and could
// log in as any of them otherwise (token substitution, confused deputy; RFC 9700, section 2.3). It
// returns an empty text where the provider does not know the token, or shows it to its own client
// alone. Tokens for which this service has exchanged an authorization code need no such question;
// those of twitter are bound to the consumer key that signs the request for the user.
func (s *providerLogin) tokenClient(ctx context.Context) (string, error) {
	if s.login.Code != "" {
		return s.provider.ClientID, nil
	}
	if client := clientOfJWT(s.tokens.AccessToken); client != "" && client != s.provider.ClientID {
		return client, nil
	}
	address, ask := s.provider.Introspection, s.introspectedClient
	switch s.provider.ID {
	case google:
		address, ask = s.provider.TokenInfo, s.googleTokenClient
	case facebook:
		address, ask = s.provider.TokenCheck, s.facebookTokenClient
	case github:
		address, ask = s.provider.TokenCheck, s.githubTokenClient
	}
	if address != "" {
		return ask(ctx)
	}
	if s.provider.AcceptForeignTokens {
		return s.provider.ClientID, nil
	}
	return "", s.cannotBeAsked()
}

// googleTokenClient asks the token info endpoint of Google.
func (s *providerLogin) googleTokenClient(ctx context.Context) (string, error) {
	info, _, err := s.get(ctx, withQuery(s.provider.TokenInfo, "access_token", s.tokens.AccessToken.Reveal()), nil)
	return firstText(info, "aud", "audience", "azp", "issued_to"), err
}

// facebookMismatch is the error code of debug_token for a token of another application.
const facebookMismatch = "100"

// facebookTokenClient asks debug_token of the Graph API, as the application.
func (s *providerLogin) facebookTokenClient(ctx context.Context) (string, error) {
	application := secure.Secret(s.provider.ClientID + "|" + s.provider.ClientSecret.Reveal())
	address := withQuery(s.provider.TokenCheck, "input_token", s.tokens.AccessToken.Reveal())
	answer, object, err := s.ask(ctx, http.MethodGet, address, nil, bearer(application))
	if err != nil {
		return "", err
	}
	failure, _ := object["error"].(map[string]any)
	if answer.StatusCode == http.StatusBadRequest && firstText(failure, "code") == facebookMismatch {
		return "", s.otherClientError()
	}
	if answer.StatusCode != http.StatusOK {
		return "", s.answerError(answer.StatusCode, object)
	}
	data, _ := object["data"].(map[string]any)
	if !isTrue(data, "is_valid") {
		return "", nil
	}
	return firstText(data, "app_id"), nil
}

// clientIDMark stands for the client id in the address of a token check.
const clientIDMark = "{clientId}"

// githubTokenClient asks GitHub to check the token, which it does for tokens of the application
// that asks alone.
func (s *providerLogin) githubTokenClient(ctx context.Context) (string, error) {
	body, err := json.Marshal(map[string]string{"access_token": s.tokens.AccessToken.Reveal()})
	if err != nil {
		return "", err
	}
	address := strings.ReplaceAll(s.provider.TokenCheck, clientIDMark, url.PathEscape(s.provider.ClientID))
	answer, object, err := s.ask(ctx, http.MethodPost, address, body, func(h http.Header) {
		h.Set("Content-Type", "application/json")
		h.Set("Authorization", basicCredentials(s.provider.ClientID, s.provider.ClientSecret.Reveal()))
	})
	switch {
	case err != nil:
		return "", err
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusUnprocessableEntity:
		return "", nil
	case answer.StatusCode != http.StatusOK:
		return "", s.answerError(answer.StatusCode, object)
	}
	application, _ := object["app"].(map[string]any)
	if client := firstText(application, "client_id"); client != "" {
		return client, nil
	}
	return s.provider.ClientID, nil
}

// introspectedClient asks the introspection endpoint of LinkedIn or of a generic provider (RFC
// 7662).
func (s *providerLogin) introspectedClient(ctx context.Context) (string, error) {
	form := url.Values{"token": {s.tokens.AccessToken.Reveal()}, "token_type_hint": {"access_token"}}
	credentials := ""
	if s.provider.ID == linkedin || s.provider.introspectionByForm {
		form.Set("client_id", s.provider.ClientID)
		form.Set("client_secret", s.provider.ClientSecret.Reveal())
	} else {
		// RFC 6749, section 2.3.1
		credentials = basicCredentials(url.QueryEscape(s.provider.ClientID),
			url.QueryEscape(s.provider.ClientSecret.Reveal()))
	}
	header := func(h http.Header) {
		h.Set("Content-Type", "application/x-www-form-urlencoded")
		if credentials != "" {
			h.Set("Authorization", credentials)
		}
	}
	answer, object, err := s.ask(ctx, http.MethodPost, s.provider.Introspection, []byte(form.Encode()), header)
	switch {
	case err != nil:
		return "", err
	case answer.StatusCode != http.StatusOK:
		return "", s.answerError(answer.StatusCode, object)
	case !isTrue(object, "active"):
		return "", nil
	}
	if client := firstText(object, "client_id", "azp"); client != "" {
		return client, nil
	}
	// The audience alone names the client where the provider states nothing else.
	if audience, ok := object["aud"].([]any); ok && slices.Contains(audience, any(s.provider.ClientID)) {
		return s.provider.ClientID, nil
	}
	return firstText(object, "aud"), nil
}

// ask sends a request and reads the answer, which is nil unless it is a JSON object.
func (s *providerLogin) ask(
	ctx context.Context, method, address string, body []byte, header func(http.Header),
) (*http.Response, map[string]any, error) {
	answer, text, err := s.send(ctx, method, address, body, header)
	if err != nil {
		return nil, nil, s.callError(err)
	}
	object, _ := decode(text)
	return answer, object, nil
}

// basicCredentials is the value of the header Authorization (RFC 7617).
func basicCredentials(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// clientOfJWT returns the client that an access token names, if it is a JWT that names one (RFC
// 9068, section 2.2, and claims in use before it). Nothing has verified the token yet: the name can
// refuse it, and never admits it.
func clientOfJWT(token secure.Secret) string {
	parts := strings.Split(token.Reveal(), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	claims, err := decode(bytes.TrimSpace(payload))
	if err != nil {
		return ""
	}
	return firstText(claims, "azp", "client_id", "appid")
}
