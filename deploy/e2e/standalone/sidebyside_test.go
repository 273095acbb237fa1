package standalone_test

import (
	"net/http"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

func TestTwoStandaloneProcessesRunSideBySide(t *testing.T) {
	one, first := start(t, "one")
	_, second := start(t, "two")
	if first.Key.BaseURL == second.Key.BaseURL || first.Key.ID == second.Key.ID {
		t.Fatalf("the two are one: %s and %s", first.Key.BaseURL, second.Key.BaseURL)
	}
	fixture := first.NewVerificationFixture(t)
	second.NewVerificationFixture(t)

	t.Run("neither knows the other's key, resources or mail", func(t *testing.T) {
		stranger := second.With(first.Key.ID, first.Key.Secret)
		stranger.Refused(t, http.StatusUnauthorized, 401, e2e.Request{Method: http.MethodGet, URL: "/tenants/current"})
		second.NotFound(t, "/applications/"+fixture.Application.ID())
		account := first.Register(t, fixture.Application.Link(t, "accounts"))
		first.AwaitMail(t, account.Text("email"))
		messages, err := second.Mailbox(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) != 0 {
			t.Errorf("the neighbour got %d messages", len(messages))
		}
	})
	t.Run("one can stop without the other", func(t *testing.T) {
		if err := one.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		second.Tenant(t)
		if err := one.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		first.Get(t, fixture.Application.Href())
	})
}
