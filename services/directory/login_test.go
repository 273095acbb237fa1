package directory_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory"
)

// What one process disables, every other refuses at once, however many it
// answers at that moment.
func TestAStandingEndsInAllProcessesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	other := open(t, w.db, cheap)
	access := func() error {
		_, err := other.CheckAccess(t.Context(), directoryapi.CheckAccess{
			Tenant: w.tenant, Account: w.account.ID,
			Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: w.directory}},
		})
		return err
	}
	ended, end := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for ended.Err() == nil {
				err := access()
				if err != nil && !errors.Is(err, apierr.TokenAccountDisabled) && !errors.Is(err, apierr.TokenStoreDisabled) {
					t.Error(err)
				}
			}
		})
	}
	account := func(status string) error {
		_, err := w.UpdateAccount(t.Context(), id.Ref{Tenant: w.tenant, ID: w.account.ID},
			directoryapi.NewAccount{Status: field.Some(status)})
		return err
	}
	store := func(status string) error {
		_, err := w.UpdateDirectory(t.Context(), id.Ref{Tenant: w.tenant, ID: w.directory},
			directory.NewDirectory{Status: field.Some(status)})
		return err
	}
	for range 25 {
		for _, step := range []struct {
			name   string
			change func(status string) error
			status string
			want   error
		}{
			{"the account", account, directoryapi.Disabled, apierr.TokenAccountDisabled},
			{"the account", account, directoryapi.Enabled, nil},
			{"the directory", store, directoryapi.Disabled, apierr.TokenStoreDisabled},
			{"the directory", store, directoryapi.Enabled, nil},
		} {
			if err := step.change(step.status); err != nil {
				t.Error(err)
			}
			if err := access(); !errors.Is(err, step.want) {
				t.Errorf("after %s became %s: %v", step.name, step.status, err)
			}
		}
	}
	end()
	clients.Wait()
}
