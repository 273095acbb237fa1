package rest

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

func TestTheSpanOfARequestHasNoToken(t *testing.T) {
	one := id.New(time.Now()).String()
	for _, c := range []struct{ path, route, want string }{
		{"/v1/accounts/" + one, "/v1/accounts/:id", "/v1/accounts/" + one},
		{"/v1/accounts/jo@example.test", "/v1/accounts/:id", "/v1/accounts/:id"},
		{"/v1/applications/" + one + "/passwordResetTokens/" + one, "/v1/applications/:id/passwordResetTokens/:token",
			"/v1/applications/" + one + "/passwordResetTokens/:token"},
		{"/v1/accounts/emailVerificationTokens/eyJhbGciOi", "/v1/accounts/emailVerificationTokens/:token",
			"/v1/accounts/emailVerificationTokens/:token"},
		{"/a/secret/b", "/a/*", "/a/*"},
		{"/secret", "none", "none"},
	} {
		if got := withoutTokens(c.path, c.route); got != c.want {
			t.Errorf("%s of %s becomes %s, want %s", c.path, c.route, got, c.want)
		}
	}
}
