package directoryfake

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// mailed counts mails by account and workflow.
type mailed struct {
	account  directoryapi.Ref
	workflow directoryapi.Workflow
}

// allowMail counts a mail that an anonymous caller requests, without an end of the window, and
// reports whether it is within the rate limit.
func (d *Service) allowMail(a *account, workflow directoryapi.Workflow) bool {
	of := mailed{directoryapi.Ref{Tenant: a.TenantID, ID: a.ID}, workflow}
	d.mails[of]++
	return d.mails[of] <= directoryapi.MaxAnonymousMails
}

// VerificationMails returns how many verification mails of an account were requested and sent.
func (d *Service) VerificationMails(account directoryapi.Ref) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sent[account]
}

// RequestVerification makes a token for an account, unless it has one.
func (d *Service) RequestVerification(_ context.Context, in directoryapi.RequestVerification) (directoryapi.RequestedMail, error) {
	return call(d, "RequestVerification", func() (out directoryapi.RequestedMail, err error) {
		a, _ := d.findLogin(in.Tenant, in.Stores, in.Login)
		switch {
		case a == nil:
			return out, apierr.NoSuchResource
		case !d.verifying[directoryapi.Ref{Tenant: in.Tenant, ID: a.DirectoryID}]:
			return out, apierr.VerificationDisabled
		case a.EmailVerificationStatus != directoryapi.Verified && (!in.Anonymous || d.allowMail(a, directoryapi.Verification)):
			d.sent[directoryapi.Ref{Tenant: in.Tenant, ID: a.ID}]++
			if a.VerificationToken == "" {
				a.VerificationToken = secure.Token(22)
			}
			a.verificationApplication, out.Sent = in.Application, true
		}
		return out, nil
	})
}

// VerifyEmail consumes the token of an account.
func (d *Service) VerifyEmail(_ context.Context, in directoryapi.VerifyEmail) (directoryapi.Account, error) {
	return call(d, "VerifyEmail", func() (directoryapi.Account, error) {
		for _, a := range d.accounts {
			if in.Token != "" && a.VerificationToken == in.Token && (in.Tenant.IsZero() || a.TenantID == in.Tenant) {
				a.setVerified()
				return a.Account, nil
			}
		}
		return directoryapi.Account{}, apierr.NotFound
	})
}

// setVerified marks the email as verified and ends the token.
func (a *account) setVerified() {
	a.endedVerification, a.VerificationToken, a.EmailVerificationStatus = a.VerificationToken, "", directoryapi.Verified
	if a.Status == directoryapi.Unverified {
		a.Status = directoryapi.Enabled
	}
}

// EndedLink returns what is known of a link that was used.
func (d *Service) EndedLink(_ context.Context, in directoryapi.EndedLink) (directoryapi.MailedLink, error) {
	return call(d, "EndedLink", func() (directoryapi.MailedLink, error) {
		if at, ok := d.endedResets[in.Token]; ok && in.Workflow == directoryapi.Reset {
			if a := d.findAccount(at.account.Tenant, at.account.ID); a != nil {
				return directoryapi.MailedLink{Tenant: a.TenantID, Account: a.Account, Application: at.application}, nil
			}
			return directoryapi.MailedLink{Tenant: at.account.Tenant}, nil
		}
		for _, a := range d.accounts {
			if in.Workflow == directoryapi.Verification && in.Token != "" && a.endedVerification == in.Token {
				return directoryapi.MailedLink{Tenant: a.TenantID, Account: a.Account, Application: a.verificationApplication}, nil
			}
		}
		return directoryapi.MailedLink{}, apierr.NotFound
	})
}

// Verification returns the account of a token.
func (d *Service) Verification(_ context.Context, in directoryapi.VerifyEmail) (directoryapi.MailedLink, error) {
	return call(d, "Verification", func() (directoryapi.MailedLink, error) {
		for _, a := range d.accounts {
			if in.Token != "" && a.VerificationToken == in.Token && (in.Tenant.IsZero() || a.TenantID == in.Tenant) {
				return directoryapi.MailedLink{Tenant: a.TenantID, Account: a.Account, Application: a.verificationApplication}, nil
			}
		}
		return directoryapi.MailedLink{}, apierr.NotFound
	})
}

// RemindOfAccount makes the token of the mail that the account would get.
func (d *Service) RemindOfAccount(ctx context.Context, in directoryapi.RequestReset) (directoryapi.Empty, error) {
	a, err := call(d, "RemindOfAccount", func() (*account, error) {
		a, _ := d.findLogin(in.Tenant, in.Stores, in.Login)
		if a == nil {
			return nil, apierr.NoSuchResource
		}
		return a, nil
	})
	if err != nil {
		return directoryapi.Empty{}, err
	}
	if a.Status == directoryapi.Unverified {
		_, err := d.RequestVerification(ctx, directoryapi.RequestVerification(in))
		return directoryapi.Empty{}, err
	}
	_, err = d.RequestReset(ctx, in)
	return directoryapi.Empty{}, err
}

// RequestReset makes a token of the form that they have.
func (d *Service) RequestReset(_ context.Context, in directoryapi.RequestReset) (directoryapi.PasswordReset, error) {
	return call(d, "RequestReset", func() (directoryapi.PasswordReset, error) {
		a, _ := d.findLogin(in.Tenant, in.Stores, in.Login)
		if a == nil {
			return directoryapi.PasswordReset{}, apierr.NoSuchResource
		}
		if in.Anonymous && !d.allowMail(a, directoryapi.Reset) {
			return directoryapi.PasswordReset{Account: a.Account}, nil
		}
		header := map[string]any{"tid": in.Tenant.String(), "stt": "assertion"}
		token, err := secure.SignJWT(header, secure.Claims{"exp": d.now().Unix() + 24*3600, "jti": secure.Token(22).Reveal()}, "a key")
		d.resets[secure.Secret(token)] = reset{directoryapi.Ref{Tenant: in.Tenant, ID: a.ID}, in.Application, in.Anonymous}
		return directoryapi.PasswordReset{Token: secure.Secret(token), Account: a.Account, Application: in.Application}, err
	})
}

// Reset returns the reset of a token.
func (d *Service) Reset(_ context.Context, in directoryapi.ResetToken) (directoryapi.PasswordReset, error) {
	return call(d, "Reset", func() (directoryapi.PasswordReset, error) {
		out, _, err := d.openReset(in)
		return out, err
	})
}

// reset is a password reset of an account.
type reset struct {
	account     directoryapi.Ref
	application id.ID // through which it was asked for
	mailed      bool  // and shown to nobody else
}

func (d *Service) openReset(in directoryapi.ResetToken) (directoryapi.PasswordReset, *account, error) {
	token := secure.Secret(strings.NewReplacer("%252E", ".", "%252e", ".", "%2E", ".", "%2e", ".").Replace(in.Token.Reveal()))
	at, ok := d.resets[token]
	a := d.findAccount(at.account.Tenant, at.account.ID)
	if !ok || (at.account.Tenant != in.Tenant && !in.Tenant.IsZero()) || a == nil {
		return directoryapi.PasswordReset{}, nil, apierr.NotFound
	}
	return directoryapi.PasswordReset{Token: token, Account: a.Account, Application: at.application}, a, nil
}

// ResetPassword sets a password and forgets the resets of its account.
func (d *Service) ResetPassword(_ context.Context, in directoryapi.ResetPassword) (directoryapi.PasswordReset, error) {
	return call(d, "ResetPassword", func() (directoryapi.PasswordReset, error) {
		out, a, err := d.openReset(in.ResetToken)
		if err != nil {
			return directoryapi.PasswordReset{}, err
		}
		password, err := validatePassword(in.Password)
		if err != nil {
			return directoryapi.PasswordReset{}, err
		}
		if !hasVerifiedEmail(a) {
			d.links = slices.DeleteFunc(d.links, func(l link) bool { return l.provisioned && l.ends[1] == a.ID })
		}
		if d.resets[out.Token].mailed {
			a.EmailVerificationStatus = directoryapi.Verified
			if a.Status == directoryapi.Unverified {
				a.Status = directoryapi.Enabled
			}
		}
		now := d.now()
		a.password, a.PasswordModifiedAt, a.ModifiedAt = password, &now, now
		d.Changes.Append(directoryapi.Ref{Tenant: a.TenantID, ID: a.ID})
		for other, at := range d.resets {
			if at.account.ID == a.ID {
				d.endedResets[other] = at
				delete(d.resets, other)
			}
		}
		out.Account = a.Account
		return out, nil
	})
}
