package oauth_test

import (
	"net"
	"testing"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/oauthapi/apitest"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func TestContract(t *testing.T) {
	t.Run("in process", func(t *testing.T) {
		apitest.Run(t, func(t *testing.T) apitest.Surroundings {
			d := oauthtest.Open(t)
			return around(t, d, d.Service)
		})
	})
	t.Run("over HTTP", func(t *testing.T) {
		apitest.Run(t, func(t *testing.T) apitest.Surroundings {
			d := oauthtest.Open(t)
			return around(t, d, overHTTP(t, d))
		})
	})
}

// overHTTP returns the contract over HTTP.
func overHTTP(t *testing.T, d *oauthtest.Deployment) oauthapi.Contract {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- d.HTTP.Listener(listener) }()
	t.Cleanup(func() {
		if err := d.HTTP.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	upstream, err := rpc.NewUpstream("oauth", []string{"http://" + listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	return oauthapi.Client(rpc.Peer{Upstream: upstream, Signer: d.Signer})
}

func around(t *testing.T, d *oauthtest.Deployment, api oauthapi.Contract) apitest.Surroundings {
	return apitest.Surroundings{
		API: api, Tenant: d.Tenant, Administrators: d.Administrators, Administrator: d.Administrator, EndUser: d.Account,
		Application: d.Application, Login: oauthtest.Login, Password: oauthtest.Password,
		SetStatus: func(resource id.ID, status string) { d.SetStatus(d.Tenant, resource, status) },
		SetKeyStatus: func(key, status string) {
			if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, key, oauth.APIKeyChange{Status: field.Some(status)}); err != nil {
				t.Fatal(err)
			}
		},
		Now: d.Clock.Now, Wait: d.Clock.Move,
		Delete: func(resource id.ID) { d.Delete(d.Tenant, resource) },
		Fail: func(away bool) {
			if away {
				d.Fail(apierr.Unavailable)
				return
			}
			d.Fail(nil)
		},
	}
}
