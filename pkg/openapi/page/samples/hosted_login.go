// Command samples signs users in through the hosted pages, with the standard library alone.
//
//	APPLICATION=<href of the application> go run hosted_login.go
//
// Then open http://localhost:5000. The application has http://localhost:5000/callback among its
// authorizedCallbackUris. API_KEY_FILE names the file with the API key, LISTEN another address.
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// site is the application.
type site struct {
	key                   struct{ ID, Secret, BaseURL, CAFile string }
	application, callback string
	client                *http.Client

	mu       sync.Mutex
	sessions map[string]session // by the value of the cookie
}

// session has the state of a login while it runs, then the email of the user.
type session struct{ state, email string }

func main() {
	listen := cmp.Or(os.Getenv("LISTEN"), "localhost:5000")
	s := &site{application: os.Getenv("APPLICATION"), callback: "http://" + listen + "/callback",
		sessions: map[string]session{}}
	file, err := os.ReadFile(cmp.Or(os.Getenv("API_KEY_FILE"), ".doorward/apikey.json"))
	if err == nil {
		err = json.Unmarshal(file, &s.key)
	}
	if err != nil {
		log.Fatal(err)
	}
	var roots *x509.CertPool // nil: those of the system
	if s.key.CAFile != "" {
		authority, err := os.ReadFile(s.key.CAFile)
		if err != nil {
			log.Fatal(err)
		}
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
	}
	s.client = &http.Client{Timeout: 30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}

	http.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) { s.begin(w, r, "/sso") })
	http.HandleFunc("GET /logout", func(w http.ResponseWriter, r *http.Request) { s.begin(w, r, "/sso/logout") })
	http.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		if err := s.finish(w, r); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `%s <a href="/login">Sign in</a>`, html.EscapeString(err.Error()))
		}
	})
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if current := s.session(r, false); current.email != "" {
			_, _ = fmt.Fprintf(w, `Signed in as %s. <a href="/logout">Sign out</a>`, html.EscapeString(current.email))
			return
		}
		_, _ = fmt.Fprint(w, `<a href="/login">Sign in</a>`)
	})
	server := &http.Server{Addr: listen, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// begin sends the browser to the hosted pages with a signed request.
func (s *site) begin(w http.ResponseWriter, r *http.Request, path string) {
	state := rand.Text()
	request := s.sign(map[string]any{
		"iss": s.key.ID, "sub": s.application, "iat": time.Now().Unix(), "jti": rand.Text(), "cb_uri": s.callback,
		"state": state,
	})
	s.redirect(w, r, strings.TrimSuffix(s.key.BaseURL, "/v1")+path+"?jwtRequest="+request, session{state: state})
}

// finish takes the signed answer, which counts only for the request of this browser, and once.
func (s *site) finish(w http.ResponseWriter, r *http.Request) error {
	var claims struct {
		State, Status, Sub, Aud string
		Exp                     int64
		Err                     *struct{ Message string }
	}
	if err := s.verify(r.FormValue("jwtResponse"), &claims); err != nil {
		return err
	}
	state := s.session(r, true).state
	switch {
	case state == "" || claims.State != state:
		return errors.New("this is not the answer to a request of this browser")
	case claims.Err != nil:
		return errors.New(claims.Err.Message)
	case claims.Aud != s.key.ID || time.Now().Unix() > claims.Exp:
		return errors.New("the assertion is for another application, or too old")
	case claims.Status == "LOGOUT":
		s.redirect(w, r, "/", session{})
		return nil
	}
	email, err := s.email(r, claims.Sub)
	if err != nil {
		return err
	}
	s.redirect(w, r, "/", session{email: email})
	return nil
}

// email reads an account with the API key.
func (s *site) email(r *http.Request, href string) (string, error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, href, http.NoBody)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(s.key.ID, s.key.Secret)
	answer, err := s.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var account struct{ Email, Message string }
	if err := json.NewDecoder(answer.Body).Decode(&account); err != nil || answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read the account: %s: %s", answer.Status, account.Message)
	}
	return account.Email, nil
}

// sign makes a JWT (RFC 7519), signed with HS256 and the secret of the API key.
func (s *site) sign(claims map[string]any) string {
	payload, _ := json.Marshal(claims) // texts and numbers
	header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))
	text := header + "." + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.signature(text))
}

// verify reads the claims of a JWT that was signed with HS256 and the secret of the API key.
func (s *site) verify(token string, claims any) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errors.New("there is no assertion")
	}
	signed, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !hmac.Equal(signed, s.signature(parts[0]+"."+parts[1])) {
		return errors.New("the signature of the assertion is wrong")
	}
	var header struct{ Alg string }
	for part, into := range map[string]any{parts[0]: &header, parts[1]: claims} {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return err
		}
	}
	if header.Alg != "HS256" {
		return errors.New("the signature of the assertion is wrong")
	}
	return nil
}

func (s *site) signature(text string) []byte {
	mac := hmac.New(sha256.New, []byte(s.key.Secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// session returns the session of a browser, and ends it where the login that it waits for is over.
func (s *site) session(r *http.Request, end bool) session {
	cookie, err := r.Cookie("session")
	if err != nil {
		return session{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.sessions[cookie.Value]
	if end {
		delete(s.sessions, cookie.Value)
	}
	return current
}

// redirect redirects with a new session, under a new cookie (against session fixation).
func (s *site) redirect(w http.ResponseWriter, r *http.Request, address string, to session) {
	name := rand.Text()
	s.mu.Lock()
	s.sessions[name] = to
	s.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: "session", Value: name, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, address, http.StatusFound)
}
