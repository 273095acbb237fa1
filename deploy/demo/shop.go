package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/client"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// shop is one of the two applications (relying parties).
type shop struct {
	*deployment
	application *client.Application
	callback    string
	other       *demoSite

	mu       sync.Mutex
	sessions map[string]session // by the value of the cookie
}

// session is the shop's session of a browser: the state of the request with which the shop
// redirected it to the hosted pages, and after the login the user.
type session struct {
	State   string
	Account *client.Account
	Groups  []string
	Token   string // access token
	Claims  string // of the access token, as JSON
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { s.show(w, r, nil) })
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { s.redirectToHostedPages(w, r, "/sso") })
	mux.HandleFunc("GET /logout", func(w http.ResponseWriter, r *http.Request) { s.redirectToHostedPages(w, r, "/sso/logout") })
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		if err := s.handleCallback(w, r); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			s.show(w, r, err)
			return
		}
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	return mux
}

// show writes the page, with the error of a sign-in that failed.
func (s *shop) show(w http.ResponseWriter, r *http.Request, problem error) {
	_ = page.Execute(w, map[string]any{
		"Name": s.application.Name, "Session": s.session(r), "Problem": problem, "Other": s.other.title, "At": s.other.address(),
	})
}

// cookieName is the name of the session cookie. Browsers send a cookie to all ports of a
// host, so each application has a name of its own.
func (s *shop) cookieName() string { return strings.ReplaceAll(s.application.Name, " ", "-") }

func (s *shop) session(r *http.Request) session {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return session{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[cookie.Value]
}

// setSession replaces the browser's session and gives it a new cookie value (against session fixation).
func (s *shop) setSession(w http.ResponseWriter, r *http.Request, to session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cookie, err := r.Cookie(s.cookieName()); err == nil {
		delete(s.sessions, cookie.Value)
	}
	value := rand.Text()
	s.sessions[value] = to
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// redirectToHostedPages sends the browser to the hosted pages with a signed request (JWT).
func (s *shop) redirectToHostedPages(w http.ResponseWriter, r *http.Request, path string) {
	state := rand.Text()
	request := s.sign(map[string]any{
		"iss": s.key.ID, "sub": s.application.Href, "iat": time.Now().Unix(), "jti": rand.Text(), "cb_uri": s.callback, "state": state,
	})
	s.setSession(w, r, session{State: state})
	http.Redirect(w, r, s.host+path+"?jwtRequest="+request, http.StatusFound)
}

// handleCallback verifies the assertion with which the hosted pages redirect the browser
// back, and signs the user in or out. The assertion must answer the request of this
// browser (state).
func (s *shop) handleCallback(w http.ResponseWriter, r *http.Request) error {
	text := r.FormValue("jwtResponse")
	var assertion struct {
		State, Status, Sub, Aud string
		Exp                     int64
		Err                     *client.Error
	}
	if err := s.verify(text, &assertion); err != nil {
		return fmt.Errorf("the address has no assertion of Doorward: %w", err)
	}
	current := s.session(r)
	switch {
	case current.State == "" || current.State != assertion.State:
		return errors.New("this is not the answer to a request of this browser")
	case assertion.Err != nil:
		return assertion.Err
	case assertion.Aud != s.key.ID || time.Now().Unix() > assertion.Exp:
		return errors.New("the assertion is for another application, or too old")
	case assertion.Status == "LOGOUT":
		s.setSession(w, r, session{})
		return nil
	}
	signedIn, err := s.signedInSession(r.Context(), assertion.Sub, text)
	if err != nil {
		return err
	}
	s.setSession(w, r, signedIn)
	return nil
}

// signedInSession exchanges the assertion for tokens and reads the account with its groups.
func (s *shop) signedInSession(ctx context.Context, href, assertion string) (in session, err error) {
	if in.Token, err = s.exchange(ctx, assertion); err != nil {
		return in, err
	}
	var claims map[string]any
	if err := s.verify(in.Token, &claims); err != nil {
		return in, err
	}
	indented, err := json.MarshalIndent(claims, "", "  ")
	if err != nil {
		return in, err
	}
	in.Claims = string(indented)
	if in.Account, err = client.Get[client.Account](ctx, s.api, href); err != nil {
		return in, err
	}
	for group, err := range client.All[client.Group](ctx, s.api, in.Account.Groups.Href, nil) {
		if err != nil {
			return in, err
		}
		in.Groups = append(in.Groups, group.Name)
	}
	return in, nil
}

// exchange returns the access token of an assertion. An assertion is accepted once.
func (s *shop) exchange(ctx context.Context, assertion string) (string, error) {
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
func (s *shop) sign(claims map[string]any) string {
	payload, _ := json.Marshal(claims) // texts and numbers
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.hmac(text))
}

// verify checks a JWT that is signed under the API key's secret and reads its
// claims.
func (s *shop) verify(token string, claims any) error {
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

func (s *shop) hmac(text string) []byte {
	mac := hmac.New(sha256.New, []byte(s.key.Secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
