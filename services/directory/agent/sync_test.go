package agent_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/agent"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/store"
)

// A directory server may send password hashes: then the password is compared
// here, and no agent is asked.
func TestASynchronizedPasswordHash(t *testing.T) {
	w := newWorld(t)
	at := w.agent(t)
	a, err := w.Agent(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	sync := func(surname, hash string) {
		t.Helper()
		account := agent.SyncAccount{
			ExternalID: field.Some("jo"), Email: field.Some("jo@corp.test"), Surname: field.Some(surname),
		}
		if hash != "" {
			account.PasswordHash = field.Some(hash)
		}
		if err := w.Sync(t.Context(), at, agent.Sync{Accounts: field.Some([]agent.SyncAccount{account})}); err != nil {
			t.Fatal(err)
		}
		// From here on the agent does not answer: only the hash can.
		if _, err := w.db.Pool.Exec(t.Context(), `UPDATE agents SET status = 'OFFLINE' WHERE tenant_id = $1`,
			w.tenant); err != nil {
			t.Fatal(err)
		}
	}
	login := func(what, password string, want error) {
		t.Helper()
		_, err := w.Authenticate(t.Context(),
			directoryapi.Authenticate{Tenant: w.tenant, Login: "jo@corp.test", Password: secure.Secret(password),
				Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: a.DirectoryID}}})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	// SHA-256 of "first" and of "second".
	const first = "$service2$SHA-256$1$$p5N7ZLjKpY8Dchu2us9ceMsjX+vg5wsbhM2ZVBRhoI4="
	const second = "$service2$SHA-256$1$$FjZ6rLZ6SgF8jairlWgsyzkIY3gPcRTdoKDgxVZEx8Q="
	sync("Doe", first)
	login("the password of the hash", "first", nil)
	login("the same, of which another hash is stored now", "first", nil)
	login("another password", "second", apierr.WrongPassword)
	sync("Dough", first)
	login("after another change", "first", nil)
	sync("Dough", second)
	login("the former password", "first", apierr.WrongPassword)
	login("the new password", "second", nil)
	sync("Dough", "{SSHA}unreadable")
	login("a hash that cannot be compared", "second", apierr.AgentUnreachable)
	sync("Dough", second)
	login("the hash again", "second", nil)
	sync("Dough", "")
	login("no hash any more", "second", apierr.AgentUnreachable)
}

// A member of the wrong type refuses its entry, also one that no external id names. What is no text
// refuses the page.
func TestAnEntryWithAMemberOfTheWrongTypeIsRefused(t *testing.T) {
	w := newWorld(t)
	at := w.agent(t)
	sync := func(body string) error {
		var in agent.Sync
		if err := field.Decode([]byte(body), &in, nil); err != nil {
			return err
		}
		return w.Sync(t.Context(), at, in)
	}
	for _, body := range []string{
		`{"accounts":[{"externalId":"off","email":"off@corp.test","disabled":true}]}`,
		`{"accounts":[{"externalId":"off","email":"off@corp.test","disabled":"perhaps"},{"externalId":"jo","email":"jo@corp.test"},
			{"externalId":"a","email":5},{"externalId":"b","email":"b@corp.test","passwordHash":[]},5,{"externalId":5,"username":"five"}],
			"groups":[{"externalId":5,"name":"five"},{"externalId":"c","name":{}},{"externalId":"d","name":"D","members":"jo"}],"complete":true}`,
	} {
		if err := sync(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.FinishSyncs(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := w.Refusals(t.Context(), at, list.First())
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, r := range page.Items {
		entry := r.ExternalID
		if r.Kind == agentstore.UnnamedAccount {
			entry = "the " + r.Kind + " " + r.Name
		}
		reasons[entry] = r.Reason
	}
	want := map[string]string{
		"off": "disabled must be true or false", "a": "email must be a string", "b": "passwordHash must be a string",
		"id:c": "name must be a string", "id:d": "members must be an array of strings",
		"name:five":                                  "externalId must be a string",
		"the " + agentstore.UnnamedAccount + " ":     "must be an object",
		"the " + agentstore.UnnamedAccount + " five": "externalId must be a string",
	}
	if !maps.Equal(reasons, want) {
		t.Errorf("refused are %v\nwant %v", reasons, want)
	}
	statuses, err := pg.Value[string](t.Context(),
		w.db, `SELECT string_agg(username || ' ' || status, ', ' ORDER BY username) FROM accounts
		WHERE tenant_id = $1 AND username LIKE '%@corp.test'`, w.tenant)
	if err != nil || statuses != "jo@corp.test ENABLED, off@corp.test DISABLED" {
		t.Errorf("the accounts are %s, %v", statuses, err)
	}
	for body, want := range map[string]error{
		`{"accounts":[5]}`: nil, `{"accounts":[null]}`: nil, `{"accounts":[{"email":5}]}`: nil,
		`{"accounts":[{"externalId":5}]}`: nil, `{"accounts":[{"externalId":"a\u0000","email":5}]}`: nil,
		`{"accounts":[{"externalId":"a\u0000"}]}`: nil, `{"groups":[{"name":"a\u0000"}]}`: nil,
		`{"groups":[{"name":"a","members":["\u0000"]}]}`: nil, `{"accounts":[{"externalId":"\ud800"}]}`: nil,
		`{"accounts":5}`: apierr.WrongType, `{"accounts":[{"mood":"good"}]}`: apierr.UnknownProperty,
	} {
		if err := sync(body); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
}

// A page of a sync reads its own rows and not the directory, also while PostgreSQL
// has no statistics of a directory that is being filled.
func TestTheLookUpsOfASyncReadTheirOwnRows(t *testing.T) {
	w := newWorld(t)
	at := w.agent(t)
	const size, asked = 2000, 100
	groups := make([]agent.SyncGroup, asked)
	ids, names := make([]string, asked), make([]string, asked)
	for i := range groups {
		names[i] = fmt.Sprintf("user%07d", i)
		ids[i], groups[i] = names[i], agent.SyncGroup{ExternalID: field.Some(names[i]), Name: field.Some(names[i])}
	}
	in := page(0, size)
	in.Groups = field.Some(groups)
	if err := w.Sync(t.Context(), at, in); err != nil {
		t.Fatal(err)
	}
	a, err := w.Agent(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(w.db, now)
	for what, look := range map[string]func(tx *store.Tx) (int, error){
		"mirrored accounts": func(tx *store.Tx) (int, error) {
			found, err := tx.MirroredAccounts(t.Context(), w.tenant, a.DirectoryID, ids)
			return len(found), err
		},
		"login names": func(tx *store.Tx) (int, error) {
			found, err := tx.LoginNames(t.Context(), w.tenant, a.DirectoryID, names)
			return len(found), err
		},
		"accounts of external ids": func(tx *store.Tx) (int, error) {
			found, err := tx.AccountsByExternalID(t.Context(), w.tenant, a.DirectoryID, ids)
			return len(found), err
		},
		"group names": func(tx *store.Tx) (int, error) {
			found, err := tx.GroupNames(t.Context(), w.tenant, a.DirectoryID, names)
			return len(found), err
		},
		"seen accounts": func(tx *store.Tx) (int, error) {
			return asked, tx.MarkAccountsSeen(t.Context(), w.tenant, a.DirectoryID, ids, 99)
		},
	} {
		t.Run(what, func(t *testing.T) {
			err := s.Tx(t.Context(), func(tx *store.Tx) error {
				// The plan that PostgreSQL keeps for every caller is the one that goes wrong.
				if _, err := pg.Exec(t.Context(), tx, `SET LOCAL plan_cache_mode = force_generic_plan`); err != nil {
					return err
				}
				before, err := rowsRead(t, tx)
				if err != nil {
					return err
				}
				if found, err := look(tx); err != nil || found != asked {
					return fmt.Errorf("found %d of %d: %w", found, asked, err)
				}
				after, err := rowsRead(t, tx)
				if read := after - before; err == nil && (read < asked || read > 3*asked) {
					t.Errorf("%d rows were read for %d", read, asked)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// rowsRead returns how many rows the connection of a transaction has read lately.
func rowsRead(t *testing.T, tx *store.Tx) (int64, error) {
	return pg.Value[int64](t.Context(),
		tx, `SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables
		WHERE relname IN ('accounts', 'mirrored_accounts', 'login_names', 'groups')`)
}
