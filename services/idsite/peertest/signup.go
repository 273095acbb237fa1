package peertest

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// WeakPasswordError is what a sign-up with WeakPassword is refused with.
var WeakPasswordError = func() *apierr.Error {
	lacks := *apierr.BadRequest
	lacks.Message = "The password needs a digit."
	return &lacks
}()

// SignUps returns the tokens of the mails of sign-ups, by email.
func (d *Deployment) SignUps() map[string]secure.Secret {
	d.mu.Lock()
	defer d.mu.Unlock()
	tokens := map[string]secure.Secret{}
	for token, pending := range d.signUps {
		tokens[pending.Email] = token
	}
	return tokens
}

// Invite makes the token of an invitation to a tenant.
func (d *Deployment) Invite(email string) secure.Secret {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := secure.Token(43)
	d.signUps[token] = directoryapi.PendingSignUp{Email: email, Invitation: true}
	return token
}

func (p directory) RequestSignUp(_ context.Context, in directoryapi.RequestSignUp) (directoryapi.Empty, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	switch {
	case in.Owner.Email.Or("") == "":
		return directoryapi.Empty{}, apierr.Required
	case in.Owner.Password.Or("") == WeakPassword:
		return directoryapi.Empty{}, WeakPasswordError
	case in.Owner.Email.Value == "busy@example.test":
		return directoryapi.Empty{}, apierr.TooMany
	}
	p.d.signUps[secure.Token(43)] = directoryapi.PendingSignUp{Tenant: in.Tenant, Account: in.Account, Email: in.Owner.Email.Value}
	return directoryapi.Empty{}, nil
}

func (p directory) PendingSignUp(_ context.Context, in directoryapi.SignUpToken) (directoryapi.PendingSignUp, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	pending, ok := p.d.signUps[in.Token]
	if !ok {
		return pending, apierr.NotFound
	}
	return pending, nil
}

func (p directory) EndSignUp(_ context.Context, in directoryapi.SignUpToken) (directoryapi.Empty, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if _, ok := p.d.signUps[in.Token]; !ok {
		return directoryapi.Empty{}, apierr.NotFound
	}
	delete(p.d.signUps, in.Token)
	return directoryapi.Empty{}, nil
}

func (p directory) AcceptInvitation(_ context.Context, in directoryapi.AcceptInvitation) (directoryapi.Account, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	pending, ok := p.d.signUps[in.Token]
	switch {
	case !ok:
		return directoryapi.Account{}, apierr.NotFound
	case field.Fold(pending.Email) != field.Fold(in.Account.Email.Or("")):
		return directoryapi.Account{}, apierr.OtherInvitee
	}
	delete(p.d.signUps, in.Token)
	return directoryapi.Account{Email: pending.Email}, nil
}
