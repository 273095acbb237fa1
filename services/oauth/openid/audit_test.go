package openid_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/telemetry/telemetrytest"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// It changes the log of the process, so that it does not run beside others.
func TestARefreshTokenThatIsUsedAgainIsAudited(t *testing.T) {
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{})
	first := p.token(p.redeem(p.code(nil)))
	p.token(p.refresh(first.RefreshToken))
	log := telemetrytest.NewLog(t)
	p.token(p.refresh(first.RefreshToken)) // within the grace
	if found := log.Audited(t, "tokenReuse"); found != nil {
		t.Errorf("a refresh within the grace is audited as %v", found)
	}
	d.Clock.Move(time.Minute)
	p.refuse("a used token", "invalid_grant", p.refresh(first.RefreshToken))
	want := []map[string]any{{"tenant": d.Tenant.String(), "application": d.Site.Application.String(),
		"openIdClient": p.OpenIDClient.ID.String(), "account": d.Account.String()}}
	if found := log.Audited(t, "tokenReuse"); !reflect.DeepEqual(found, want) {
		t.Errorf("audited is %v, want %v", found, want)
	}
}
