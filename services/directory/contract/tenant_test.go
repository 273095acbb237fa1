package contract_test

import (
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

func signUps(t *testing.T, s subject) {
	in := newSignUp()
	made := must(s.API.SignUp(t.Context(), in))(t)

	t.Run("a tenant has the key as its name", func(t *testing.T) {
		wantEqual(t, "the id", made.Tenant.ID, in.Tenant)
		wantEqual(t, "the key", made.Tenant.Key, in.Key)
		wantEqual(t, "the name", made.Tenant.Name, in.Key)
	})
	t.Run("the administrators directory is built in", func(t *testing.T) {
		wantEqual(t, "the id", made.Directory.ID, in.Directory)
		wantEqual(t, "the name", made.Directory.Name, in.DirectoryName)
		wantEqual(t, "the status", made.Directory.Status, directoryapi.Enabled)
		wantEqual(t, "builtin", made.Directory.Builtin, true)
	})
	t.Run("the owner is enabled and can log in", func(t *testing.T) {
		wantEqual(t, "the id", made.Owner.ID, in.Owner)
		wantEqual(t, "the email", made.Owner.Email, in.Email)
		wantEqual(t, "the status", made.Owner.Status, directoryapi.Enabled)
		wantEqual(t, "owner", made.Owner.Owner, true)
		account := must(s.API.Authenticate(t.Context(), directoryapi.Authenticate{
			Tenant: in.Tenant, Stores: stores(in.Directory), Login: in.Email, Password: in.Password,
		}))(t)
		wantEqual(t, "who logged in", account.Account.ID, in.Owner)
	})
	t.Run("the owner is found by the tenant", func(t *testing.T) {
		owner := must(s.API.Owner(t.Context(), directoryapi.Ref{Tenant: in.Tenant, ID: in.Tenant}))(t)
		wantEqual(t, "the owner", owner.ID, in.Owner)
		wantEqual(t, "the email", owner.Email, in.Email)
		wantError(s.API.Owner(t.Context(), directoryapi.Ref{Tenant: NewID(), ID: in.Tenant}))(t, apierr.NotFound)
		unknown := NewID()
		wantError(s.API.Owner(t.Context(), directoryapi.Ref{Tenant: unknown, ID: unknown}))(t, apierr.NotFound)
	})
	t.Run("a tenant is found by itself alone", func(t *testing.T) {
		wantEqual(t, "the tenant", must(s.API.Tenant(t.Context(), directoryapi.Ref{Tenant: in.Tenant, ID: in.Tenant}))(t),
			made.Tenant)
		wantError(s.API.Tenant(t.Context(), directoryapi.Ref{Tenant: NewID(), ID: in.Tenant}))(t, apierr.NotFound)
		unknown := NewID()
		wantError(s.API.Tenant(t.Context(), directoryapi.Ref{Tenant: unknown, ID: unknown}))(t, apierr.NotFound)
	})
	t.Run("a repeated call returns what the first made", func(t *testing.T) {
		again := must(s.API.SignUp(t.Context(), in))(t)
		wantEqual(t, "the tenant", again.Tenant, made.Tenant)
		wantEqual(t, "the directory", again.Directory.ID, made.Directory.ID)
		wantEqual(t, "the owner", again.Owner.ID, made.Owner.ID)
	})
	t.Run("parallel calls make one tenant", func(t *testing.T) {
		in := newSignUp()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				made, err := s.API.SignUp(t.Context(), in)
				if err != nil || made.Owner.ID != in.Owner {
					t.Errorf("one of the calls returned the owner %v, %v", made.Owner.ID, err)
				}
			})
		}
		all.Wait()
	})
	t.Run("without a password nobody can log in", func(t *testing.T) {
		in := newSignUp()
		in.Password = ""
		must(s.API.SignUp(t.Context(), in))(t)
		for _, password := range []string{"", Password} {
			wantError(s.API.Authenticate(t.Context(), directoryapi.Authenticate{
				Tenant: in.Tenant, Stores: stores(in.Directory), Login: in.Email, Password: secret(password),
			}))(t, apierr.WrongPassword)
		}
	})
}
