package idsite

import (
	"errors"
	"net/url"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

// What a client learns of a login that is refused (docs/interface/oauth.md#authorize).
func TestARefusalAtTheCallbackOfAClient(t *testing.T) {
	state := "a b&c"
	for _, c := range []struct {
		what, code, description string
		cause                   error
	}{
		{"a provider that refuses", "access_denied", "Google error message: 401 Unauthorized",
			apierr.ProviderRefused.Because("Google error message: 401 Unauthorized")},
		{"a user without an email", "access_denied", "no email", apierr.ProviderIncomplete.Because("no email")},
		{"a token of another client", "access_denied", "another client", apierr.ProviderOtherClient.Because("another client")},
		{"a disabled account", "access_denied", apierr.AccountDisabled.Message, apierr.AccountDisabled.Because("the account is disabled")},
		{"an email that is taken", "access_denied", apierr.Exists.Message, apierr.Exists.Because("it is that of jo@example.test")},
		{"a directory that is not mapped", "invalid_request", "not mapped", apierr.NotMapped.Because("not mapped")},
		{"another response type", "unsupported_response_type", errResponseType.Reason, errResponseType},
		{"a service that is busy", "temporarily_unavailable", apierr.Unavailable.Message, apierr.Unavailable.Because("the queue is full")},
	} {
		to, err := errorCallback("https://shop.test/cb?x=1", &state, c.cause)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		at, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		got := at.Query()
		if got.Get("error") != c.code || got.Get("error_description") != c.description || got.Get("state") != state || got.Get("x") != "1" {
			t.Errorf("%s leads to %s", c.what, to)
		}
	}
	if to, err := errorCallback("https://shop.test/cb", nil, errors.New("no database")); err == nil {
		t.Errorf("a fault of the service leads to %s", to)
	}
	if to, _ := errorCallback("https://shop.test/cb", nil, apierr.NotMapped); to == "" || to[len("https://shop.test/cb")] != '?' {
		t.Errorf("without a state it leads to %s", to)
	}
}
