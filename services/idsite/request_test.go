package idsite_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	"github.com/doorward/doorward/services/idsite/store"
)

const (
	apiBase  = href.Base("https://localhost:8443/v1")
	callback = "https://shop.example.test/callback"
)

// login is a deployment with an application that sends browsers to hosted pages.
type login struct {
	*idsite.Service
	data   *store.Store
	peers  *idsitetest.Deployment
	clock  *clocktest.Clock
	tenant directoryapi.Tenant
	app    applicationapi.Application
	user   directoryapi.Account
	rotate func(testing.TB) // gives the service a new master key, with the former one beside it
}

func newLogin(t testing.TB, wrap ...func(*idsite.Peers)) *login {
	t.Helper()
	l := &login{clock: &clocktest.Clock{}}
	l.peers = idsitetest.New(t, l.clock)
	master := secure.NewMasterKey("k1")
	ring, err := secure.ParseKeyring(master)
	if err != nil {
		t.Fatal(err)
	}
	cfg := idsite.Config{
		Base: apiBase, AliasTitle: "Service", Product: "Doorward", Suffix: "localhost",
		Roots: publicAuthority.Roots(), LookupTXT: l.peers.DNS.LookupTXT,
	}
	called := l.peers.Peers()
	for _, change := range wrap {
		change(&called)
	}
	l.data = store.New(l.peers.DB, l.clock.Now)
	l.Service = idsite.New(l.data, called, ring, l.clock.Now, cfg)
	l.rotate = func(t testing.TB) {
		rotated, err := secure.ParseKeyring(secure.NewMasterKey("k2") + "," + master)
		if err != nil {
			t.Fatal(err)
		}
		l.Service = idsite.New(l.data, called, rotated, l.clock.Now, cfg)
	}
	if l.tenant, err = l.SignUpFirstTenant(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	shop, user := l.peers.Shop(l.tenant.ID, "jo@example.test")
	l.user = user
	l.peers.Applications.SetLabel(id.Ref{Tenant: l.tenant.ID, ID: shop}, "calm-otter")
	if l.app, err = l.peers.Applications.Application(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: shop}); err != nil {
		t.Fatal(err)
	}
	l.app.Name, l.app.AuthorizedCallbackURIs = "Shop", []string{callback}
	l.put(l.app)
	return l
}

// put changes the application.
func (l *login) put(app applicationapi.Application) {
	in := idsitetest.Named(app.Name, app.AuthorizedCallbackURIs...)
	in.Status = field.Some(app.Status)
	l.peers.Applications.Change(id.Ref{Tenant: app.TenantID, ID: app.ID}, in)
}

// setPassword sets the password of the account again.
func (l *login) setPassword(t *testing.T) {
	t.Helper()
	l.peers.Directories.Change(t, l.userRef(), directoryapi.NewAccount{Password: field.Some(idsitetest.Password.Reveal())})
}

func (l *login) userRef() id.Ref { return id.Ref{Tenant: l.tenant.ID, ID: l.user.ID} }

// claims are those of a good request; changes replace them, and nil leaves one out.
func (l *login) claims(changes map[string]any) map[string]any {
	claims := map[string]any{
		"iss": in.KeyID, "sub": apiBase.To("applications", l.app.ID), "cb_uri": callback,
		"iat": l.clock.Now().Unix(), "jti": secure.Token(22).Reveal(),
	}
	for name, value := range changes {
		if value == nil {
			delete(claims, name)
		} else {
			claims[name] = value
		}
	}
	return claims
}

func (l *login) sign(t testing.TB, header map[string]any, changes map[string]any) secure.Secret {
	t.Helper()
	if header == nil {
		header = map[string]any{"kid": in.KeyID}
	}
	text, err := secure.SignJWT(header, l.claims(changes), in.KeySecret)
	if err != nil {
		t.Fatal(err)
	}
	return secure.Secret(text)
}

// begin sends a browser to the hosted pages.
func (l *login) begin(t testing.TB, changes map[string]any, v idsite.BrowserRequest) idsite.Redirect {
	t.Helper()
	v.Token = l.sign(t, nil, changes)
	to, err := l.BeginLogin(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// pageOf is the session token of an address of the pages.
func pageOf(t testing.TB, location string) secure.Secret {
	t.Helper()
	_, token, found := strings.Cut(location, "?jwt=")
	if !found {
		t.Fatalf("the browser is sent to %s", location)
	}
	return secure.Secret(token)
}

// assertion is what a browser brings back to the application, header and claims.
func assertion(t testing.TB, location string) (header, claims map[string]json.RawMessage, token secure.Secret) {
	t.Helper()
	at, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, callback+"?") {
		t.Fatalf("the browser is sent to %s", location)
	}
	text := at.Query().Get("jwtResponse")
	byKey := func(map[string]any, secure.Claims) (secure.Secret, error) { return in.KeySecret, nil }
	if _, _, err := secure.ParseJWT(text, byKey); err != nil {
		t.Fatalf("the assertion is not good: %v", err)
	}
	for part, to := range map[int]*map[string]json.RawMessage{0: &header, 1: &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[part])
		if err == nil {
			err = json.Unmarshal(raw, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return header, claims, secure.Secret(text)
}

// wantError checks that a browser brings back this error, in the shape of one.
func (l *login) wantError(t *testing.T, what, location string, want *apierr.Error) {
	t.Helper()
	header, claims, _ := assertion(t, location)
	var problem struct {
		Code, Status                        int
		Message, DeveloperMessage, MoreInfo string
	}
	if err := json.Unmarshal(claims["err"], &problem); err != nil || problem.Code != want.Code || problem.Status != want.Status {
		t.Errorf("%s: the claims are %s, want %d", what, claims, want.Code)
	}
	if problem.Message == "" || problem.DeveloperMessage == "" || !strings.HasSuffix(problem.MoreInfo, "/errors/"+strconv.Itoa(problem.Code)) {
		t.Errorf("%s: the error is %+v", what, problem)
	}
	for _, name := range []string{"aud", "sub", "status"} {
		if _, given := claims[name]; given {
			t.Errorf("%s: an error assertion has %s", what, name)
		}
	}
	if string(claims["iss"]) != `"`+apiBase.To("applications", l.app.ID)+`"` || header["stt"] != nil ||
		string(header["kid"]) != `"`+in.KeyID+`"` {
		t.Errorf("%s: header %s, claims %s", what, header, claims)
	}
}

func TestARequestWithoutATrustworthyCallbackIsAPage(t *testing.T) {
	l := newLogin(t)
	other := newOther(l)
	good := l.sign(t, nil, nil).Reveal()
	part := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + part[1] + "."
	foreign, err := secure.SignJWT(map[string]any{"kid": in.KeyID}, l.claims(nil), "another secret of at least 32 bytes")
	if err != nil {
		t.Fatal(err)
	}
	for what, token := range map[string]secure.Secret{
		"nothing": "", "no JWT": "x.y.z", "alg none": secure.Secret(none), "another secret": secure.Secret(foreign),
		"changed claims":        secure.Secret(part[0] + "." + part[1] + "x." + part[2]),
		"an unknown key":        l.sign(t, map[string]any{"kid": "nobody"}, nil),
		"another issuer":        l.sign(t, nil, map[string]any{"iss": "somebody"}),
		"no issuer":             l.sign(t, nil, map[string]any{"iss": nil}),
		"an assertion":          l.sign(t, map[string]any{"kid": in.KeyID, "stt": "assertion"}, nil),
		"no subject":            l.sign(t, nil, map[string]any{"sub": nil}),
		"a directory":           l.sign(t, nil, map[string]any{"sub": apiBase.To("directories", l.app.ID)}),
		"another tenant's":      l.sign(t, nil, map[string]any{"sub": apiBase.To("applications", other)}),
		"an unknown one":        l.sign(t, nil, map[string]any{"sub": apiBase.To("applications", id.New(l.clock.Now()))}),
		"no callback":           l.sign(t, nil, map[string]any{"cb_uri": nil}),
		"an empty callback":     l.sign(t, nil, map[string]any{"cb_uri": ""}),
		"a callback not listed": l.sign(t, nil, map[string]any{"cb_uri": "https://evil.example/callback"}),
		"a NUL":                 l.sign(t, nil, map[string]any{"state": "a\x00b"}),
	} {
		for name, rule := range map[string]func() (idsite.Redirect, error){
			"login":  func() (idsite.Redirect, error) { return l.BeginLogin(t.Context(), idsite.BrowserRequest{Token: token}) },
			"logout": func() (idsite.Redirect, error) { return l.Logout(t.Context(), idsite.BrowserRequest{Token: token}) },
		} {
			if to, err := rule(); apierr.From(err) == nil || apierr.From(err).Status != 400 || to.Location != "" {
				t.Errorf("%s of %s leads to %q, %v", name, what, to.Location, err)
			}
		}
	}
}

// newOther is an application of another tenant.
func newOther(l *login) id.ID {
	return l.peers.Applications.NewApplication(l.peers.Directories.NewTenant().Tenant.ID)
}

func TestACallbackMustBeListed(t *testing.T) {
	l := newLogin(t)
	l.app.AuthorizedCallbackURIs = []string{callback, "https://*.shops.example.test/cb", "com.example.app://cb"}
	l.put(l.app)
	for _, hostile := range []string{
		"https://shop.example.test@evil.example/callback", "https://evil.example\\@shop.example.test/callback", "//evil.example/callback",
		"https://shop.example.test.evil.example/callback", "https://shop.example.test./callback", "https://shop.example.test:444/callback",
		"http://shop.example.test/callback", "https://shop.example.test/callback/../evil", "https://shop.example.test/callback%2f..%2fevil",
		"https://shop.example.test/%63allback", "https://shop.example.test/callback#x", "https://shop.example.test/Callback",
		"https://[::1]/callback",
		"javascript:alert(1)//shop.example.test/callback", "data:text/html,x", "https:///callback", "https://a.b.shops.example.test/cb",
		"https://.shops.example.test/cb", "https://evil.example/.shops.example.test/cb", "https://a.shops.example.test/cb/x",
		"com.example.app://other",
		" https://evil.example/callback", "https://shop.example.test\t.evil.example/callback",
	} {
		if to, err := l.BeginLogin(t.Context(), idsite.BrowserRequest{Token: l.sign(t, nil, map[string]any{"cb_uri": hostile})}); err == nil {
			t.Errorf("%s is accepted and leads to %s", hostile, to.Location)
		}
	}
	for _, good := range []string{callback + "?a=b", "https://SHOP.example.test/callback", "https://a.shops.example.test/cb",
		"com.example.app://cb"} {
		if _, err := l.BeginLogin(t.Context(), idsite.BrowserRequest{Token: l.sign(t, nil, map[string]any{"cb_uri": good})}); err != nil {
			t.Errorf("%s is refused: %v", good, err)
		}
	}
}

func TestAnErrorOfARequestGoesToItsCallback(t *testing.T) {
	l := newLogin(t)
	closed := l.peers.Applications.NewOrganization(l.tenant.ID, l.app.ID, "closed", l.user.DirectoryID)
	l.peers.Applications.SetOrganizationStatus(id.Ref{Tenant: l.tenant.ID, ID: closed}, directoryapi.Disabled)
	l.peers.Applications.NewOrganization(l.tenant.ID, l.peers.Applications.NewApplication(l.tenant.ID), "unmapped", l.user.DirectoryID)
	now := l.clock.Now().Unix()
	for what, c := range map[string]struct {
		changes map[string]any
		want    *apierr.Error
	}{
		"no iat":          {map[string]any{"iat": nil}, apierr.ClaimEmpty},
		"iat as text":     {map[string]any{"iat": "now"}, apierr.ClaimEmpty},
		"iat to come":     {map[string]any{"iat": now + 61}, apierr.TokenFromFuture},
		"iat too old":     {map[string]any{"iat": now - 661}, apierr.TokenExpired},
		"exp passed":      {map[string]any{"exp": now - 61}, apierr.TokenExpired},
		"exp as text":     {map[string]any{"exp": "soon"}, apierr.ClaimEmpty},
		"nbf to come":     {map[string]any{"nbf": now + 61}, apierr.TokenFromFuture},
		"nbf as text":     {map[string]any{"nbf": "soon"}, apierr.ClaimEmpty},
		"no jti":          {map[string]any{"jti": nil}, apierr.ClaimEmpty},
		"an empty jti":    {map[string]any{"jti": ""}, apierr.ClaimEmpty},
		"a long jti":      {map[string]any{"jti": strings.Repeat("x", 1025)}, apierr.ClaimEmpty},
		"an empty onk":    {map[string]any{"onk": ""}, apierr.ClaimEmpty},
		"a null ash":      {map[string]any{"ash": json.RawMessage("null")}, apierr.ClaimEmpty},
		"a null sof":      {map[string]any{"sof": json.RawMessage("null")}, apierr.ClaimEmpty},
		"a null usd":      {map[string]any{"usd": json.RawMessage("null")}, apierr.ClaimEmpty},
		"an unknown onk":  {map[string]any{"onk": "nobody"}, apierr.NameKeyUnknown},
		"a disabled onk":  {map[string]any{"onk": "closed"}, apierr.NameKeyDisabled},
		"an unmapped onk": {map[string]any{"onk": "unmapped"}, apierr.NameKeyNotMapped},
	} {
		c.changes["state"] = "a b~?ü"
		to := l.begin(t, c.changes, idsite.BrowserRequest{})
		l.wantError(t, what, to.Location, c.want)
		if _, claims, _ := assertion(t, to.Location); string(claims["state"]) != `"a b~?ü"` {
			t.Errorf("%s: the state is %s", what, claims["state"])
		}
	}
	disabled := l.app
	disabled.Status = directoryapi.Disabled
	l.put(disabled)
	l.wantError(t, "a disabled application", l.begin(t, nil, idsite.BrowserRequest{}).Location, apierr.TokenApplicationDisabled)
	l.put(l.app)

	for what, changes := range map[string]map[string]any{
		"a fraction of iat": {"iat": float64(now) + 0.5}, "iat within the skew": {"iat": now + 59},
		"an old iat within the skew": {"iat": now - 659},
		"nbf within the skew":        {"nbf": now + 59},
		"exp within the skew":        {"exp": now - 59}, "an empty state": {"state": ""}, "an empty path": {"path": ""},
		"an unknown claim": {"colour": "red"},
	} {
		if to := l.begin(t, changes, idsite.BrowserRequest{}); !strings.HasPrefix(to.Location, "https://"+l.tenant.Key+".id.localhost:8443/#/?jwt=") {
			t.Errorf("%s leads to %s", what, to.Location)
		}
	}
}

func TestARequestBeginsOnce(t *testing.T) {
	l := newLogin(t)
	token := l.sign(t, nil, map[string]any{"jti": "once"})
	var began atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			to, err := l.BeginLogin(t.Context(), idsite.BrowserRequest{Token: token})
			if err != nil {
				t.Error(err)
				return
			}
			if strings.Contains(to.Location, "?jwt=") {
				began.Add(1)
				return
			}
			l.wantError(t, "a replay", to.Location, apierr.TokenReplayed)
		})
	}
	all.Wait()
	if began.Load() != 1 {
		t.Errorf("%d of 50 requests began", began.Load())
	}
	l.clock.Move(9 * time.Minute)
	to, err := l.BeginLogin(t.Context(), idsite.BrowserRequest{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	l.wantError(t, "a replay at the end of its time", to.Location, apierr.TokenReplayed)
}

func TestTheHostedPageOfARequest(t *testing.T) {
	l := newLogin(t)
	l.peers.Applications.NewOrganization(l.tenant.ID, l.app.ID, "acme", l.user.DirectoryID)
	host := "https://" + l.tenant.Key + ".id.localhost:8443"
	for path, want := range map[string]string{
		"/": "/#/?", "": "/#/?", "/#/register": "/#/register?", "/register": "/#/register?", "#/forgot": "/#/forgot?", "/#/reset": "/#/reset?",
		"//evil.example": "/#/evil.example?", "/#//evil.example": "/#/evil.example?", `/\evil.example`: "/#/%5Cevil.example?",
		"/?jwt=x#y": "/#/%3Fjwt=x%23y?",
	} {
		if to := l.begin(t, map[string]any{"path": path}, idsite.BrowserRequest{}); !strings.HasPrefix(to.Location, host+want+"jwt=") {
			t.Errorf("the path %q leads to %s", path, to.Location)
		}
	}
	if to := l.begin(t, map[string]any{"onk": "ACME", "usd": true}, idsite.BrowserRequest{}); !strings.HasPrefix(to.Location, host+"/#/?jwt=") {
		t.Errorf("without a domain of its own an organization leads to %s", to.Location)
	}
	l.ownDomain(t)
	for what, c := range map[string]struct {
		changes map[string]any
		host    string
	}{
		"usd and onk": {map[string]any{"onk": "acme", "usd": true}, "acme.login.example.test"},
		"onk alone":   {map[string]any{"onk": "acme"}, "login.example.test"},
		"usd alone":   {map[string]any{"usd": true}, "login.example.test"}, "usd as text": {map[string]any{"onk": "acme", "usd": "true"},
			"acme.login.example.test"},
	} {
		if to := l.begin(t, c.changes, idsite.BrowserRequest{}); !strings.HasPrefix(to.Location, "https://"+c.host+":8443/#/?jwt=") {
			t.Errorf("%s leads to %s", what, to.Location)
		}
	}
	page := l.open(t, pageOf(t, l.begin(t, map[string]any{"onk": "acme", "usd": true}, idsite.BrowserRequest{}).Location))
	for origin, want := range map[string]bool{
		"https://acme.login.example.test:8443": true, "https://login.example.test:8443": true, "https://other.login.example.test:8443": false,
		"https://acme.login.example.test": false, "https://evil.example": false, "null": false, "": false,
	} {
		if got := page.AllowsOrigin(origin); got != want {
			t.Errorf("the origin %q is allowed: %t", origin, got)
		}
	}
	for _, crafted := range []string{"evil.example/", "evil.example#", "a.b", "acme@evil.example", "..", "acme\\"} {
		if to := l.begin(t, map[string]any{"onk": crafted, "usd": true}, idsite.BrowserRequest{}); !strings.HasPrefix(to.Location, callback) {
			t.Errorf("the name key %q leads to %s", crafted, to.Location)
		}
	}
}

// ownDomain returns the tenant a domain of its own.
func (l *login) ownDomain(t *testing.T) {
	t.Helper()
	l.change(t, idsite.SiteChange{DomainName: field.Some("login.example.test")})
}

func (l *login) change(t *testing.T, in idsite.SiteChange) {
	t.Helper()
	site, err := l.SiteOfHost(t.Context(), l.tenant.Key+".id.localhost")
	if err == nil {
		_, err = l.UpdateSite(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: site.ID}, in)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// issuer is that of assertions of the tenant's hosted pages.
func (l *login) issuer(t *testing.T) string {
	t.Helper()
	page, err := l.ListSites(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: l.tenant.ID}, list.First())
	if err != nil {
		t.Fatal(err)
	}
	return "https://" + page.Items[0].DomainName
}

func (l *login) open(t *testing.T, token secure.Secret) *idsite.PageAPI {
	t.Helper()
	page, _, err := l.OpenPageAPI(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func (l *login) logIn(t *testing.T, page *idsite.PageAPI) idsite.PageResult {
	t.Helper()
	value := base64.StdEncoding.EncodeToString([]byte(l.user.Email + ":" + idsitetest.Password.Reveal()))
	answer, err := page.LogIn(t.Context(), l.app.ID, value, directoryapi.StoreName{})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestAnAssertionSaysWhatTheLoginWas(t *testing.T) {
	l := newLogin(t)
	for what, state := range map[string]string{
		"text": `"a b~?ü%20"`, "empty": `""`, "a number": `12345678901234567890`, "a fraction": `1.50`, "a flag": `true`,
		"an object": `{"a":[1]}`, "none": "",
	} {
		changes := map[string]any{"jti": "request of " + what}
		if state != "" {
			changes["state"] = json.RawMessage(state)
		}
		to := l.begin(t, changes, idsite.BrowserRequest{})
		header, claims, _ := assertion(t, l.logIn(t, l.open(t, pageOf(t, to.Location))).Redirect)
		if string(claims["state"]) != state {
			t.Errorf("the state %s (%s) comes back as %s", state, what, claims["state"])
		}
		now := l.clock.Now().Unix()
		for name, want := range map[string]any{
			"iss": "https://" + l.tenant.Key + ".id.localhost", "sub": apiBase.To("accounts", l.user.ID), "aud": in.KeyID, "iat": now,
			"exp": now + 60,
			"irt": "request of " + what, "isNewSub": false, "status": "AUTHENTICATED", "cb_uri": callback,
		} {
			if text, _ := json.Marshal(want); string(claims[name]) != string(text) {
				t.Errorf("%s is %s, want %s", name, claims[name], text)
			}
		}
		for name, want := range map[string]string{"typ": "JWT", "alg": "HS256", "kid": in.KeyID, "stt": "assertion"} {
			if string(header[name]) != `"`+want+`"` {
				t.Errorf("the header has %s %s", name, header[name])
			}
		}
	}
	to, err := l.Logout(t.Context(), idsite.BrowserRequest{Token: l.sign(t, nil, map[string]any{"state": "x"})})
	if err != nil {
		t.Fatal(err)
	}
	if _, claims, _ := assertion(t, to.Location); string(claims["sub"]) != "null" || string(claims["status"]) != `"LOGOUT"` ||
		string(claims["aud"]) != `"`+in.KeyID+`"` || !to.EndSession {
		t.Errorf("a logout without a session says %s", claims)
	}
}

// The rules of session tokens: each that this service has signed ends a session with 12001, and where
// the login is known the browser goes back with that error. Any other text is no authentication (401).
func TestASessionTokenExpires(t *testing.T) {
	l := newLogin(t)
	token := func(changes map[string]any) secure.Secret {
		return pageOf(t, l.begin(t, changes, idsite.BrowserRequest{}).Location)
	}
	over := func(what string, token secure.Secret, known bool) {
		t.Helper()
		code := map[bool]int{true: 12001, false: 401}[known]
		page, back, err := l.OpenPageAPI(t.Context(), token)
		if apierr.From(err) == nil || apierr.From(err).Code != code || (back != "") != known {
			t.Errorf("%s: back to %q, %v", what, back, err)
		}
		if own := "https://" + l.tenant.Key + ".id.localhost:8443"; page.AllowsOrigin(own) != known || page.AllowsOrigin("https://evil.example") {
			t.Errorf("%s: pages of the site may read the answer: %t", what, page.AllowsOrigin(own))
		}
		if known {
			l.wantError(t, what, back, apierr.SessionTimedOut)
		}
	}
	good := token(nil)
	l.open(t, good)
	part := strings.Split(good.Reveal(), ".")
	over("nothing", "", false)
	over("an API key's JWT", l.sign(t, nil, nil), false)
	over("a changed token", secure.Secret(part[0]+"."+part[1]+"."+part[2][1:]+"x"), false)
	over("alg none", secure.Secret(base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))+"."+part[1]+"."), false)

	l.clock.Move(30*time.Minute - time.Second)
	next, err := l.open(t, good).Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.clock.Move(time.Second)
	over("a token after the idle time", good, true)
	l.open(t, next)
	l.logIn(t, l.open(t, next))
	over("a login that has ended", next, true)

	last := token(nil)
	for range 25 {
		l.clock.Move(29 * time.Minute)
		page, _, err := l.OpenPageAPI(t.Context(), last)
		if err != nil {
			break
		}
		if last, err = page.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	over("a login after the absolute time", last, true)
}

func TestASessionHasAnIdleAndAnAbsoluteTimeout(t *testing.T) {
	l := newLogin(t)
	sso := func(visit idsite.BrowserRequest) idsite.Redirect { return l.begin(t, nil, visit) }
	signIn := func() idsite.BrowserRequest {
		began := sso(idsite.BrowserRequest{})
		_, _, response := assertion(t, l.logIn(t, l.open(t, pageOf(t, began.Location))).Redirect)
		landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{began.Browser}})
		if err != nil || landed.Session == "" {
			t.Fatalf("the browser has the session %q, %v", landed.Session, err)
		}
		return idsite.BrowserRequest{Browsers: idsite.BrowserTokens{began.Browser}, Session: landed.Session}
	}
	signedIn := func(visit idsite.BrowserRequest) bool { return strings.HasPrefix(sso(visit).Location, callback) }

	visit := signIn()
	for range 24 { // each use moves the idle limit, and none the absolute one
		l.clock.Move(30*time.Minute - time.Second)
		if !signedIn(visit) {
			t.Fatal("the session ends while it is used")
		}
	}
	l.clock.Move(30*time.Minute - time.Second)
	if signedIn(visit) {
		t.Error("the session outlives its absolute limit")
	}
	visit = signIn()
	l.clock.Move(30 * time.Minute)
	if signedIn(visit) {
		t.Error("the session outlives its idle limit")
	}

	visit = signIn()
	if second := signIn(); second.Session == visit.Session {
		t.Error("two logins have one session")
	}
	l.setPassword(t)
	if signedIn(visit) {
		t.Error("the session outlives its password")
	}
	visit = signIn()
	l.peers.Directories.Change(t, l.userRef(), directoryapi.NewAccount{Status: field.Some(directoryapi.Disabled)})
	if signedIn(visit) {
		t.Error("the session of a disabled account goes on")
	}
}

// A session is made for the browser that began, once, and under a new id.
func TestSessionFixationIsPrevented(t *testing.T) {
	l := newLogin(t)
	began := l.begin(t, nil, idsite.BrowserRequest{Session: "planted"})
	_, _, response := assertion(t, l.logIn(t, l.open(t, pageOf(t, began.Location))).Redirect)
	for what, browser := range map[string]secure.Secret{"no": "", "a short": "x", "another": secure.Token(32)} {
		landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{browser}})
		if err != nil || landed.Session != "" || landed.Location != callback+"?jwtResponse="+response.Reveal() {
			t.Errorf("%s cookie: %+v, %v", what, landed, err)
		}
	}
	first, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{began.Browser}, Session: "planted"})
	if err != nil || first.Session == "" || first.Session == "planted" || first.SessionLife != 0 {
		t.Fatalf("the session is %+v, %v", first, err)
	}
	if again, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{began.Browser}}); err != nil || again.Session != "" {
		t.Errorf("the assertion makes another session: %+v, %v", again, err)
	}
	for what, token := range map[string]secure.Secret{
		"a request": l.sign(t, nil, nil), "no JWT": "x",
		"an assertion of the client's own": l.sign(t, map[string]any{"kid": in.KeyID, "stt": "assertion"},
			map[string]any{"exp": l.clock.Now().Unix() + 60}),
		"an assertion of the client's own with a callback of nobody": l.sign(t, map[string]any{"kid": in.KeyID, "stt": "assertion"},
			map[string]any{"iss": l.issuer(t), "exp": l.clock.Now().Unix() + 60, "aud": in.KeyID, "cb_uri": "https://evil.example/phish"}),
	} {
		if to, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: token, Browsers: idsite.BrowserTokens{began.Browser}}); err == nil || to.Session != "" {
			t.Errorf("%s is landed: %+v", what, to)
		}
	}
	l.clock.Move(61 * time.Second)
	if _, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{began.Browser}}); err == nil {
		t.Error("an assertion that has expired is landed")
	}
	persistent := true
	l.change(t, idsite.SiteChange{SessionCookiePersistent: field.Some(persistent)})
	began = l.begin(t, nil, idsite.BrowserRequest{})
	_, _, response = assertion(t, l.logIn(t, l.open(t, pageOf(t, began.Location))).Redirect)
	if landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{began.Browser}}); err != nil ||
		landed.SessionLife != 12*time.Hour {
		t.Errorf("a persistent cookie lives for %s, %v", landed.SessionLife, err)
	}
}

// The session's id changes at the login and at the second step; the one of before is
// over.
func TestASecondStepMakesAnotherSession(t *testing.T) {
	l := newLogin(t)
	factor := l.peers.MFA.Enroll(l.userRef(), mfaapi.SMS, "")
	demanded := map[string]any{"require_mfa": "sms"}
	land := func(began idsite.Redirect, redirect string, before secure.Secret) secure.Secret {
		t.Helper()
		_, _, response := assertion(t, redirect)
		landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{began.Browser}, Session: before})
		if err != nil || landed.Session == "" || landed.Session == before {
			t.Fatalf("the session is %+v, %v", landed, err)
		}
		return landed.Session
	}
	began := l.begin(t, nil, idsite.BrowserRequest{})
	first := land(began, l.logIn(t, l.open(t, pageOf(t, began.Location))).Redirect, "")

	began = l.begin(t, demanded, idsite.BrowserRequest{Session: first})
	page := l.open(t, pageOf(t, began.Location))
	challenge, _, err := page.Challenge(t.Context(), factor, "")
	if err != nil {
		t.Fatal(err)
	}
	_, passed, err := page.AnswerChallenge(t.Context(), challenge.ID, l.peers.MFA.Sent(l.userRef()))
	if err != nil {
		t.Fatal(err)
	}
	second := land(began, passed.Redirect, first)

	assertion(t, l.begin(t, demanded, idsite.BrowserRequest{Session: second}).Location)
	pageOf(t, l.begin(t, nil, idsite.BrowserRequest{Session: first}).Location) // has to sign in
}

// The demand of a second factor is in the row of the flow: no path, order or token
// removes it.
func TestTheSecondStepCannotBeSkipped(t *testing.T) {
	l := newLogin(t)
	factor := l.peers.MFA.Enroll(l.userRef(), mfaapi.SMS, "")
	for _, path := range []string{"/", "/#/register", "/#/reset", "/#/mfa/redirect"} {
		for _, demand := range []any{[]string{"sms"}, "sms", []string{"SMS"}, []string{"unknown"}, true, []any{1}} {
			l.clock.Move(time.Hour) // the wrong codes are limited
			first := pageOf(t, l.begin(t, map[string]any{"require_mfa": demand, "path": path}, idsite.BrowserRequest{}).Location)
			page := l.open(t, first)
			if _, _, err := page.Challenge(t.Context(), factor, ""); apierr.From(err) == nil || apierr.From(err).Status != 403 {
				t.Errorf("%s, %v: a challenge before the password ends with %v", path, demand, err)
			}
			answer := l.logIn(t, page)
			if answer.Redirect != "" {
				t.Fatalf("%s, %v: the password alone leads to %s", path, demand, answer.Redirect)
			}
			if _, err := page.EnrollFactor(t.Context(), l.user.ID, mfaapi.EnrollFactor{Type: mfaapi.SMS}); apierr.From(err) == nil ||
				apierr.From(err).Status != 403 {
				t.Errorf("%s, %v: the password enrolls a factor: %v", path, demand, err)
			}
			if _, err := l.open(t, first).Factors(t.Context(), l.user.ID); apierr.From(err) == nil || apierr.From(err).Status != 403 {
				t.Errorf("%s, %v: the token of before the password reads the factors: %v", path, demand, err)
			}
			challenge, sent, err := page.Challenge(t.Context(), factor, "")
			if err != nil || sent.Redirect != "" {
				t.Fatalf("%s, %v: the challenge leads to %q, %v", path, demand, sent.Redirect, err)
			}
			if _, wrong, err := page.AnswerChallenge(t.Context(), challenge.ID, "000000"); err != nil || wrong.Redirect != "" {
				t.Errorf("%s, %v: a wrong code leads to %q, %v", path, demand, wrong.Redirect, err)
			}
			_, right, err := page.AnswerChallenge(t.Context(), challenge.ID, l.peers.MFA.Sent(l.userRef()))
			if err != nil {
				t.Fatalf("%s, %v: %v", path, demand, err)
			}
			if _, claims, _ := assertion(t, right.Redirect); string(claims["status"]) != `"AUTHENTICATED"` ||
				string(claims["amr"]) != `["pwd","mfa"]` {
				t.Errorf("%s, %v: the assertion says %s", path, demand, claims)
			}
			if challenge, _, err = page.Challenge(t.Context(), factor, ""); err != nil {
				t.Fatal(err)
			}
			code := l.peers.MFA.Sent(l.userRef())
			if _, _, err := page.AnswerChallenge(t.Context(), challenge.ID, code); apierr.From(err) == nil || apierr.From(err).Code != 12001 {
				t.Errorf("%s, %v: the step can be repeated: %v", path, demand, err)
			}
		}
	}
}

// Whether an account exists changes neither the answer nor what is asked of the
// services.
func TestForgotPasswordDoesTheSameForEveryLogin(t *testing.T) {
	l := newLogin(t)
	api, err := l.OpenClientAPI(t.Context(), "CALM-otter")
	if err != nil {
		t.Fatal(err)
	}
	mails := func() int {
		return l.peers.Applications.Calls("RequestReset") + l.peers.Applications.Calls("RequestVerification")
	}
	for name, rule := range map[string]func(string) error{
		"forgot": func(login string) error {
			return api.RequestPasswordReset(t.Context(), login, directoryapi.StoreName{})
		},
		"verification": func(login string) error { return api.SendVerification(t.Context(), login, directoryapi.StoreName{}) },
		"page": func(login string) error {
			page := l.open(t, pageOf(t, l.begin(t, nil, idsite.BrowserRequest{}).Location))
			return page.RequestPasswordReset(t.Context(), l.app.ID, login, directoryapi.StoreName{})
		},
	} {
		for _, login := range []string{l.user.Email, "nobody@example.test"} {
			before, began := mails(), time.Now()
			if err := rule(login); err != nil {
				t.Errorf("%s of %s ends with %v", name, login, err)
			}
			if asked := mails() - before; asked != 1 {
				t.Errorf("%s of %s asks %d times", name, login, asked)
			}
			if took := time.Since(began); took < 50*time.Millisecond {
				t.Errorf("%s of %s is answered after %s, when its work is done", name, login, took)
			}
		}
	}
}
