package oauth_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func TestAMasterKeyCanBeReplacedAndThenDropped(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	next := secure.NewMasterKey("k2")
	good := func(master secure.Secret) error {
		_, err := d.WithMasterKey(t, master).Authenticate(t.Context(), oauthapi.Authenticate{ID: d.Key, Secret: d.Secret})
		return err
	}
	if good(next) == nil {
		t.Fatal("the secret opens under a master key that it was not sealed under")
	}
	both := next + "," + d.Master
	if err := good(both); err != nil {
		t.Fatal(err)
	}
	ring, err := secure.ParseKeyring(both)
	if err != nil {
		t.Fatal(err)
	}
	stop := worktest.Start(t, reseal.Worker(d.DB, ring, oauth.Sealed...))
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for good(next) != nil {
		select {
		case <-deadline.C:
			t.Fatal("the secret was not sealed again")
		default:
		}
	}
	stop()
}
