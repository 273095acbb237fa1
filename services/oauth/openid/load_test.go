package openid_test

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/telemetry/metrictest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

// rotationTokens is how many tokens TestKeysRotateUnderLoad issues: `make proof-rotation` has 10,000.
func rotationTokens(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ROTATION_TOKENS")
	if text == "" {
		return 100
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// While tokens are issued by two replicas their key changes: each is accepted by the other replica.
func TestKeysRotateUnderLoad(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, service("Nightly"))
	replicas := []*oauth.Service{d.Replica(t), d.Replica(t)}
	key, err := d.Service.CreateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Tenant},
		signing.NewSigningKey{Algorithm: field.Some("RS256")})
	if err != nil {
		t.Fatal(err)
	}
	next, err := id.Parse(key.ID)
	if err != nil {
		t.Fatal(err)
	}
	d.Clock.Move(signing.KeySetMaxAge)
	total := rotationTokens(t)
	var issued atomic.Int64
	var kids sync.Map
	rotate := sync.OnceValue(func() error {
		_, err := d.Service.UpdateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: next},
			signing.KeyChange{Status: field.Some(store.KeyActive)}, false)
		return err
	})
	began := time.Now()
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			here, there := replicas[worker%2], replicas[(worker+1)%2]
			for n := issued.Add(1); n <= int64(total); n = issued.Add(1) {
				if n == int64(total)/2 {
					if err := rotate(); err != nil {
						t.Error(err)
					}
				}
				tokens, err := here.OpenID.Token(t.Context(), p.call("/token", "grant_type", "client_credentials"))
				if err != nil {
					t.Error(err)
					return
				}
				found, err := there.Introspect(t.Context(), p.call("/introspect", "token", tokens.AccessToken))
				if err != nil || found["active"] != true {
					t.Errorf("the token %d is answered with %v, %v", n, found, err)
					return
				}
				header, _ := p.claims(tokens.AccessToken)
				kids.Store(header["kid"], true)
			}
		})
	}
	wait.Wait()
	seen := 0
	kids.Range(func(any, any) bool { seen++; return true })
	if seen != 2 {
		t.Errorf("the tokens were signed by %d keys, want 2", seen)
	}
	t.Logf("%d tokens in %s", total, time.Since(began).Round(time.Millisecond))
}

// A refresh token that comes a hundred times at once, at two replicas, has one chain beyond the grace.
func TestAStormOfRefreshesOverReplicas(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{ApplicationType: field.Some("native"),
		TokenEndpointAuthMethod: field.Some("client_secret_basic")})
	replicas := []*oauth.Service{d.Replica(t), d.Replica(t)}
	first := p.token(p.redeem(p.code(nil)))
	var mu sync.Mutex
	var given []string
	var wait sync.WaitGroup
	for n := range 100 {
		wait.Go(func() {
			tokens, err := replicas[n%2].OpenID.Token(t.Context(), p.refresh(first.RefreshToken))
			if err != nil {
				if !errors.Is(err, apierr.BadRequest) {
					t.Errorf("a refresh is answered with %v", err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			given = append(given, tokens.RefreshToken)
		})
	}
	wait.Wait()
	if len(given) == 0 {
		t.Fatal("no refresh was answered")
	}
	d.Clock.Move(time.Minute)
	chain := p.token(p.refresh(given[0])).RefreshToken
	chain = p.token(p.refresh(chain)).RefreshToken
	if !p.active(chain) {
		t.Error("the chain that was refreshed first does not live")
	}
	for _, other := range given[1:] {
		if p.active(other) {
			t.Error("beyond the grace a second chain lives")
		}
	}
}

func TestPushedAndDeviceRequestsAreCounted(t *testing.T) {
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{GrantTypes: field.Some([]string{relyingparty.GrantDevice,
		relyingparty.GrantCode})})
	count := func(grant, result string) (n int64) {
		t.Helper()
		found, err := metrictest.Find(t.Context(), "doorward_oauth_grants_total")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
				ofGrant, _ := point.Attributes.Value("grant")
				ofResult, _ := point.Attributes.Value("result")
				if ofGrant.AsString() == grant && ofResult.AsString() == result {
					n += point.Value
				}
			}
		}
		return n
	}
	for grant, ask := range map[string]func(pairs ...string) error{
		"openid pushed_authorization_request": func(pairs ...string) error {
			_, err := d.Service.Push(t.Context(), p.call("/par", append(pairs, "redirect_uri", callback, "response_type", "code",
				"scope", "openid", "code_challenge_method", "S256", "code_challenge",
				"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")...))
			return err
		},
		"openid device_authorization": func(pairs ...string) error {
			_, err := d.Service.AuthorizeDevice(t.Context(), p.call("/device_authorization", pairs...))
			return err
		},
	} {
		issued, refused := count(grant, "issued"), count(grant, "refused")
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if err := ask("resource", "https://unknown.test"); err == nil {
			t.Errorf("%s for an unknown resource is answered", grant)
		}
		if a, b := count(grant, "issued")-issued, count(grant, "refused")-refused; a < 1 || b < 1 {
			t.Errorf("%s was counted as issued %d and refused %d times", grant, a, b)
		}
	}
}
