package journey

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// RequestReset sends a password reset mail (forgot password). Its answer and its time are the same whether the
// account exists or not (enumeration.go).
func (j *Journey) RequestReset(ctx context.Context, where applicationapi.LoginTarget, login string) error {
	return hideAccountExistence(ctx, func() error {
		_, err := j.peers.Application.RequestReset(ctx, applicationapi.LoginName{LoginTarget: where, Login: login})
		return err
	})
}

// CheckReset returns an error unless a password reset token is valid in its application.
func (j *Journey) CheckReset(ctx context.Context, in applicationapi.ResetToken) error {
	_, err := j.peers.Application.CheckReset(ctx, in)
	return err
}

// ResetPassword sets a new password with a password reset token, which it consumes.
func (j *Journey) ResetPassword(ctx context.Context, in applicationapi.ResetToken, password secure.Secret) error {
	_, err := j.peers.Application.ResetPassword(ctx, applicationapi.ResetPassword{ResetToken: in, Password: password})
	return err
}

// ResetPasswordInLogin is ResetPassword at the pages of a login. It returns ErrEnded for another token than the
// first valid one of the login: a login sets one password. A password that is refused can be tried again with the
// same token.
func (j *Journey) ResetPasswordInLogin(ctx context.Context, f store.Flow, in applicationapi.ResetToken, password secure.Secret) error {
	if err := j.CheckReset(ctx, in); err != nil {
		return err
	}
	if err := j.change(ctx, func(tx *store.Tx) error { return tx.ClaimReset(ctx, f, secure.Digest(in.Token)) }); err != nil {
		return err
	}
	return j.ResetPassword(ctx, in, password)
}
