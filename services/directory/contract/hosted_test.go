package contract_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

func hostedLogins(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second := n.directory(t, "First"), n.directory(t, "Second")
	s.DisableDirectory(t, n.ref(second))

	t.Run("directories of a login are in the order of the request", func(t *testing.T) {
		found := must(s.API.LoginDirectories(t.Context(), directoryapi.LoginDirectories{
			Tenant: n.id, Directories: []id.ID{second, NewID(), first, other.administrators},
		}))(t)
		if len(found.Items) != 2 {
			t.Fatalf("the directories are %+v", found.Items)
		}
		for i, want := range []directoryapi.LoginDirectory{
			{ID: second, Name: "Second", Status: directoryapi.Disabled, ProviderID: directoryapi.Native},
			{ID: first, Name: "First", Status: directoryapi.Enabled, ProviderID: directoryapi.Native},
		} {
			got := found.Items[i]
			wantEqual(t, "the directory", got.ID, want.ID)
			wantEqual(t, "the name", got.Name, want.Name)
			wantEqual(t, "the status", got.Status, want.Status)
			wantEqual(t, "the provider", got.ProviderID, want.ProviderID)
		}
	})
	t.Run("the rules of a new directory", func(t *testing.T) {
		want := directoryapi.RegistrationRules{
			Directory: "First", MinLength: 8, MaxLength: 100, MinLowerCase: 1, MinUpperCase: 1, MinNumeric: 1, ResetEmail: true,
		}
		wantEqual(t, "the rules", must(s.API.RegistrationRules(t.Context(), n.ref(first)))(t), want)
		s.EnableVerification(t, n.ref(first))
		want.VerificationEmail = true
		wantEqual(t, "the rules with verification", must(s.API.RegistrationRules(t.Context(), n.ref(first)))(t), want)
		wantEqual(t, "a mirror", must(s.API.RegistrationRules(t.Context(), n.ref(s.Mirror(t, n.id))))(t).Mirror, true)
		wantError(s.API.RegistrationRules(t.Context(), other.ref(first)))(t, apierr.NotFound)
	})
}

func pendingSignUps(t *testing.T, s subject) {
	email := newEmail()
	in := directoryapi.RequestSignUp{Tenant: NewID(), Account: NewID(), Owner: directoryapi.NewAccount{
		Email: field.Some(email), GivenName: field.Some("Jo"), Surname: field.Some("Doe"), Password: field.Some(Password),
	}}
	begin := newSignUp()
	begin.Tenant, begin.Owner, begin.Email, begin.Password, begin.Pending = in.Tenant, in.Account, "", "", true

	t.Run("without an email or a good password none is kept", func(t *testing.T) {
		refused := in
		refused.Owner.Email = field.Text{}
		wantError(s.API.RequestSignUp(t.Context(), refused))(t, apierr.Required)
		refused = in
		refused.Owner.Password = field.Some("short")
		wantError(s.API.RequestSignUp(t.Context(), refused))(t, apierr.TooShort)
		wantError(s.API.SignUp(t.Context(), begin))(t, apierr.NotFound)
	})
	must(s.API.RequestSignUp(t.Context(), in))(t)
	token := directoryapi.SignUpToken{Token: s.Mailed(t, email)}
	t.Run("the mail's token leads to it", func(t *testing.T) {
		want := directoryapi.PendingSignUp{Tenant: in.Tenant, Account: in.Account, Email: email}
		wantEqual(t, "the sign-up", must(s.API.PendingSignUp(t.Context(), token))(t), want)
		wantError(s.API.AcceptInvitation(t.Context(),
			directoryapi.AcceptInvitation{Token: token.Token, Account: in.Owner}))(t, apierr.NotFound)
		wantError(s.API.PendingSignUp(t.Context(), directoryapi.SignUpToken{Token: "x"}))(t, apierr.NotFound)
	})
	t.Run("the tenant has its owner's email and password", func(t *testing.T) {
		made := must(s.API.SignUp(t.Context(), begin))(t)
		wantEqual(t, "the email", made.Owner.Email, email)
		wantEqual(t, "its status", made.Owner.EmailVerificationStatus, directoryapi.Verified)
		must(s.API.Authenticate(t.Context(), directoryapi.Authenticate{
			Tenant: in.Tenant, Stores: stores(begin.Directory), Login: email, Password: Password,
		}))(t)
		taken := newSignUp()
		taken.Key = begin.Key
		wantError(s.API.SignUp(t.Context(), taken))(t, apierr.Exists)
	})
	t.Run("a token ends once", func(t *testing.T) {
		wantOneSuccess(t, 8, apierr.NotFound, func(int) error {
			_, err := s.API.EndSignUp(t.Context(), token)
			return err
		})
		wantError(s.API.PendingSignUp(t.Context(), token))(t, apierr.NotFound)
	})
}

func invitations(t *testing.T, s subject) {
	n, email := newTenant(t, s), newEmail()
	s.Invite(t, n.id, email)
	in := directoryapi.AcceptInvitation{Token: s.Mailed(t, email), Account: directoryapi.NewAccount{
		Email: field.Some("other@example.test"), GivenName: field.Some("Jo"), Surname: field.Some("Doe"),
		Password: field.Some(Password),
	}}
	pending := must(s.API.PendingSignUp(t.Context(), directoryapi.SignUpToken{Token: in.Token}))(t)
	wantEqual(t, "an invitation", pending.Invitation, true)
	wantEqual(t, "the tenant", pending.Tenant, n.id)
	wantError(s.API.AcceptInvitation(t.Context(), in))(t, apierr.OtherInvitee)
	in.Account.Email, in.Account.Password = field.Some(strings.ToUpper(email)), field.Some("short")
	wantError(s.API.AcceptInvitation(t.Context(), in))(t, apierr.TooShort)
	in.Account.Password = field.Some(Password)
	made := must(s.API.AcceptInvitation(t.Context(), in))(t)
	wantEqual(t, "the directory", made.DirectoryID, n.administrators)
	wantEqual(t, "the email as it was entered", made.Email, strings.ToUpper(email))
	wantEqual(t, "the email's status", made.EmailVerificationStatus, directoryapi.Verified)
	wantError(s.API.AcceptInvitation(t.Context(), in))(t, apierr.NotFound)
}

// newEmail returns an email that no other test of the suite has.
func newEmail() string { return strings.ToLower(secure.Token(22).Reveal()) + "@example.test" }
