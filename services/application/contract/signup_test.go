package contract_test

import (
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

func signUps(t *testing.T, s subject) {
	n := newTenant(t, s)

	t.Run("the console is built in and lets the administrators in", func(t *testing.T) {
		console := n.made.Console
		equal(t, "the id", console.ID, n.signUp.Console)
		equal(t, "the tenant", console.TenantID, n.id)
		equal(t, "the name", console.Name, n.signUp.ConsoleName)
		equal(t, "the status", console.Status, directoryapi.Enabled)
		equal(t, "builtin", console.Builtin, true)
		equal(t, "the default account store", console.DefaultAccountStore, n.signUp.ConsoleMapping)
		equal(t, "the default group store", console.DefaultGroupStore, n.signUp.ConsoleMapping)
		equal(t, "who logs in", must(s.API.Login(t.Context(), n.login(console.ID, "owner@example.test")))(t).Account.ID,
			n.owner)
	})
	t.Run("My Application has a directory of its own", func(t *testing.T) {
		first := n.made.Application
		equal(t, "the id", first.ID, n.signUp.Application)
		equal(t, "the name", first.Name, "My Application")
		equal(t, "the status", first.Status, directoryapi.Enabled)
		equal(t, "builtin", first.Builtin, false)
		equal(t, "the default account store", first.DefaultAccountStore, n.signUp.ApplicationMapping)
		equal(t, "the default group store", first.DefaultGroupStore, n.signUp.ApplicationMapping)
		directory := must(s.Directories.Directory(t.Context(), n.ref(n.signUp.Directory)))(t)
		equal(t, "the directory's name", directory.Name, "My Application Directory")
		account := n.account(t, directory.ID, "jo@example.test", directoryapi.Enabled)
		equal(t, "who logs in", must(s.API.Login(t.Context(), n.login(first.ID, "jo@example.test")))(t).Account.ID, account)
	})
	t.Run("a repeated call returns what the first made", func(t *testing.T) {
		again := must(s.API.SignUp(t.Context(), n.signUp))(t)
		equal(t, "the console", again.Console.ID, n.made.Console.ID)
		equal(t, "the application", again.Application.ID, n.made.Application.ID)
		equal(t, "its web config", again.Application.WebConfigID, n.made.Application.WebConfigID)
	})
	t.Run("parallel calls make each once", func(t *testing.T) {
		n := tenant{subject: s, id: newID(), administrators: newID(), owner: newID()}
		in := n.signUpDirectory(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				made, err := s.API.SignUp(t.Context(), in)
				if err != nil || made.Application.ID != in.Application ||
					made.Application.DefaultAccountStore != in.ApplicationMapping {
					t.Errorf("one of the calls returned the application %v, %v", made.Application.ID, err)
				}
			})
		}
		all.Wait()
	})
	t.Run("a repeated call does not bring back what was deleted", func(t *testing.T) {
		n := newTenant(t, s)
		s.Delete(t, n.ref(n.signUp.Application))
		again := must(s.API.SignUp(t.Context(), n.signUp))(t)
		equal(t, "the console", again.Console.ID, n.signUp.Console)
		equal(t, "the application, as there is none", again.Application.ID.IsZero(), true)
		refuse(s.API.Application(t.Context(), n.ref(n.signUp.Application)))(t, apierr.NotFound)
	})
}
