package openid_test

import (
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func TestRefreshTokens(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{})
	login := func(p *party) openid.Tokens { return p.token(p.redeem(p.code(nil))) }
	grace := 10 * time.Second

	t.Run("each refresh gives another token", func(t *testing.T) {
		first := login(p)
		second := p.token(p.refresh(first.RefreshToken))
		if second.RefreshToken == "" || second.RefreshToken == first.RefreshToken || second.IDToken == "" {
			t.Errorf("the answer is %+v", second)
		}
		again := p.token(p.refresh(first.RefreshToken)) // a client that lost the answer
		d.Clock.Move(grace)
		third := p.token(p.refresh(again.RefreshToken))
		if !p.active(third.RefreshToken) {
			t.Error("the chain of the pair that was refreshed first has ended")
		}
		d.Clock.Move(grace)
		p.refuse("the other pair after the grace", "invalid_grant", p.refresh(second.RefreshToken))
		if p.active(third.RefreshToken) || p.active(third.AccessToken) {
			t.Error("the family is still valid after a token was used again")
		}
	})
	t.Run("a used token ends its family after the grace", func(t *testing.T) {
		first := login(p)
		second := p.token(p.refresh(first.RefreshToken))
		d.Clock.Move(grace)
		p.refuse("a used token", "invalid_grant", p.refresh(first.RefreshToken))
		p.refuse("the token after it", "invalid_grant", p.refresh(second.RefreshToken))
		if p.active(second.AccessToken) || p.active(first.AccessToken) {
			t.Error("access tokens of an ended family are active")
		}
	})
	t.Run("fifty at once leave one chain", func(t *testing.T) {
		first := login(p)
		var wait sync.WaitGroup
		var mu sync.Mutex
		var given []string
		for range 50 {
			wait.Go(func() {
				tokens, err := d.Service.OpenID.Token(t.Context(), p.refresh(first.RefreshToken))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				given = append(given, tokens.RefreshToken)
			})
		}
		wait.Wait()
		d.Clock.Move(grace)
		next := p.token(p.refresh(given[0]))
		d.Clock.Move(grace)
		p.refuse("a second chain", "invalid_grant", p.refresh(given[1]))
		p.refuse("the first chain then", "invalid_grant", p.refresh(next.RefreshToken))
	})
	t.Run("scopes are narrowed, not widened", func(t *testing.T) {
		first := login(p)
		in := p.refresh(first.RefreshToken)
		in.Form["scope"] = "openid email"
		if second := p.token(in); second.Scope != "email openid" {
			t.Errorf("the scope is %q", second.Scope)
		}
		in.Form["scope"] = "openid groups"
		p.refuse("a wider scope", "invalid_scope", in)
	})
	t.Run("a token is of its client", func(t *testing.T) {
		first := login(p)
		other := newParty(t, d, d.Site, relyingparty.Change{})
		other.refuse("a refresh token of another client", "invalid_grant", other.refresh(first.RefreshToken))
		if other.active(first.RefreshToken) || other.active(first.AccessToken) {
			t.Error("another client sees the tokens as active")
		}
		if err := d.Service.OpenID.Revoke(t.Context(), other.call("/revoke", "token", first.RefreshToken)); err != nil {
			t.Error(err)
		}
		p.token(p.refresh(first.RefreshToken))
		if err := d.Service.OpenID.Revoke(t.Context(), p.call("/revoke", "token", first.RefreshToken)); err != nil {
			t.Error(err)
		}
		p.refuse("a revoked token", "invalid_grant", p.refresh(first.RefreshToken))
		if p.active(first.AccessToken) {
			t.Error("the access token of a revoked family is active")
		}
	})
	t.Run("KEEP", func(t *testing.T) {
		k := newParty(t, d, d.Site, relyingparty.Change{RefreshTokenRotation: field.Some("KEEP")})
		first := login(k)
		for range 2 {
			if next := k.token(k.refresh(first.RefreshToken)); next.RefreshToken != first.RefreshToken {
				t.Errorf("the refresh token is %q, want the same", next.RefreshToken)
			}
			d.Clock.Move(29 * 24 * time.Hour)
		}
		d.Clock.Move(24 * time.Hour)
		k.refuse("a token that was not used for long", "invalid_grant", k.refresh(first.RefreshToken))
	})
	t.Run("a web client asks for it", func(t *testing.T) {
		code := p.code(func(in *oauthapi.IssueCode) { in.Scopes = []string{"openid"} })
		if issued := p.token(p.redeem(code)); issued.RefreshToken != "" {
			t.Errorf("without offline_access there is the refresh token %q", issued.RefreshToken)
		}
	})
	t.Run("a new password ends it", func(t *testing.T) {
		first := login(p)
		d.Clock.Move(time.Second)
		d.Directories.Change(t, id.Ref{Tenant: d.Tenant, ID: d.Site.Account},
			directoryapi.NewAccount{Password: field.Some("Changeme2!")})
		d.Clock.Move(time.Second)
		p.refuse("a token from before the new password", "invalid_grant", p.refresh(first.RefreshToken))
		if p.active(first.AccessToken) {
			t.Error("an access token from before the new password is active")
		}
	})
}
