package idsite_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
)

// A link to a login can be sent to another person. Neither gets what the other may do.
func TestASharedLoginRequestDoesNotShareTheSession(t *testing.T) {
	l := newLogin(t)
	attacker := l.peers.Directories.NewAccount(l.tenant.ID, l.user.DirectoryID, directoryapi.NewAccount{Email: field.Some("eve@example.test")})
	l.peers.MFA.Enroll(l.userRef(), mfaapi.SMS, "")

	link := pageOf(t, l.begin(t, map[string]any{"require_mfa": "sms"}, idsite.BrowserRequest{}).Location)
	page := l.open(t, link)
	value := base64.StdEncoding.EncodeToString([]byte(attacker.Email + ":" + idsitetest.Password.Reveal()))
	if _, err := page.LogIn(t.Context(), l.app.ID, value, directoryapi.StoreName{}); err != nil {
		t.Fatal(err)
	}
	theirs, err := page.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.open(t, theirs) // as long as nobody else has logged in
	victim := l.open(t, link)
	l.logIn(t, victim)
	if _, _, err := l.OpenPageAPI(t.Context(), theirs); !errors.Is(err, apierr.SessionTimedOut) {
		t.Errorf("the token of the account before is opened: %v", err)
	}
	if _, err := l.open(t, link).Factors(t.Context(), l.user.ID); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the token of before the password reads the factors: %v", err)
	}
	if _, err := victim.Factors(t.Context(), l.user.ID); err != nil {
		t.Errorf("the login itself has ended: %v", err)
	}
}

// Whoever sets a new password may have been robbed of the old one.
func TestANewPasswordEndsALoginThatTheOldOneBegan(t *testing.T) {
	l := newLogin(t)
	began := l.begin(t, nil, idsite.BrowserRequest{})
	_, _, response := assertion(t, l.logIn(t, l.open(t, pageOf(t, began.Location))).Redirect)
	page := l.open(t, pageOf(t, l.begin(t, map[string]any{"require_mfa": "sms"}, idsite.BrowserRequest{}).Location))
	l.logIn(t, page)
	enrolled, err := page.EnrollFactor(t.Context(), l.user.ID, mfaapi.EnrollFactor{Type: "SMS", Number: "+14155550100"})
	if err != nil {
		t.Fatal(err)
	}
	challenge, _, err := page.Challenge(t.Context(), enrolled.Factor.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	l.clock.Move(time.Second)
	l.setPassword(t)
	token, err := page.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func(*idsite.PageAPI) error{
		"the list of factors": func(p *idsite.PageAPI) error {
			_, err := p.Factors(t.Context(), l.user.ID)
			return err
		},
		"a new factor": func(p *idsite.PageAPI) error {
			_, err := p.EnrollFactor(t.Context(), l.user.ID, mfaapi.EnrollFactor{Type: "SMS", Number: "+14155550101"})
			return err
		},
		"a challenge": func(p *idsite.PageAPI) error {
			_, _, err := p.Challenge(t.Context(), enrolled.Factor.ID, "")
			return err
		},
		"the code": func(p *idsite.PageAPI) error {
			_, _, err := p.AnswerChallenge(t.Context(), challenge.ID, l.peers.MFA.Sent(l.userRef()))
			return err
		},
	} {
		if err := try(l.open(t, token)); !errors.Is(err, apierr.SessionTimedOut) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{began.Browser}}); err != nil || landed.Session != "" {
		t.Errorf("the assertion of before makes a session: %+v, %v", landed, err)
	}
}

// Until the second step the account may have been taken out of the application.
func TestTheSecondStepIsForAnAccountOfTheApplication(t *testing.T) {
	for what, end := range map[string]func(*login){
		"the account store was taken from the application": func(l *login) {
			l.peers.Applications.Map(id.Ref{Tenant: l.tenant.ID, ID: l.app.ID})
		},
		"the application was disabled": func(l *login) {
			l.app.Status = directoryapi.Disabled
			l.put(l.app)
		},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLogin(t)
			factor := l.peers.MFA.Enroll(l.userRef(), mfaapi.Authenticator, "Shop")
			page := l.open(t, pageOf(t, l.begin(t, map[string]any{"require_mfa": mfaapi.Authenticator}, idsite.BrowserRequest{}).Location))
			l.logIn(t, page)
			end(l)
			if _, answer, err := page.Challenge(t.Context(), factor, l.peers.MFA.Show(l.userRef())); !errors.Is(err, apierr.SessionTimedOut) {
				t.Errorf("the second step ends with %+v, %v", answer, err)
			}
		})
	}
}

// Whoever knew the password may have enrolled a factor when the account had none.
func TestAnUnverifiedFactorPassesNoLogin(t *testing.T) {
	l := newLogin(t)
	request := map[string]any{"require_mfa": []string{mfaapi.SMS, mfaapi.Authenticator}}
	open := func() *idsite.PageAPI {
		page := l.open(t, pageOf(t, l.begin(t, request, idsite.BrowserRequest{}).Location))
		l.logIn(t, page)
		return page
	}
	page := open()
	planted, err := page.EnrollFactor(t.Context(), l.user.ID, mfaapi.EnrollFactor{Type: "SMS", Number: "+14155550100"})
	if err != nil {
		t.Fatal(err)
	}
	challenge, _, err := page.Challenge(t.Context(), planted.Factor.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	code := l.peers.MFA.Sent(l.userRef())
	l.peers.MFA.Enroll(l.userRef(), mfaapi.Authenticator, "Shop")
	if _, _, err := open().Challenge(t.Context(), planted.Factor.ID, ""); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the factor is challenged: %v", err)
	}
	if _, answer, err := open().AnswerChallenge(t.Context(), challenge.ID, code); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("its code passes the second step: %+v, %v", answer, err)
	}
}

// A login that does not allow the type of the account's factor asks for that factor all the same. Its
// code lets the page enroll another one, for this account in this login alone.
func TestAFactorOfAnotherTypeIsAStepUp(t *testing.T) {
	l := newLogin(t)
	factor := l.peers.MFA.Enroll(l.userRef(), mfaapi.Authenticator, "Shop")
	other := l.peers.Directories.NewAccount(l.tenant.ID, l.user.DirectoryID, directoryapi.NewAccount{Email: field.Some("eve@example.test")})
	l.peers.MFA.Enroll(id.Ref{Tenant: l.tenant.ID, ID: other.ID}, mfaapi.Authenticator, "Shop")
	phone := mfaapi.EnrollFactor{Type: "SMS", Number: "+14155550100"}

	link := pageOf(t, l.begin(t, map[string]any{"require_mfa": "sms"}, idsite.BrowserRequest{}).Location)
	logIn := func(email string) *idsite.PageAPI {
		page := l.open(t, link)
		value := base64.StdEncoding.EncodeToString([]byte(email + ":" + idsitetest.Password.Reveal()))
		if _, err := page.LogIn(t.Context(), l.app.ID, value, directoryapi.StoreName{}); err != nil {
			t.Fatal(err)
		}
		return page
	}
	page := logIn(l.user.Email)
	if _, err := page.EnrollFactor(t.Context(), l.user.ID, phone); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the password alone enrolls a phone: %v", err)
	}
	challenged, answer, err := page.Challenge(t.Context(), factor, l.peers.MFA.Show(l.userRef()))
	if err != nil || challenged.Status != "SUCCESS" || answer.Redirect != "" {
		t.Fatalf("the code of the authenticator is %+v, leads to %q, %v; want a login that goes on", challenged, answer.Redirect, err)
	}

	token, err := page.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	made, err := l.open(t, token).EnrollFactor(t.Context(), l.user.ID, phone)
	if err != nil {
		t.Fatalf("after the step-up a phone is refused: %v", err)
	}
	if _, err := logIn(other.Email).EnrollFactor(t.Context(), other.ID, phone); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the step-up of another account in the same login enrolls a phone: %v", err)
	}
	if _, err := page.EnrollFactor(t.Context(), other.ID, phone); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the page of the account before enrolls a phone of the one after: %v", err)
	}
	page = logIn(l.user.Email)
	if _, err := page.EnrollFactor(t.Context(), l.user.ID, phone); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("a step-up counts after another password step: %v", err)
	}
	if _, _, err := page.Challenge(t.Context(), factor, l.peers.MFA.Show(l.userRef())); err != nil {
		t.Fatal(err)
	}
	challenged, _, err = page.Challenge(t.Context(), made.Factor.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	_, answer, err = page.AnswerChallenge(t.Context(), challenged.ID, l.peers.MFA.Sent(l.userRef()))
	if err != nil {
		t.Fatal(err)
	}
	if _, claims, _ := assertion(t, answer.Redirect); string(claims["amr"]) != `["pwd","mfa"]` {
		t.Errorf("the assertion says %s", claims)
	}
}

// A session proves the types of factors that it was begun with, and no others.
func TestASessionProvesTheFactorThatItPassed(t *testing.T) {
	l := newLogin(t)
	factor := l.peers.MFA.Enroll(l.userRef(), mfaapi.Authenticator, "Shop")
	began := l.begin(t, map[string]any{"require_mfa": mfaapi.Authenticator}, idsite.BrowserRequest{})
	page := l.open(t, pageOf(t, began.Location))
	l.logIn(t, page)
	_, answer, err := page.Challenge(t.Context(), factor, l.peers.MFA.Show(l.userRef()))
	if err != nil {
		t.Fatal(err)
	}
	_, _, response := assertion(t, answer.Redirect)
	landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: response, Browsers: idsite.BrowserTokens{began.Browser}})
	if err != nil || landed.Session == "" {
		t.Fatalf("the session is %+v, %v", landed, err)
	}
	for _, enough := range []any{mfaapi.Authenticator, []string{mfaapi.SMS, mfaapi.Authenticator}} {
		assertion(t, l.begin(t, map[string]any{"require_mfa": enough}, idsite.BrowserRequest{Session: landed.Session}).Location)
	}
	pageOf(t, l.begin(t, map[string]any{"require_mfa": mfaapi.SMS}, idsite.BrowserRequest{Session: landed.Session}).Location)
}

// A browser may land with the assertion of a login by its session. That makes no session which lives longer.
func TestALoginBySessionDoesNotProlongTheSession(t *testing.T) {
	l := newLogin(t)
	l.change(t, idsite.SiteChange{SessionTTI: field.Some("PT2H"), SessionTTL: field.Some("PT2H")})
	began := l.begin(t, nil, idsite.BrowserRequest{})
	_, _, response := assertion(t, l.logIn(t, l.open(t, pageOf(t, began.Location))).Redirect)
	session := secure.Secret("")
	for range 3 {
		landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{
			Token: response, Session: session, Browsers: idsite.BrowserTokens{began.Browser},
		})
		if err != nil || landed.Session == "" {
			t.Fatalf("the session is %+v, %v", landed, err)
		}
		session = landed.Session
		l.clock.Move(39 * time.Minute)
		began = l.begin(t, nil, idsite.BrowserRequest{Session: session})
		_, _, response = assertion(t, began.Location)
	}
	l.clock.Move(4 * time.Minute)
	pageOf(t, l.begin(t, nil, idsite.BrowserRequest{Session: session}).Location)
}

// The group or the directory of a new account decides what it may do.
func TestARegistrationDoesNotChooseItsAccountStore(t *testing.T) {
	l := newLogin(t)
	page := l.open(t, pageOf(t, l.begin(t, nil, idsite.BrowserRequest{}).Location))
	account := directoryapi.NewAccount{Email: field.Some("new@example.test"), Password: field.Some(idsitetest.Password.Reveal())}
	for _, kind := range []string{"directories", "groups", "applications", "accounts"} {
		named := directoryapi.StoreName{Href: apiBase.To(kind, l.user.DirectoryID)}
		if _, err := page.Register(t.Context(), "applications", l.app.ID, account, named); !errors.Is(err, apierr.Forbidden) {
			t.Errorf("a registration in one of the %s ends with %v", kind, err)
		}
	}
	if answer, err := page.Register(t.Context(), "applications", l.app.ID, account, directoryapi.StoreName{}); err != nil || answer.Redirect == "" {
		t.Errorf("a registration ends with %+v, %v", answer, err)
	}
}

// pageTokenClaims are the claims that a page reads from its token.
func pageTokenClaims(t *testing.T, token secure.Secret) (claims map[string]any) {
	t.Helper()
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(token.Reveal(), ".")[1])
	if err == nil {
		err = json.Unmarshal(body, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// An organization is asked for where there is one, and whatever way a login names it, the
// application reads of it.
func TestTheOrganizationOfALogin(t *testing.T) {
	l := newLogin(t)
	if claims := pageTokenClaims(t, pageOf(t, l.begin(t, map[string]any{"sof": true}, idsite.BrowserRequest{}).Location)); claims["sof"] != false {
		t.Errorf("without an organization the page asks for one: %v", claims)
	}
	acme := apiBase.To("organizations", l.peers.Applications.NewOrganization(l.tenant.ID, l.app.ID, "acme", l.user.DirectoryID))
	factor := l.peers.MFA.Enroll(l.userRef(), mfaapi.SMS, "")
	value := base64.StdEncoding.EncodeToString([]byte(l.user.Email + ":" + idsitetest.Password.Reveal()))
	for what, c := range map[string]struct {
		request map[string]any
		named   directoryapi.StoreName
		asnk    any
	}{
		"the request by its nameKey":  {map[string]any{"sof": true, "onk": "acme"}, directoryapi.StoreName{}, "acme"},
		"the request by its href":     {map[string]any{"sof": true, "ash": acme}, directoryapi.StoreName{}, "acme"},
		"the page by its nameKey":     {map[string]any{"sof": true}, directoryapi.StoreName{NameKey: "acme"}, nil},
		"the page by its href":        {map[string]any{"sof": true}, directoryapi.StoreName{Href: acme}, nil},
		"the page, before a factor":   {map[string]any{"sof": true, "require_mfa": "sms"}, directoryapi.StoreName{Href: acme}, nil},
		"the request before a factor": {map[string]any{"sof": true, "require_mfa": "sms", "ash": acme}, directoryapi.StoreName{}, "acme"},
	} {
		token := pageOf(t, l.begin(t, c.request, idsite.BrowserRequest{}).Location)
		if claims := pageTokenClaims(t, token); claims["sof"] != true || claims["asnk"] != c.asnk ||
			c.asnk != nil && claims["ash"] != acme {
			t.Errorf("%s: the page reads %v", what, claims)
		}
		page := l.open(t, token)
		answer, err := page.LogIn(t.Context(), l.app.ID, value, c.named)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if c.request["require_mfa"] != nil {
			next, err := page.Token(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			page = l.open(t, next)
			challenge, _, err := page.Challenge(t.Context(), factor, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, answer, err = page.AnswerChallenge(t.Context(), challenge.ID, l.peers.MFA.Sent(l.userRef())); err != nil {
				t.Fatal(err)
			}
		}
		if _, claims, _ := assertion(t, answer.Redirect); string(claims["org"]) != strconv.Quote(acme) {
			t.Errorf("%s: the assertion says %s", what, claims)
		}
	}
}

// An application takes the organization of an assertion for the one that the user belongs
// to. Who logs in or registers elsewhere than the request says is not of its organization.
func TestTheOrganizationOfALoginElsewhere(t *testing.T) {
	l := newLogin(t)
	applications := l.peers.Applications
	applications.NewOrganization(l.tenant.ID, l.app.ID, "acme", l.peers.Directories.NewDirectory(l.tenant.ID, "Acme"))
	other := apiBase.To("organizations", applications.NewOrganization(l.tenant.ID, l.app.ID, "other", l.user.DirectoryID))
	value := base64.StdEncoding.EncodeToString([]byte(l.user.Email + ":" + idsitetest.Password.Reveal()))
	for _, c := range []struct {
		request     map[string]any
		named, want string
	}{
		{nil, apiBase.To("directories", l.user.DirectoryID), ""},
		{map[string]any{"onk": "acme", "sof": true}, other, strconv.Quote(other)},
	} {
		page := l.open(t, pageOf(t, l.begin(t, c.request, idsite.BrowserRequest{}).Location))
		answer, err := page.LogIn(t.Context(), l.app.ID, value, directoryapi.StoreName{Href: c.named})
		if err != nil {
			t.Fatal(err)
		}
		if _, claims, _ := assertion(t, answer.Redirect); string(claims["org"]) != c.want {
			t.Errorf("a login at %s is of the organization %s, want %q", c.named, claims["org"], c.want)
		}
	}
	request := map[string]any{"onk": "acme", "sof": true}
	for _, factors := range []string{"", mfaapi.SMS} {
		if factors != "" {
			request["require_mfa"] = factors
		}
		page := l.open(t, pageOf(t, l.begin(t, request, idsite.BrowserRequest{}).Location))
		account := directoryapi.NewAccount{
			Email: field.Some("new" + factors + "@example.test"), Password: field.Some(idsitetest.Password.Reveal()),
		}
		answer, err := page.Register(t.Context(), "applications", l.app.ID, account, directoryapi.StoreName{Href: other})
		if err != nil {
			t.Fatal(err)
		}
		if factors != "" {
			answer = l.passFactor(t, page, answer.Account)
		}
		if _, claims, _ := assertion(t, answer.Redirect); string(claims["org"]) != strconv.Quote(other) {
			t.Errorf("a registration in another organization, require_mfa %q: the assertion says %s", factors, claims)
		}
	}
}

// passFactor enrolls a phone in a login whose first step has passed, and passes the second
// step with it.
func (l *login) passFactor(t *testing.T, page *idsite.PageAPI, account id.ID) idsite.PageResult {
	t.Helper()
	token, err := page.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	page = l.open(t, token)
	enrolled, err := page.EnrollFactor(t.Context(), account, mfaapi.EnrollFactor{Type: "SMS", Number: "+14155550100"})
	if err != nil {
		t.Fatal(err)
	}
	challenge, _, err := page.Challenge(t.Context(), enrolled.Factor.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	code := l.peers.MFA.Sent(id.Ref{Tenant: l.tenant.ID, ID: account})
	_, answer, err := page.AnswerChallenge(t.Context(), challenge.ID, code)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// This service signs the assertion of a failure with a key of the tenant, and its issuer
// is the application, as that of a request may be.
func TestAFailureBeginsNoSAMLLogin(t *testing.T) {
	l := newLogin(t)
	claims := map[string]any{"iss": apiBase.To("applications", l.app.ID), "sub": nil, "err": map[string]any{"code": 12001}}
	if _, err := l.BeginSAML(t.Context(), l.app.ID, l.sign(t, nil, claims)); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("an error assertion begins a login: %v", err)
	}
	claims["err"] = nil // without it the token is a request, for which no directory is there
	if _, err := l.BeginSAML(t.Context(), l.app.ID, l.sign(t, nil, claims)); errors.Is(err, apierr.BadRequest) {
		t.Errorf("a request is refused: %v", err)
	}
}

// A browser brings any bytes as state.
func TestAStateMustBeShortText(t *testing.T) {
	l := newLogin(t)
	api, err := l.OpenClientAPI(t.Context(), l.app.DNSLabel)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"a\x00b", "\xff", strings.Repeat("a", 4001)} {
		to, _, err := api.Authorize(t.Context(), idsite.Authorize{ResponseType: "service_token", AccountStore: "x", State: &state})
		if err != nil || !strings.HasPrefix(to, callback+"?error=invalid_request&error_description=state+must+be+UTF-8") {
			t.Errorf("%q leads to %s, %v", state, to, err)
		}
	}
}

// asIdentityProvider answers for the identity provider of every application.
type asIdentityProvider struct {
	applicationapi.API
	applicationapi.Hosted
	forced  bool  // whether the requests have ForceAuthn
	passive bool  // whether they have IsPassive
	refused bool  // whether an answer with an account is refused
	failure error // what every answer returns
	relay   *string
	answers []applicationapi.SAMLAnswer
}

func (p *asIdentityProvider) VerifySAMLRequest(context.Context, applicationapi.VerifySAMLRequest) (applicationapi.SAMLRequest, error) {
	return applicationapi.SAMLRequest{
		ServiceProvider: id.New(time.Now()), ID: "request", RelayState: p.relay, ForceAuthn: p.forced, IsPassive: p.passive,
	}, nil
}

func (p *asIdentityProvider) SAMLResponse(_ context.Context, in applicationapi.SAMLAnswer) (applicationapi.SAMLResponse, error) {
	p.answers = append(p.answers, in)
	if p.failure != nil {
		return applicationapi.SAMLResponse{}, p.failure
	}
	if p.refused && !in.Account.IsZero() {
		return applicationapi.SAMLResponse{}, apierr.AccountDisabled
	}
	return applicationapi.SAMLResponse{ConsumerURL: "https://sp.example.test", Response: "signed"}, nil
}

// The browser that brought a SAML request is not always the one that logs in: its user
// may have sent the link on.
func TestASAMLResponseIsForTheBrowserThatLoggedIn(t *testing.T) {
	provider := &asIdentityProvider{}
	l := newLogin(t, func(peers *idsite.Peers) {
		provider.API, provider.Hosted = peers.Application, peers.Application
		peers.Application = provider
	})
	api, err := l.OpenClientAPI(t.Context(), l.app.DNSLabel)
	if err != nil {
		t.Fatal(err)
	}
	begin := func() (flow, jwt string, began idsite.Redirect) {
		t.Helper()
		began, err := api.BeginSignOn(t.Context(), "https://calm-otter.apps.localhost/saml/sso", idsite.SignOn{Request: "x"})
		if err != nil {
			t.Fatal(err)
		}
		link, err := url.Parse(began.Location)
		if err != nil {
			t.Fatal(err)
		}
		victim, err := l.ContinueSignOn(t.Context(), idsite.BrowserRequest{Token: secure.Secret(link.Query().Get("signOn"))})
		if err != nil {
			t.Fatal(err)
		}
		back, err := url.Parse(l.logIn(t, l.open(t, pageOf(t, victim.Location))).Redirect)
		if err != nil {
			t.Fatal(err)
		}
		return back.Query().Get("flow"), back.Query().Get("jwtResponse"), began
	}
	flow, jwt, began := begin()
	_, other, _ := begin()
	for what, assertion := range map[string]secure.Secret{"no": "", "no good": "x", "another": secure.Secret(other)} {
		if _, err := api.FinishSignOn(t.Context(), flow, idsite.BrowserTokens{began.Browser}, assertion); !errors.Is(err, apierr.BadRequest) || len(provider.answers) > 0 {
			t.Errorf("%s assertion: %v, %+v", what, err, provider.answers)
		}
	}
	if _, err := api.FinishSignOn(t.Context(), flow, idsite.BrowserTokens{secure.Token(32)}, secure.Secret(jwt)); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("another browser: %v", err)
	}
	if signed, err := api.FinishSignOn(t.Context(), flow, idsite.BrowserTokens{began.Browser}, secure.Secret(jwt)); err != nil || signed.Response != "signed" ||
		len(provider.answers) != 1 || provider.answers[0].Account != l.user.ID {
		t.Errorf("the browser itself gets %+v, %v; %+v", signed, err, provider.answers)
	}
}

// An assertion names when its user proved who he is, and the session of that: the
// same for all logins of a session, and another after a new proof.
func TestALoginBySessionNamesTheLoginThatBeganIt(t *testing.T) {
	provider := &asIdentityProvider{}
	l := newLogin(t, func(peers *idsite.Peers) {
		provider.API, provider.Hosted = peers.Application, peers.Application
		peers.Application = provider
	})
	api, err := l.OpenClientAPI(t.Context(), l.app.DNSLabel)
	if err != nil {
		t.Fatal(err)
	}
	var session secure.Secret // the cookie of the browser
	login := func(wantsPage bool) applicationapi.SAMLAnswer {
		t.Helper()
		l.clock.Move(time.Minute)
		began, err := api.BeginSignOn(t.Context(), "https://calm-otter.apps.localhost/saml/sso", idsite.SignOn{Request: "x"})
		if err != nil {
			t.Fatal(err)
		}
		_, token, _ := strings.Cut(began.Location, "?signOn=")
		to, err := l.ContinueSignOn(t.Context(), idsite.BrowserRequest{Token: secure.Secret(token), Session: session})
		if err != nil {
			t.Fatal(err)
		}
		location := to.Location
		if _, _, shown := strings.Cut(location, "?jwt="); shown != wantsPage {
			t.Fatalf("the browser is sent to %s", location)
		}
		if wantsPage {
			location = l.logIn(t, l.open(t, pageOf(t, location))).Redirect
		}
		_, jwt, _ := strings.Cut(location, "jwtResponse=")
		if wantsPage {
			l.clock.Move(time.Second)
			landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{
				Token: secure.Secret(jwt), Session: session, Browsers: idsite.BrowserTokens{to.Browser},
			})
			if err != nil || landed.Session == "" {
				t.Fatalf("the browser lands with %+v, %v", landed, err)
			}
			session = landed.Session
		}
		back, err := url.Parse(location)
		if err != nil {
			t.Fatal(err)
		}
		browsers := idsite.BrowserTokens{began.Browser}
		if _, err := api.FinishSignOn(t.Context(), back.Query().Get("flow"), browsers, secure.Secret(jwt)); err != nil {
			t.Fatal(err)
		}
		return provider.answers[len(provider.answers)-1]
	}

	first, again := login(true), login(false)
	proved := l.clock.Now().Add(-time.Minute - time.Second) // before the browser landed with it
	if first.SessionIndex == "" || !first.AuthenticatedAt.Equal(proved) {
		t.Errorf("the first login was at %s in the session %q, want %s", first.AuthenticatedAt, first.SessionIndex, proved)
	}
	if again.SessionIndex != first.SessionIndex || !again.AuthenticatedAt.Equal(proved) {
		t.Errorf("a login by the session was at %s in the session %q, want %s in %q",
			again.AuthenticatedAt, again.SessionIndex, proved, first.SessionIndex)
	}
	if strings.Contains(first.SessionIndex, session.Reveal()) {
		t.Errorf("the index %q shows the cookie", first.SessionIndex)
	}
	provider.forced = true
	forced := login(true)
	if forced.SessionIndex == "" || forced.SessionIndex == first.SessionIndex || !forced.AuthenticatedAt.After(proved) {
		t.Errorf("a new proof was at %s in the session %q", forced.AuthenticatedAt, forced.SessionIndex)
	}
}
