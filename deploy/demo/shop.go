package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"sync"

	"github.com/doorward/doorward/pkg/client"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// way is how an application signs its users in.
type way interface {
	// login and logout return where the browser goes, and what its session keeps until it is back.
	login() (address string, kept session)
	logout(session) (address string, kept session)
	// answer reads what the browser brings back, which must answer the request of its session. Of a logout the
	// session is the zero one.
	answer(r *http.Request, kept session) (session, error)
	// name is shown on the page.
	name() string
}

// shop is one of the three applications (relying parties).
type shop struct {
	*deployment
	application *client.Application
	way         way
	others      []*demoSite

	mu       sync.Mutex
	sessions map[string]session // by the value of the cookie
}

// session is the shop's session of a browser: what it keeps of a request, and after the login the user.
type session struct {
	State, Nonce, Verifier string
	Account                *client.Account
	Groups                 []string
	Token                  string // access token
	IDToken                string
	Claims                 string // of the login, as JSON
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { s.show(w, r, nil) })
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		address, kept := s.way.login()
		s.setSession(w, r, kept)
		http.Redirect(w, r, address, http.StatusFound)
	})
	mux.HandleFunc("GET /logout", func(w http.ResponseWriter, r *http.Request) {
		address, kept := s.way.logout(s.session(r))
		s.setSession(w, r, kept)
		http.Redirect(w, r, address, http.StatusFound)
	})
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		signedIn, err := s.way.answer(r, s.session(r))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			s.show(w, r, err)
			return
		}
		s.setSession(w, r, signedIn)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	return mux
}

// show writes the page, with the error of a sign-in that failed.
func (s *shop) show(w http.ResponseWriter, r *http.Request, problem error) {
	_ = page.Execute(w, map[string]any{
		"Name": s.application.Name, "Way": s.way.name(), "Session": s.session(r), "Problem": problem, "Others": s.others,
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

// signedIn returns the session of an account with its groups.
func (d *deployment) signedIn(ctx context.Context, href string, claims map[string]any) (in session, err error) {
	indented, err := json.MarshalIndent(claims, "", "  ")
	if err != nil {
		return in, err
	}
	in.Claims = string(indented)
	if in.Account, err = client.Get[client.Account](ctx, d.api, href); err != nil {
		return in, err
	}
	for group, err := range client.All[client.Group](ctx, d.api, in.Account.Groups.Href, nil) {
		if err != nil {
			return in, err
		}
		in.Groups = append(in.Groups, group.Name)
	}
	return in, nil
}
