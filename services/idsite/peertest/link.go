package peertest

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// WeakPassword is refused for the lack of a digit, and a shorter one for its
// length; any other is accepted.
const WeakPassword = "changeme"

// Link makes a mailed link's token for an account, to verify its email or to
// set its password.
func (d *Deployment) Link(email string) secure.Secret {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := secure.Token(22)
	d.links[token] = directoryapi.Account{Email: email, Username: email, EmailVerificationStatus: directoryapi.Unverified}
	return token
}

// Spent reports whether the token of a link was used.
func (d *Deployment) Spent(token secure.Secret) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, open := d.links[token]
	return !open
}

func (p directory) VerifyEmail(_ context.Context, in directoryapi.VerifyEmail) (directoryapi.Account, error) {
	account, err := p.link(in.Token)
	if err == nil {
		p.spend(in.Token)
	}
	return account, err
}

func (p directory) Reset(_ context.Context, in directoryapi.ResetToken) (directoryapi.PasswordReset, error) {
	account, err := p.link(in.Token)
	return directoryapi.PasswordReset{Token: in.Token, Account: account}, err
}

func (p directory) ResetPassword(_ context.Context, in directoryapi.ResetPassword) (directoryapi.PasswordReset, error) {
	account, err := p.link(in.Token)
	switch {
	case err != nil:
		return directoryapi.PasswordReset{}, err
	case len(in.Password.Value) < len(WeakPassword):
		return directoryapi.PasswordReset{}, apierr.TooShort
	case in.Password.Value == WeakPassword:
		return directoryapi.PasswordReset{}, WeakPasswordError
	}
	p.spend(in.Token)
	return directoryapi.PasswordReset{Token: in.Token, Account: account}, nil
}

func (p directory) link(token secure.Secret) (directoryapi.Account, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	account, ok := p.d.links[token]
	if !ok {
		return account, apierr.NotFound
	}
	return account, nil
}

func (p directory) spend(token secure.Secret) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	delete(p.d.links, token)
}
