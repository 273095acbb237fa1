package peertest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Password is that of every account that AddAccount made.
const Password = "Changeme1!"

// Throttled is a login that has failed too often.
const Throttled = "throttled"

// hosted is what the services know of hosted logins.
type hosted struct {
	applications  map[id.ID]applicationapi.Application
	organizations map[string]error // why one of this nameKey cannot be used; nil: it can
	accounts      map[id.ID]directoryapi.Account
	factors       map[id.ID][]mfaapi.AccountFactor
	mails         []string // logins that a mail was asked for
	issued        map[secure.Secret]id.ID
	off           bool // the Client API of all applications
}

func newHosted() hosted {
	return hosted{
		applications: map[id.ID]applicationapi.Application{}, organizations: map[string]error{}, accounts: map[id.ID]directoryapi.Account{},
		factors: map[id.ID][]mfaapi.AccountFactor{}, issued: map[secure.Secret]id.ID{},
	}
}

// PutApplication adds an application, or replaces it.
func (d *Deployment) PutApplication(a applicationapi.Application) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hosted.applications[a.ID] = a
}

// PutAccount adds an account, or replaces it.
func (d *Deployment) PutAccount(a directoryapi.Account) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hosted.accounts[a.ID] = a
}

// PutFactor adds a factor of an account.
func (d *Deployment) PutFactor(account id.ID, f mfaapi.AccountFactor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hosted.factors[account] = append(d.hosted.factors[account], f)
}

// PutOrganization adds an organization, and says why it cannot be used.
func (d *Deployment) PutOrganization(nameKey string, refusal error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hosted.organizations[nameKey] = refusal
}

// Mails returns the logins that a mail was asked for.
func (d *Deployment) Mails() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.hosted.mails)
}

// Issue makes an access token of an account.
func (d *Deployment) Issue(account id.ID) secure.Secret {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := secure.Token(22)
	d.hosted.issued[token] = account
	return token
}

func (p oauth) VerifyJWT(_ context.Context, in oauthapi.VerifyJWT) (oauthapi.VerifiedJWT, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	var key oauthapi.EnsureKey
	header, claims, err := secure.ParseJWT(in.Token.Reveal(), func(header map[string]any, claims secure.Claims) (secure.Secret, error) {
		name, named := header["kid"].(string)
		if !named {
			name, _ = claims["iss"].(string)
		}
		var ok bool
		if key, ok = p.d.keys[name]; !ok {
			return "", apierr.NotFound
		}
		return key.Secret, nil
	})
	if err != nil {
		return oauthapi.VerifiedJWT{}, apierr.TokenSignature
	}
	out := oauthapi.VerifiedJWT{Tenant: key.Tenant, KeyID: key.ID}
	if out.Header, err = json.Marshal(header); err == nil {
		out.Claims, err = json.Marshal(claims)
	}
	return out, err
}

func (p oauth) SignAssertion(_ context.Context, in oauthapi.SignAssertion) (oauthapi.SignedAssertion, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	key, ok := p.d.keys[in.KeyID]
	if !ok || key.Tenant != in.Tenant {
		return oauthapi.SignedAssertion{}, apierr.NotFound
	}
	claims, header := secure.Claims{}, map[string]any{"typ": "JWT", "kid": key.ID}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(in.Claims, &members); err != nil {
		return oauthapi.SignedAssertion{}, err
	}
	for name, value := range members {
		claims[name] = value
	}
	if _, failed := members["err"]; !failed {
		header["stt"] = "assertion"
	}
	text, err := secure.SignJWT(header, claims, key.Secret)
	return oauthapi.SignedAssertion{Token: secure.Secret(text), KeyID: key.ID}, err
}

func (p oauth) ClientConfig(_ context.Context, in id.Ref) (oauthapi.ClientConfig, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	on := true
	return oauthapi.ClientConfig{
		Enabled: !p.d.hosted.off, OAuth2: true, Register: true, Login: true, VerifyEmail: &on, ForgotPassword: &on, ChangePassword: &on, Me: true,
	}, nil
}

func (p oauth) ClientToken(_ context.Context, in oauthapi.ClientForm) (oauthapi.ClientTokens, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	for _, a := range p.d.hosted.accounts {
		if a.TenantID == in.Tenant && a.Email == in.Form["username"].Reveal() && in.Form["password"] == Password {
			token := secure.Token(22)
			p.d.hosted.issued[token] = a.ID
			return oauthapi.ClientTokens{Access: token, Refresh: secure.Token(22), ExpiresIn: 3600}, nil
		}
	}
	if in.Form["username"] == Throttled {
		return oauthapi.ClientTokens{}, apierr.TooMany.Because("too many logins have failed").After(7 * time.Second)
	}
	return oauthapi.ClientTokens{}, apierr.BadRequest.With("error", "invalid_grant")
}

func (p oauth) ClientRevoke(context.Context, oauthapi.ClientForm) (oauthapi.Revoked, error) {
	return oauthapi.Revoked{}, nil
}

func (p oauth) ValidateToken(_ context.Context, in oauthapi.ValidateToken) (oauthapi.ValidToken, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	account, ok := p.d.hosted.issued[in.Token]
	if !ok {
		return oauthapi.ValidToken{}, apierr.TokenSignature
	}
	return oauthapi.ValidToken{Account: p.d.hosted.accounts[account]}, nil
}

func (p application) Application(_ context.Context, in id.Ref) (applicationapi.Application, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	a, ok := p.d.hosted.applications[in.ID]
	if !ok || a.TenantID != in.Tenant {
		return applicationapi.Application{}, apierr.NotFound
	}
	return a, nil
}

func (p application) ApplicationByDNSLabel(_ context.Context, in applicationapi.DNSLabel) (applicationapi.Application, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	for _, a := range p.d.hosted.applications {
		if a.DNSLabel == strings.ToLower(in.Label) {
			return a, nil
		}
	}
	return applicationapi.Application{}, apierr.NotFound
}

func (p application) LoginStores(_ context.Context, in applicationapi.Where) (applicationapi.LoginStores, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	out := applicationapi.LoginStores{Status: directoryapi.Enabled, Default: id.ID{1}}
	if in.NameKey == "" {
		return out, nil
	}
	refusal, known := p.d.hosted.organizations[in.NameKey]
	if !known {
		refusal = apierr.Reference
	}
	out.Organization, out.NameKey = id.ID{2}, in.NameKey
	return out, refusal
}

func (p application) account(tenant id.ID, email string) (directoryapi.Account, bool) {
	for _, a := range p.d.hosted.accounts {
		if a.TenantID == tenant && strings.EqualFold(a.Email, email) {
			return a, true
		}
	}
	return directoryapi.Account{}, false
}

func (p application) Login(_ context.Context, in applicationapi.Login) (applicationapi.LoggedIn, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	a, ok := p.account(in.Tenant, in.Login)
	switch {
	case !ok:
		return applicationapi.LoggedIn{}, apierr.NoSuchAccount.Because("no such account")
	case in.Password != Password:
		return applicationapi.LoggedIn{}, apierr.WrongPassword.Because("the password is wrong")
	case a.Status != directoryapi.Enabled:
		return applicationapi.LoggedIn{}, apierr.BadRequest
	}
	return applicationapi.LoggedIn{Account: a}, nil
}

func (p application) Admit(_ context.Context, in applicationapi.Admit) (applicationapi.LoggedIn, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	a := p.d.hosted.accounts[in.Account]
	if a.TenantID != in.Tenant || a.Status != directoryapi.Enabled {
		return applicationapi.LoggedIn{}, apierr.BadRequest
	}
	return applicationapi.LoggedIn{Account: a}, nil
}

func (p application) Register(_ context.Context, in applicationapi.Register) (directoryapi.Account, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if _, taken := p.account(in.Tenant, in.Account.Email.Or("")); taken {
		return directoryapi.Account{}, apierr.Exists
	}
	a := directoryapi.Account{TenantID: in.Tenant, ID: id.ID{byte(len(p.d.hosted.accounts) + 100)}, Email: in.Account.Email.Or(""),
		Status: directoryapi.Enabled}
	p.d.hosted.accounts[a.ID] = a
	return a, nil
}

func (p application) RequestReset(_ context.Context, in applicationapi.LoginName) (directoryapi.Empty, error) {
	return p.mail(in)
}

func (p application) RequestVerification(_ context.Context, in applicationapi.LoginName) (directoryapi.Empty, error) {
	return p.mail(in)
}

func (p application) mail(in applicationapi.LoginName) (directoryapi.Empty, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.d.hosted.mails = append(p.d.hosted.mails, in.Login)
	if _, known := p.account(in.Tenant, in.Login); !known {
		return directoryapi.Empty{}, apierr.NoSuchResource
	}
	return directoryapi.Empty{}, nil
}

func (p application) CheckReset(context.Context, applicationapi.ResetToken) (directoryapi.PasswordReset, error) {
	return directoryapi.PasswordReset{}, apierr.NotFound
}

func (p application) ResetPassword(context.Context, applicationapi.ResetPassword) (directoryapi.PasswordReset, error) {
	return directoryapi.PasswordReset{}, apierr.NotFound
}

func (p directory) Account(_ context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	a, ok := p.d.hosted.accounts[in.ID]
	if !ok || a.TenantID != in.Tenant {
		return directoryapi.Account{}, apierr.NotFound
	}
	return a, nil
}

func (p directory) Profile(ctx context.Context, in directoryapi.ProfileRequest) (directoryapi.Profile, error) {
	a, err := p.Account(ctx, in.Ref)
	return directoryapi.Profile{Account: a}, err
}

func (p directory) RegistrationRules(_ context.Context, in directoryapi.Ref) (directoryapi.RegistrationRules, error) {
	rules := directoryapi.RegistrationRules{Directory: "Customers", MinLength: 8, MaxLength: 100, VerificationEmail: true, ResetEmail: true}
	if in.ID == linkDirectory {
		rules.MinNumeric, rules.MinLowerCase = 1, 2
	}
	return rules, nil
}

func (directory) LoginDirectories(context.Context, directoryapi.LoginDirectories) (directoryapi.LoginDirectoryList, error) {
	return directoryapi.LoginDirectoryList{}, nil
}

func (p mfa) FactorsOf(_ context.Context, in id.Ref) (mfaapi.AccountFactors, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	return mfaapi.AccountFactors{Items: slices.Clone(p.d.hosted.factors[in.ID])}, nil
}

// EnrollFactor and the challenges answer States as the mfa service does those that
// it did not make.
func (p mfa) EnrollFactor(context.Context, mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	return mfaapi.EnrolledFactor{}, apierr.Reference
}

func (p mfa) ChallengeFactor(_ context.Context, in mfaapi.ChallengeFactor) (mfaapi.Challenged, error) {
	if in.State != "" || in.Account.IsZero() {
		return mfaapi.Challenged{}, apierr.Reference
	}
	return mfaapi.Challenged{ID: id.ID{3}, Factor: in.Factor, Account: in.Account, Status: status(in.Code)}, nil
}

func (p mfa) AnswerFactor(_ context.Context, in mfaapi.AnswerFactor) (mfaapi.Challenged, error) {
	return mfaapi.Challenged{}, apierr.NotFound
}

// Code passes every challenge.
const Code = "123456"

func status(code string) string {
	switch code {
	case "":
		return "CREATED"
	case Code:
		return "SUCCESS"
	}
	return "FAILED"
}
