package idsite_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
)

// registers registers a user on a hosted page.
func (l *login) registers(t *testing.T, in directoryapi.NewAccount) (idsite.PageResult, error) {
	t.Helper()
	page := l.open(t, pageOf(t, l.begin(t, nil, idsite.BrowserRequest{}).Location))
	in.Password = field.Some(idsitetest.Password.Reveal())
	ctx := caller.Into(t.Context(), caller.Caller{AcceptLanguage: "de-CH, en;q=0.8"})
	return page.Register(ctx, "applications", l.app.ID, in, directoryapi.StoreName{})
}

// Where emails are verified nobody learns from a registration who has an account: the mail tells its owner.
func TestARegistrationWithATakenEmailLooksLikeAnyOther(t *testing.T) {
	l := newLogin(t)
	l.peers.Directories.EnableVerification(t, id.Ref{Tenant: l.tenant.ID, ID: l.user.DirectoryID})
	for _, c := range []struct {
		who             string
		email, username string
		mails           int
		taken           bool
	}{
		{"a new user", "new@example.test", "", 0, false},
		{"an email that has an account", l.user.Email, "", 1, false},
		{"an email that waits for its verification", "new@example.test", "", 1, false},
		{"a user name that is another's email", "other@example.test", l.user.Email, 1, false},
		{"a user name that is taken", "third@example.test", "jo", 0, true},
	} {
		if c.taken {
			l.peers.Directories.Change(t, l.userRef(), directoryapi.NewAccount{Username: field.Some("jo")})
		}
		in := directoryapi.NewAccount{Email: field.Some(c.email)}
		if c.username != "" {
			in.Username = field.Some(c.username)
		}
		before := l.peers.Directories.Calls("RemindOfAccount")
		answer, err := l.registers(t, in)
		if c.taken != errors.Is(err, apierr.Exists) || answer.Pending == c.taken || answer.Redirect != "" {
			t.Errorf("%s is answered %+v, %v", c.who, answer, err)
		}
		if c.taken {
			continue
		}
		if mails := l.peers.Directories.Calls("RemindOfAccount") - before; mails < c.mails || c.mails == 0 && mails > 0 {
			t.Errorf("%s asks for %d mails, want %d", c.who, mails, c.mails)
		}
	}
}

// The language of the page is that of the new account, unless it says another.
func TestTheLanguageOfThePageIsThatOfANewAccount(t *testing.T) {
	l := newLogin(t)
	for chosen, want := range map[string]string{"": "de", "fr-CA": "fr-CA"} {
		in := directoryapi.NewAccount{Email: field.Some("new" + chosen + "@example.test")}
		if chosen != "" {
			in.Locale = field.Some(chosen)
		}
		answer, err := l.registers(t, in)
		if err != nil || answer.Created == nil || answer.Created.Locale == nil || *answer.Created.Locale != want {
			t.Errorf("a registration with the locale %q is answered %+v, %v; want %s", chosen, answer.Created, err, want)
		}
	}
}
