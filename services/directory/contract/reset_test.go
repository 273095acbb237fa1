package contract_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// reset creates a reset token for a login in those directories.
func (n tenant) reset(t *testing.T, login string, in ...id.ID) secure.Secret {
	t.Helper()
	return must(n.API.RequestReset(t.Context(),
		directoryapi.RequestReset{Tenant: n.id, Stores: stores(in...), Login: login}))(t).Token
}

func (n tenant) token(token secure.Secret) directoryapi.ResetToken {
	return directoryapi.ResetToken{Tenant: n.id, Token: token}
}

func (n tenant) spend(token secure.Secret, password string) directoryapi.ResetPassword {
	return directoryapi.ResetPassword{ResetToken: n.token(token), Password: field.Some(password)}
}

// login logs in with a password.
func (n tenant) login(t *testing.T, login, password string, in ...id.ID) error {
	t.Helper()
	_, err := n.API.Authenticate(t.Context(), directoryapi.Authenticate{Tenant: n.id, Stores: stores(in...), Login: login,
		Password: secret(password)})
	return err
}

func resets(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second := n.directory(t, "First"), n.directory(t, "Second")
	jo := n.account(t, first, "jo@example.test",
		func(in *directoryapi.CreateAccount) { in.Account.Username = field.Some("Jo") })
	otherJo := n.account(t, second, "jo@example.test")

	for _, c := range []struct {
		what, login string
		in          []id.ID
		who         id.ID
		want        error
	}{
		{"by email, in any case", "JO@example.test", []id.ID{first}, jo.ID, nil},
		{"by user name", "jo", []id.ID{second, first}, jo.ID, nil},
		{"the first store decides", "jo@example.test", []id.ID{second, first}, otherJo.ID, nil},
		{"an unknown login", "nobody@example.test", []id.ID{first, second}, id.ID{}, apierr.NoSuchResource},
		{"a login that no account can have", "jo\x00", []id.ID{first}, id.ID{}, apierr.NoSuchResource},
		{"no store", "jo@example.test", nil, id.ID{}, apierr.NoSuchResource},
		{"another tenant's store", "owner@example.test", []id.ID{other.administrators}, id.ID{}, apierr.NoSuchResource},
	} {
		t.Run(c.what, func(t *testing.T) {
			made, err := s.API.RequestReset(t.Context(),
				directoryapi.RequestReset{Tenant: n.id, Stores: stores(c.in...), Login: c.login})
			wantError(made, err)(t, c.want)
			wantEqual(t, "whose", made.Account.ID, c.who)
			if c.want == nil {
				wantEqual(t, "the token's parts", strings.Count(made.Token.Reveal(), "."), 2)
				wantEqual(t, "whose, read", must(s.API.Reset(t.Context(), n.token(made.Token)))(t).Account.ID, c.who)
			}
		})
	}
	t.Run("a token is read with its dots encoded or not", func(t *testing.T) {
		token := n.reset(t, "jo", first)
		for _, dot := range []string{".", "%2E", "%2e", "%252E", "%252e"} {
			read := must(s.API.Reset(t.Context(), n.token(secret(strings.ReplaceAll(token.Reveal(), ".", dot)))))(t)
			wantEqual(t, "whose", read.Account.ID, jo.ID)
			wantEqual(t, "the token", read.Token.Reveal(), token.Reveal())
		}
	})
	t.Run("a token that is none", func(t *testing.T) {
		for _, token := range []string{"", "x", "..", "a.b.c", n.reset(t, "jo", first).Reveal() + "x"} {
			wantError(s.API.Reset(t.Context(), n.token(secret(token))))(t, apierr.NotFound)
			wantError(s.API.ResetPassword(t.Context(), n.spend(secret(token), "Different1!")))(t, apierr.NotFound)
		}
	})
	t.Run("a token alone names its tenant", func(t *testing.T) {
		token := directoryapi.ResetToken{Token: n.reset(t, "jo", first)}
		wantEqual(t, "whose", must(s.API.Reset(t.Context(), token))(t).Account.ID, jo.ID)
		wantEqual(t, "whose, spent", must(s.API.ResetPassword(t.Context(),
			directoryapi.ResetPassword{ResetToken: token, Password: field.Some(Password)}))(t).Account.ID, jo.ID)
		wantError(s.API.Reset(t.Context(), token))(t, apierr.NotFound)
	})
	t.Run("another tenant's token", func(t *testing.T) {
		token := n.reset(t, "jo", first)
		other.reset(t, "owner@example.test", other.administrators)
		wantError(s.API.Reset(t.Context(), other.token(token)))(t, apierr.NotFound)
		wantError(s.API.ResetPassword(t.Context(), other.spend(token, "Different1!")))(t, apierr.NotFound)
		wantError(0, n.login(t, "jo", Password, first))(t, nil)
	})
	t.Run("a refused password spends nothing", func(t *testing.T) {
		token := n.reset(t, "jo", first)
		wantError(s.API.ResetPassword(t.Context(), n.spend(token, "Short1")))(t, apierr.TooShort)
		wantError(s.API.ResetPassword(t.Context(), directoryapi.ResetPassword{ResetToken: n.token(token)}))(t,
			apierr.Required)
		wantError(0, n.login(t, "jo", Password, first))(t, nil)
		must(s.API.Reset(t.Context(), n.token(token)))(t)
	})
	t.Run("of parallel tries one sets the password", func(t *testing.T) {
		earlier, token := n.reset(t, "jo", first), n.reset(t, "jo", first)
		must(s.API.Reset(t.Context(), n.token(earlier)))(t) // the later one leaves it
		wantOneSuccess(t, 50, apierr.NotFound, func(int) error {
			spent, err := s.API.ResetPassword(t.Context(), n.spend(token, "Different1!"))
			if err == nil {
				wantEqual(t, "whose", spent.Account.ID, jo.ID)
			}
			return err
		})
		wantError(0, n.login(t, "jo", Password, first))(t, apierr.WrongPassword)
		wantError(0, n.login(t, "jo", "Different1!", first))(t, nil)
		wantError(0, n.login(t, "jo@example.test", Password, second))(t, nil)
		t.Run("and spends the account's other tokens", func(t *testing.T) {
			wantError(s.API.Reset(t.Context(), n.token(earlier)))(t, apierr.NotFound)
			wantError(s.API.ResetPassword(t.Context(), n.spend(earlier, "Different2!")))(t, apierr.NotFound)
		})
	})
	t.Run("of parallel tries of two tokens one sets the password", func(t *testing.T) {
		tokens := []secure.Secret{n.reset(t, "jo", first), n.reset(t, "jo", first)}
		wantOneSuccess(t, 10, apierr.NotFound, func(i int) error {
			_, err := s.API.ResetPassword(t.Context(), n.spend(tokens[i%2], "Different3!"))
			return err
		})
	})
	t.Run("anonymous callers ask for few", func(t *testing.T) {
		n.account(t, first, "asked@example.test")
		in := directoryapi.RequestReset{Tenant: n.id, Stores: stores(first), Login: "asked@example.test", Anonymous: true}
		for i := range directoryapi.MaxAnonymousMails + 3 {
			made := must(s.API.RequestReset(t.Context(), in))(t)
			wantEqual(t, "whether there is a token", made.Token != "", i < directoryapi.MaxAnonymousMails)
		}
		must(s.API.Reset(t.Context(), n.token(n.reset(t, in.Login, first))))(t)
	})
	t.Run("a token that was mailed and never shown verifies the email", func(t *testing.T) {
		for email, anonymous := range map[string]bool{"mailed@example.test": true, "shown@example.test": false} {
			a := n.account(t, first, email, status("UNVERIFIED"))
			reset := must(s.API.RequestReset(t.Context(), directoryapi.RequestReset{
				Tenant: n.id, Stores: stores(first), Login: email, Anonymous: anonymous,
			}))(t)
			spent := must(s.API.ResetPassword(t.Context(), n.spend(reset.Token, "Different1!")))(t).Account
			read := must(s.API.Account(t.Context(), n.ref(a.ID)))(t)
			want := directoryapi.Unverified
			if anonymous {
				want = directoryapi.Enabled
			}
			wantEqual(t, "the status of "+email, spent.Status+" "+read.Status, want+" "+want)
			wantEqual(t, "whether "+email+" is verified", read.EmailVerificationStatus == directoryapi.Verified, anonymous)
		}
	})
	t.Run("a used link leads to its account", func(t *testing.T) {
		application, ended := NewID(), n.account(t, first, "ended@example.test")
		made := must(s.API.RequestReset(t.Context(), directoryapi.RequestReset{
			Tenant: n.id, Application: application, Stores: stores(first), Login: ended.Email,
		}))(t)
		must(s.API.ResetPassword(t.Context(), n.spend(made.Token, "Different1!")))(t)
		link := must(s.API.EndedLink(t.Context(), directoryapi.EndedLink{Workflow: directoryapi.Reset, Token: made.Token}))(t)
		wantEqual(t, "the tenant", link.Tenant, n.id)
		wantEqual(t, "the account", link.Account.ID, ended.ID)
		wantEqual(t, "the application", link.Application, application)
		wantError(s.API.EndedLink(t.Context(), directoryapi.EndedLink{Workflow: directoryapi.Reset, Token: "x"}))(t,
			apierr.NotFound)
		otherWorkflow := directoryapi.EndedLink{Workflow: directoryapi.Verification, Token: made.Token}
		wantError(s.API.EndedLink(t.Context(), otherWorkflow))(t, apierr.NotFound)
	})
	t.Run("the status stays", func(t *testing.T) {
		idle := n.account(t, first, "idle@example.test", status("DISABLED"))
		spent := must(s.API.ResetPassword(t.Context(), n.spend(n.reset(t, idle.Email, first), "Different1!")))(t)
		wantEqual(t, "the status", spent.Account.Status, directoryapi.Disabled)
		wantError(0, n.login(t, idle.Email, "Different1!", first))(t, apierr.AccountDisabled)
	})
}

func verifications(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	open, asking := n.directory(t, "Open"), n.directory(t, "Asking")
	s.EnableVerification(t, n.ref(asking))
	jo := n.account(t, asking, "jo@example.test")
	n.account(t, open, "sam@example.test")
	ask := func(login string, in ...id.ID) directoryapi.RequestVerification {
		return directoryapi.RequestVerification{Tenant: n.id, Stores: stores(in...), Login: login}
	}

	t.Run("another mail has the same token", func(t *testing.T) {
		must(s.API.RequestVerification(t.Context(), ask("JO@example.test", open, asking)))(t)
		wantEqual(t, "the token", must(s.API.Account(t.Context(), n.ref(jo.ID)))(t).VerificationToken, jo.VerificationToken)
	})
	t.Run("a registration with the email of an unverified account sends its token again", func(t *testing.T) {
		again := directoryapi.RequestReset{Tenant: n.id, Stores: stores(asking), Login: "jo@example.test", Anonymous: true}
		must(s.API.RemindOfAccount(t.Context(), again))(t)
		wantEqual(t, "the token", must(s.API.Account(t.Context(), n.ref(jo.ID)))(t).VerificationToken, jo.VerificationToken)
		again.Login = "nobody@example.test"
		wantError(s.API.RemindOfAccount(t.Context(), again))(t, apierr.NoSuchResource)
	})
	t.Run("where the workflow is off", func(t *testing.T) {
		wantError(s.API.RequestVerification(t.Context(), ask("sam@example.test", open, asking)))(t,
			apierr.VerificationDisabled)
	})
	t.Run("of parallel tries one proves the email", func(t *testing.T) {
		token := must(s.API.Account(t.Context(), n.ref(jo.ID)))(t).VerificationToken
		wantError(s.API.VerifyEmail(t.Context(), directoryapi.VerifyEmail{Tenant: other.id, Token: token}))(t,
			apierr.NotFound)
		wantError(s.API.VerifyEmail(t.Context(), directoryapi.VerifyEmail{Token: token + "x"}))(t, apierr.NotFound)
		wantError(s.API.VerifyEmail(t.Context(), directoryapi.VerifyEmail{}))(t, apierr.NotFound)
		open := func(in directoryapi.VerifyEmail) error { // spends nothing
			_, err := s.API.Verification(t.Context(), in)
			return err
		}
		for range 2 {
			wantEqual(t, "whose", must(s.API.Verification(t.Context(), directoryapi.VerifyEmail{Token: token}))(t).Account.ID,
				jo.ID)
			wantEqual(t, "whose",
				must(s.API.Verification(t.Context(), directoryapi.VerifyEmail{Tenant: n.id, Token: token}))(t).Account.ID, jo.ID)
		}
		defer func() {
			for _, in := range []directoryapi.VerifyEmail{
				{Token: token}, {Tenant: other.id, Token: token}, {Token: token + "x"}, {},
			} {
				if err := open(in); !errors.Is(err, apierr.NotFound) {
					t.Errorf("a token that verifies nothing returns %v", err)
				}
			}
		}()
		wantOneSuccess(t, 50, apierr.NotFound, func(i int) error {
			in := directoryapi.VerifyEmail{Token: token}
			if i%2 == 0 {
				in.Tenant = n.id
			}
			proved, err := s.API.VerifyEmail(t.Context(), in)
			if err == nil {
				wantEqual(t, "whose", proved.ID, jo.ID)
				wantEqual(t, "the email", proved.EmailVerificationStatus, directoryapi.Verified)
				wantEqual(t, "the status", proved.Status, directoryapi.Enabled)
			}
			return err
		})
	})
	t.Run("a used link leads to its account", func(t *testing.T) {
		application := NewID()
		ended := n.account(t, asking, "ended@example.test",
			func(in *directoryapi.CreateAccount) { in.Application = application })
		token := directoryapi.VerifyEmail{Token: ended.VerificationToken}
		wantEqual(t, "the application", must(s.API.Verification(t.Context(), token))(t).Application, application)
		must(s.API.VerifyEmail(t.Context(), token))(t)
		link := must(s.API.EndedLink(t.Context(),
			directoryapi.EndedLink{Workflow: directoryapi.Verification, Token: token.Token}))(t)
		wantEqual(t, "the tenant", link.Tenant, n.id)
		wantEqual(t, "the account", link.Account.ID, ended.ID)
		wantEqual(t, "the application", link.Application, application)
		wantError(s.API.EndedLink(t.Context(), directoryapi.EndedLink{Workflow: directoryapi.Verification, Token: "x"}))(t,
			apierr.NotFound)
		wantError(s.API.EndedLink(t.Context(), directoryapi.EndedLink{Workflow: directoryapi.Verification}))(t,
			apierr.NotFound)
	})
	t.Run("the answer says whether a mail is sent", func(t *testing.T) {
		in := ask(n.account(t, asking, "al@example.test").Email, asking)
		in.Anonymous = true
		for i := range directoryapi.MaxAnonymousMails + 3 {
			wantEqual(t, "whether a mail is sent", must(s.API.RequestVerification(t.Context(), in))(t).Sent,
				i < directoryapi.MaxAnonymousMails)
		}
		in.Anonymous = false
		wantEqual(t, "whether the tenant sends one", must(s.API.RequestVerification(t.Context(), in))(t).Sent, true)
	})
	t.Run("an unknown login", func(t *testing.T) {
		wantError(s.API.RequestVerification(t.Context(), ask("nobody@example.test", open, asking)))(t, apierr.NoSuchResource)
		wantError(s.API.RequestVerification(t.Context(), ask("jo@example.test", open)))(t, apierr.NoSuchResource)
		wantError(s.API.RequestVerification(t.Context(), ask("jo\x00", asking)))(t, apierr.NoSuchResource)
		wantError(s.API.RequestVerification(t.Context(), ask("jo@example.test")))(t, apierr.NoSuchResource)
		wantError(s.API.RequestVerification(t.Context(), ask("owner@example.test", other.administrators)))(t,
			apierr.NoSuchResource)
	})
}
