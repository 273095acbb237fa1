package peertest

import (
	"context"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// WeakPassword is refused for the lack of a digit, and a shorter one for its
// length; any other is accepted.
const WeakPassword = "changeme"

// UsedPassword is refused because it was used before.
const UsedPassword = "Used-before1"

// Link makes a mailed link's token for an account, to verify its email or to
// set its password. It is asked for through an application, which may be zero.
func (d *Deployment) Link(email string, application applicationapi.Application) secure.Secret {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := secure.Token(22)
	d.links[token] = directoryapi.PasswordReset{Application: application.ID, Account: directoryapi.Account{
		TenantID: application.TenantID, DirectoryID: linkDirectory, Email: email, Username: email,
		EmailVerificationStatus: directoryapi.Unverified,
	}}
	return token
}

// linkDirectory is the directory of the accounts of links.
var linkDirectory = id.New(time.Unix(1, 0))

// Spent reports whether the token of a link was used.
func (d *Deployment) Spent(token secure.Secret) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, open := d.links[token]
	return !open
}

func (p directory) VerifyEmail(_ context.Context, in directoryapi.VerifyEmail) (directoryapi.Account, error) {
	link, err := p.link(in.Token)
	if err == nil {
		p.spend(in.Token)
	}
	return link.Account, err
}

func (p directory) Verification(_ context.Context, in directoryapi.VerifyEmail) (directoryapi.Account, error) {
	link, err := p.link(in.Token)
	return link.Account, err
}

func (p directory) Reset(_ context.Context, in directoryapi.ResetToken) (directoryapi.PasswordReset, error) {
	return p.link(in.Token)
}

func (p directory) ResetPassword(_ context.Context, in directoryapi.ResetPassword) (directoryapi.PasswordReset, error) {
	link, err := p.link(in.Token)
	switch {
	case err != nil:
		return link, err
	case strings.TrimSpace(in.Password.Value) == "":
		return link, apierr.Required
	case in.Password.Value == UsedPassword:
		return link, apierr.PasswordReused
	case len(in.Password.Value) < len(WeakPassword):
		return link, apierr.TooShort
	case in.Password.Value == WeakPassword:
		return link, WeakPasswordError
	}
	p.spend(in.Token)
	return link, nil
}

func (p directory) link(token secure.Secret) (directoryapi.PasswordReset, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	link, ok := p.d.links[token]
	if !ok {
		return link, apierr.NotFound
	}
	return link, nil
}

func (p directory) spend(token secure.Secret) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	delete(p.d.links, token)
}
