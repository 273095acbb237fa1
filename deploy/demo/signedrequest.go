package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/client"
)

// signedRequests signs users in by requests that the application signs with its API key (jwtRequest), and assertions
// that come back (jwtResponse).
type signedRequests struct {
	*deployment
	application *client.Application
	callback    string
}

func (s *signedRequests) name() string { return "signed requests" }

func (s *signedRequests) login() (string, session) { return s.request("/sso") }

func (s *signedRequests) logout(session) (string, session) { return s.request("/sso/logout") }

// request returns the address of the hosted pages with a signed request (JWT).
func (s *signedRequests) request(path string) (string, session) {
	kept := session{State: rand.Text()}
	request := s.sign(map[string]any{
		"iss": s.key.ID, "sub": s.application.Href, "iat": time.Now().Unix(), "jti": rand.Text(), "cb_uri": s.callback,
		"state": kept.State,
	})
	return s.host + path + "?jwtRequest=" + request, kept
}

// answer verifies the assertion with which the hosted pages redirect the browser back. It must answer the request of
// this browser (state).
func (s *signedRequests) answer(r *http.Request, kept session) (session, error) {
	text := r.FormValue("jwtResponse")
	var assertion struct {
		State, Status, Sub, Aud string
		Exp                     int64
		Err                     *client.Error
	}
	if err := s.verify(text, &assertion); err != nil {
		return session{}, fmt.Errorf("the address has no assertion of Doorward: %w", err)
	}
	switch {
	case kept.State == "" || kept.State != assertion.State:
		return session{}, errors.New("this is not the answer to a request of this browser")
	case assertion.Err != nil:
		return session{}, assertion.Err
	case assertion.Aud != s.key.ID || time.Now().Unix() > assertion.Exp:
		return session{}, errors.New("the assertion is for another application, or too old")
	case assertion.Status == "LOGOUT":
		return session{}, nil
	}
	token, err := s.exchange(r.Context(), text)
	if err != nil {
		return session{}, err
	}
	var claims map[string]any
	if err := s.verify(token, &claims); err != nil {
		return session{}, err
	}
	in, err := s.signedIn(r.Context(), assertion.Sub, claims)
	in.Token = token
	return in, err
}

// exchange returns the access token of an assertion. An assertion is accepted once.
func (s *signedRequests) exchange(ctx context.Context, assertion string) (string, error) {
	form := url.Values{"grant_type": {"service_token"}, "token": {assertion}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.application.Href+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(s.key.ID, s.key.Secret)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := s.http.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		AccessToken string `json:"access_token"`
		Error       string `json:"error"`
		Message     string `json:"message"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("exchange the assertion: %s: %s", answer.Error, answer.Message)
	}
	return answer.AccessToken, nil
}

// sign makes a JWT under the API key's secret (HS256).
func (s *signedRequests) sign(claims map[string]any) string {
	payload, _ := json.Marshal(claims) // texts and numbers
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.hmac(text))
}

// verify checks a JWT that is signed under the API key's secret and reads its
// claims.
func (s *signedRequests) verify(token string, claims any) error {
	end := strings.LastIndexByte(token, '.')
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errors.New("no JWT")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !hmac.Equal(signature, s.hmac(token[:end])) {
		return errors.New("the signature is wrong")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	return json.Unmarshal(payload, claims)
}

func (s *signedRequests) hmac(text string) []byte {
	mac := hmac.New(sha256.New, []byte(s.key.Secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
