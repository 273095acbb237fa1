package agent_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/agent"
)

// A directory server of one company states the address of another: its entry is left out, and an
// account from before the restriction does not log in.
func TestADirectoryServerSpeaksForItsDomainsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.agent(t)
	a, err := w.Agent(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	const first = "$service2$SHA-256$1$$p5N7ZLjKpY8Dchu2us9ceMsjX+vg5wsbhM2ZVBRhoI4=" // of "first"
	sync := func(external, email string) {
		t.Helper()
		if err := w.Sync(t.Context(), at, agent.Sync{Accounts: field.Some([]agent.SyncAccount{{
			ExternalID: field.Some(external), Email: field.Some(email), PasswordHash: field.Some(first),
		}})}); err != nil {
			t.Fatal(err)
		}
	}
	login := func(email string, want error) {
		t.Helper()
		_, err := w.Authenticate(t.Context(),
			directoryapi.Authenticate{Tenant: w.tenant, Login: email, Password: secure.Secret("first"),
				Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: a.DirectoryID}}})
		if !errors.Is(err, want) {
			t.Errorf("the login of %s returned %v, want %v", email, err, want)
		}
	}
	sync("early", "early@cloud.test")
	login("early@cloud.test", nil)
	_, err = w.UpdateCreationPolicy(t.Context(), id.Ref{Tenant: w.tenant, ID: a.DirectoryID},
		directory.CreationPolicyChange{
			EmailDomainWhitelist: field.Some([]string{"corp.test"}),
		})
	if err != nil {
		t.Fatal(err)
	}
	login("early@cloud.test", apierr.OutsideDomains)
	explained, err := w.ExplainLogin(t.Context(), directoryapi.ExplainLogin{Tenant: w.tenant, Login: "early@cloud.test",
		Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: a.DirectoryID}}})
	if err != nil || !errors.Is(explained.Refusal, apierr.OutsideDomains) {
		t.Errorf("the explanation is %v, %v", explained.Refusal, err)
	}
	sync("jo", "jo@corp.test")
	login("jo@corp.test", nil)
	sync("boss", "boss@cloud.test")
	login("boss@cloud.test", apierr.NoSuchAccount)
	sync("jo", "boss@cloud.test")
	login("boss@cloud.test", apierr.NoSuchAccount)
	login("jo@corp.test", nil)
}
