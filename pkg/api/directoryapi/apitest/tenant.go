package apitest

import (
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

func signUps(t *testing.T, s Subject) {
	in := newSignUp()
	made := must(s.API.SignUp(t.Context(), in))(t)

	t.Run("a tenant has the key as its name", func(t *testing.T) {
		equal(t, "the id", made.Tenant.ID, in.Tenant)
		equal(t, "the key", made.Tenant.Key, in.Key)
		equal(t, "the name", made.Tenant.Name, in.Key)
	})
	t.Run("the administrators directory is built in", func(t *testing.T) {
		equal(t, "the id", made.Directory.ID, in.Directory)
		equal(t, "the name", made.Directory.Name, in.DirectoryName)
		equal(t, "the status", made.Directory.Status, directoryapi.Enabled)
		equal(t, "builtin", made.Directory.Builtin, true)
	})
	t.Run("the owner is enabled and can log in", func(t *testing.T) {
		equal(t, "the id", made.Owner.ID, in.Owner)
		equal(t, "the email", made.Owner.Email, in.Email)
		equal(t, "the status", made.Owner.Status, directoryapi.Enabled)
		equal(t, "owner", made.Owner.Owner, true)
		account := must(s.API.Authenticate(t.Context(), directoryapi.Authenticate{
			Tenant: in.Tenant, Stores: stores(in.Directory), Login: in.Email, Password: in.Password,
		}))(t)
		equal(t, "who logged in", account.Account.ID, in.Owner)
	})
	t.Run("the owner is found by the tenant", func(t *testing.T) {
		owner := must(s.API.Owner(t.Context(), directoryapi.Ref{Tenant: in.Tenant, ID: in.Tenant}))(t)
		equal(t, "the owner", owner.ID, in.Owner)
		equal(t, "the email", owner.Email, in.Email)
		refuse(s.API.Owner(t.Context(), directoryapi.Ref{Tenant: NewID(), ID: in.Tenant}))(t, apierr.NotFound)
		unknown := NewID()
		refuse(s.API.Owner(t.Context(), directoryapi.Ref{Tenant: unknown, ID: unknown}))(t, apierr.NotFound)
	})
	t.Run("a tenant is found by itself alone", func(t *testing.T) {
		equal(t, "the tenant", must(s.API.Tenant(t.Context(), directoryapi.Ref{Tenant: in.Tenant, ID: in.Tenant}))(t), made.Tenant)
		refuse(s.API.Tenant(t.Context(), directoryapi.Ref{Tenant: NewID(), ID: in.Tenant}))(t, apierr.NotFound)
		unknown := NewID()
		refuse(s.API.Tenant(t.Context(), directoryapi.Ref{Tenant: unknown, ID: unknown}))(t, apierr.NotFound)
	})
	t.Run("a repeated call returns what the first made", func(t *testing.T) {
		again := must(s.API.SignUp(t.Context(), in))(t)
		equal(t, "the tenant", again.Tenant, made.Tenant)
		equal(t, "the directory", again.Directory.ID, made.Directory.ID)
		equal(t, "the owner", again.Owner.ID, made.Owner.ID)
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
			refuse(s.API.Authenticate(t.Context(), directoryapi.Authenticate{
				Tenant: in.Tenant, Stores: stores(in.Directory), Login: in.Email, Password: secret(password),
			}))(t, apierr.WrongPassword)
		}
	})
}
