package contract_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// defaultStore is a default account store, and another directory whose accounts log in.
type defaultStore struct {
	tenant
	away, directory id.ID
	store           directoryapi.Store
	logins          int
}

func newDefaultStore(t *testing.T, s subject) *defaultStore {
	t.Helper()
	n := newTenant(t, s)
	h := &defaultStore{tenant: n, away: n.directory(t, "Away"), directory: n.directory(t, "Home")}
	h.store = directoryapi.Store{Kind: directoryapi.Directories, ID: h.directory}
	return h
}

// email returns an email that no account has yet.
func (h *defaultStore) email() string {
	h.logins++
	return fmt.Sprintf("jo%d@example.test", h.logins)
}

// verified creates an account with a verified email.
func (h *defaultStore) verified(
	t *testing.T, directory id.ID, email string, with ...func(*directoryapi.CreateAccount),
) directoryapi.Account {
	t.Helper()
	a := h.account(t, directory, email, with...)
	h.MarkVerified(t, h.ref(a.ID))
	return a
}

// request is a login for which a policy allows links by email and provisioning, or not.
func (h *defaultStore) request(account id.ID, byEmail, provision bool) directoryapi.LinkedAccountRequest {
	return directoryapi.LinkedAccountRequest{
		Tenant: h.id, Account: account, Store: h.store, ByEmail: byEmail, Provision: provision,
	}
}

// loginOf lets an account log in.
func (h *defaultStore) loginOf(t *testing.T, account id.ID, byEmail, provision bool) directoryapi.LinkedAccount {
	t.Helper()
	return must(h.API.LinkedAccount(t.Context(), h.request(account, byEmail, provision)))(t)
}

// wantOutcome wants a login to end with an outcome and an account.
func wantOutcome(t *testing.T, got directoryapi.LinkedAccount, outcome directoryapi.LinkOutcome, who id.ID) {
	t.Helper()
	wantEqual(t, "the outcome", got.Outcome, outcome)
	wantEqual(t, "who logs in", got.Account.ID, who)
	if got.Reason == "" {
		t.Error("the decision has no reason")
	}
}

// accountsOfStore returns the number of accounts of the default store.
func (h *defaultStore) accountsOfStore(t *testing.T) int {
	t.Helper()
	return must(h.API.ListAccounts(t.Context(),
		directoryapi.ListAccounts{Tenant: h.id, Stores: []directoryapi.Store{h.store},
			Query: list.First()}))(t).Size
}

func linkedAccounts(t *testing.T, s subject) {
	t.Run("the table of outcomes", func(t *testing.T) { outcomes(t, s) })
	t.Run("emails are matched where both are verified", func(t *testing.T) { verifiedMatches(t, s) })
	t.Run("what a copy takes", func(t *testing.T) { provisionedCopies(t, s) })
	t.Run("links that are there", func(t *testing.T) { followedLinks(t, s) })
	t.Run("a default store that is a group", func(t *testing.T) { groupDefaultStores(t, s) })
	t.Run("the account that logs in must be allowed to", func(t *testing.T) { accountsThatMayNotLogIn(t, s) })
	t.Run("what prevents a link lets the account log in as itself", func(t *testing.T) { excludedLinks(t, s) })
	t.Run("a password reset ends the links of an unproved copy", func(t *testing.T) { resetCopies(t, s) })
	t.Run("parallel first logins", func(t *testing.T) { parallelFirstLogins(t, s) })
	t.Run("tenants", func(t *testing.T) { otherTenantsDefaultStores(t, s) })
}

// outcomes is the table of docs/interface/account-linking.md#outcome-at-login, row by row: each as
// a dry run, as the first login, and as the next login.
func outcomes(t *testing.T, s subject) {
	h := newDefaultStore(t, s)
	for _, c := range []struct {
		provision, byEmail, resident bool
		want                         directoryapi.LinkOutcome
		again                        directoryapi.LinkOutcome // of the next login
	}{
		{false, false, false, directoryapi.Unchanged, directoryapi.Unchanged},
		{false, false, true, directoryapi.Unchanged, directoryapi.Unchanged},
		{false, true, false, directoryapi.Unchanged, directoryapi.Unchanged},
		{false, true, true, directoryapi.Linked, directoryapi.Followed},
		{true, false, false, directoryapi.Provisioned, directoryapi.Followed},
		{true, false, true, directoryapi.Unchanged, directoryapi.Unchanged},
		{true, true, false, directoryapi.Provisioned, directoryapi.Followed},
		{true, true, true, directoryapi.Linked, directoryapi.Followed},
	} {
		t.Run(fmt.Sprintf("provisioning %v, by email %v, same email %v", c.provision, c.byEmail, c.resident),
			func(t *testing.T) {
				email := h.email()
				from := h.verified(t, h.away, email)
				to := from.ID
				if c.resident {
					if resident := h.verified(t, h.directory, email); c.want == directoryapi.Linked {
						to = resident.ID
					}
				}
				before := h.accountsOfStore(t)
				dry := h.request(from.ID, c.byEmail, c.provision)
				dry.DryRun = true
				tried := must(h.API.LinkedAccount(t.Context(), dry))(t)
				wantEqual(t, "the outcome of a dry run", tried.Outcome, c.want)
				wantEqual(t, "the accounts after a dry run", h.accountsOfStore(t), before)

				first := h.loginOf(t, from.ID, c.byEmail, c.provision)
				if c.want == directoryapi.Provisioned {
					wantEqual(t, "the accounts after a copy", h.accountsOfStore(t), before+1)
					wantEqual(t, "the id of a copy that a dry run did not make", tried.Account.ID.IsZero(), true)
					wantEqual(t, "the directory of the copy", first.Account.DirectoryID, h.directory)
					to = first.Account.ID
				}
				wantOutcome(t, first, c.want, to)
				wantOutcome(t, h.loginOf(t, from.ID, c.byEmail, c.provision), c.again, to)
				if c.again == directoryapi.Followed {
					wantOutcome(t, h.loginOf(t, from.ID, false, false), directoryapi.Followed, to)
				}
			})
	}
}

func verifiedMatches(t *testing.T, s subject) {
	h := newDefaultStore(t, s)
	for _, c := range []struct{ from, to bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		for _, provision := range []bool{false, true} {
			t.Run(fmt.Sprintf("the account %v, that of the default store %v, provisioning %v", c.from, c.to, provision),
				func(t *testing.T) {
					email := h.email()
					from, to := h.account(t, h.away, email), h.account(t, h.directory, strings.ToUpper(email))
					for v, is := range map[id.ID]bool{from.ID: c.from, to.ID: c.to} {
						if is {
							h.MarkVerified(t, h.ref(v))
						}
					}
					outcome, who := directoryapi.Unchanged, from.ID
					if c.from && c.to {
						outcome, who = directoryapi.Linked, to.ID
					}
					wantOutcome(t, h.loginOf(t, from.ID, true, provision), outcome, who)
				})
		}
	}
	t.Run("an email of which the provider says nothing is no match, nor is that of its copy", func(t *testing.T) {
		mirror := h.Mirror(t, h.id)
		login := func() directoryapi.Account {
			email := h.email()
			a := must(h.API.ProviderAccount(t.Context(), directoryapi.ProviderUser{
				Tenant: h.id, Directory: mirror, ExternalID: email, Email: email, EmailUnstated: true,
			}))(t).Account
			wantEqual(t, "the verification", a.EmailVerificationStatus, directoryapi.Verified)
			return a
		}
		from := login()
		h.verified(t, h.directory, from.Email)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)

		from = login()
		copied := h.loginOf(t, from.ID, true, true)
		wantEqual(t, "the outcome", copied.Outcome, directoryapi.Provisioned)
		wantEqual(t, "the verification of the copy", copied.Account.EmailVerificationStatus, directoryapi.Verified)
		other := h.verified(t, h.away, from.Email)
		wantOutcome(t, h.loginOf(t, other.ID, true, true), directoryapi.Unchanged, other.ID)
	})
	t.Run("an email that is another's user name is no match", func(t *testing.T) {
		email := h.email()
		from := h.verified(t, h.away, email)
		h.verified(t, h.directory, h.email(), named(email))
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
	})
}

// named sets the user name of a new account.
func named(username string) func(*directoryapi.CreateAccount) {
	return func(in *directoryapi.CreateAccount) { in.Account.Username = field.Some(username) }
}

func provisionedCopies(t *testing.T, s subject) {
	h := newDefaultStore(t, s)
	group := h.group(t, h.away, "Staff")
	for _, isVerified := range []bool{true, false} {
		t.Run(fmt.Sprintf("of an account whose email is verified: %v", isVerified), func(t *testing.T) {
			from := h.account(t, h.away, h.email(), inGroup(group), func(in *directoryapi.CreateAccount) {
				in.Account.Username = field.Some("Jo " + in.ID.String())
				in.Account.GivenName, in.Account.MiddleName, in.Account.Surname = field.Some("Jo"), field.Some("van"),
					field.Some("Doe")
			})
			status := directoryapi.Unverified
			if isVerified {
				h.MarkVerified(t, h.ref(from.ID))
				status = directoryapi.Verified
			}
			given := h.loginOf(t, from.ID, false, true).Account
			read := must(h.API.Account(t.Context(), h.ref(given.ID)))(t)
			for what, a := range map[string]directoryapi.Account{"given": given, "read": read} {
				wantEqual(t, what+", the tenant", a.TenantID, h.id)
				wantEqual(t, what+", the directory", a.DirectoryID, h.directory)
				wantEqual(t, what+", the user name", a.Username, from.Username)
				wantEqual(t, what+", the email", a.Email, from.Email)
				wantEqual(t, what+", the status of the email", a.EmailVerificationStatus, status)
				wantEqual(t, what+", the status", a.Status, directoryapi.Enabled)
				wantEqual(t, what+", the full name", a.FullName(), "Jo van Doe")
				if a.PasswordModifiedAt != nil || a.Owner || a.CreatedAt.IsZero() || a.ModifiedAt.IsZero() {
					t.Errorf("%s, it is %+v", what, a)
				}
			}
			wantStores(t, must(h.API.StoresOf(t.Context(), h.ref(given.ID)))(t), h.store)
			for _, password := range []string{Password, ""} {
				wantError(h.API.Authenticate(t.Context(), directoryapi.Authenticate{
					Tenant: h.id, Stores: []directoryapi.Store{h.store}, Login: from.Email, Password: secret(password),
				}))(t, apierr.WrongPassword)
			}
			in := must(h.API.Authenticate(t.Context(), directoryapi.Authenticate{
				Tenant: h.id, Stores: append([]directoryapi.Store{h.store}, stores(h.away)...), Login: from.Email,
				Password: secret(Password),
			}))(t)
			wantEqual(t, "the account of the password, though its copy is in an earlier store", in.Account.ID, from.ID)
			wantEqual(t, "the account that it was made of", must(h.API.Account(t.Context(), h.ref(from.ID)))(t).DirectoryID,
				h.away)
		})
	}
	t.Run("none beside an account that is known by its user name or email", func(t *testing.T) {
		for what, of := range map[string]func(directoryapi.Account) (email, username string){
			"the same user name":        func(a directoryapi.Account) (string, string) { return h.email(), strings.ToUpper(a.Username) },
			"a user name for an email":  func(a directoryapi.Account) (string, string) { return h.email(), a.Email },
			"an email for a user name":  func(a directoryapi.Account) (string, string) { return a.Username, "x" + a.Username },
			"the same email, in a case": func(a directoryapi.Account) (string, string) { return strings.ToUpper(a.Email), "x" + a.Username },
		} {
			t.Run(what, func(t *testing.T) {
				from := h.verified(t, h.away, h.email(), named(h.email()))
				email, username := of(from)
				h.verified(t, h.directory, email, named(username))
				before := h.accountsOfStore(t)
				wantOutcome(t, h.loginOf(t, from.ID, false, true), directoryapi.Unchanged, from.ID)
				wantEqual(t, "the accounts of the default store", h.accountsOfStore(t), before)
			})
		}
	})
}

func followedLinks(t *testing.T, s subject) {
	h := newDefaultStore(t, s)
	from, to := h.account(t, h.away, h.email()), h.account(t, h.directory, h.email())
	h.Link(t, h.ref(to.ID), h.ref(from.ID))

	t.Run("are followed whatever may be made", func(t *testing.T) {
		h.verified(t, h.directory, from.Email)
		h.MarkVerified(t, h.ref(from.ID))
		for _, byEmail := range []bool{false, true} {
			for _, provision := range []bool{false, true} {
				wantOutcome(t, h.loginOf(t, from.ID, byEmail, provision), directoryapi.Followed, to.ID)
			}
		}
	})
	t.Run("are not followed out of the default store", func(t *testing.T) {
		wantOutcome(t, h.loginOf(t, to.ID, true, true), directoryapi.Unchanged, to.ID)
	})
	t.Run("are not followed twice", func(t *testing.T) {
		farther := h.account(t, h.tenant.directory(t, "Farther"), h.email())
		h.Link(t, h.ref(farther.ID), h.ref(from.ID))
		wantOutcome(t, h.loginOf(t, farther.ID, false, false), directoryapi.Unchanged, farther.ID)
	})
	t.Run("end with the account that they lead to", func(t *testing.T) {
		from, to := h.account(t, h.away, h.email()), h.account(t, h.directory, h.email())
		h.Link(t, h.ref(from.ID), h.ref(to.ID))
		h.DeleteAccount(t, h.ref(to.ID))
		wantOutcome(t, h.loginOf(t, from.ID, false, false), directoryapi.Unchanged, from.ID)
		wantOutcome(t, h.loginOf(t, from.ID, false, true), directoryapi.Provisioned,
			h.loginOf(t, from.ID, false, false).Account.ID)
	})
	t.Run("do not outlive the default store", func(t *testing.T) {
		gone := newDefaultStore(t, s)
		from, to := gone.account(t, gone.away, gone.email()), gone.account(t, gone.directory, gone.email())
		gone.Link(t, gone.ref(from.ID), gone.ref(to.ID))
		must(gone.API.DeleteDirectory(t.Context(), gone.ref(gone.directory)))(t)
		wantOutcome(t, gone.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
	})
	t.Run("an account that is gone", func(t *testing.T) {
		wantError(h.API.LinkedAccount(t.Context(), h.request(NewID(), true, true)))(t, apierr.NoSuchAccount)
	})
}

func groupDefaultStores(t *testing.T, s subject) {
	h := newDefaultStore(t, s)
	group := h.group(t, h.directory, "Staff")
	h.store = directoryapi.Store{Kind: directoryapi.Groups, ID: group}

	t.Run("a member is inside", func(t *testing.T) {
		member := h.verified(t, h.directory, h.email(), inGroup(group))
		wantOutcome(t, h.loginOf(t, member.ID, true, true), directoryapi.Unchanged, member.ID)
	})
	t.Run("another account of its directory is outside, and cannot be linked", func(t *testing.T) {
		beside := h.verified(t, h.directory, h.email())
		wantOutcome(t, h.loginOf(t, beside.ID, true, true), directoryapi.Unchanged, beside.ID)
	})
	t.Run("a copy becomes a member", func(t *testing.T) {
		from := h.verified(t, h.away, h.email())
		made := h.loginOf(t, from.ID, false, true)
		wantOutcome(t, made, directoryapi.Provisioned, made.Account.ID)
		wantStores(t, must(h.API.StoresOf(t.Context(), h.ref(made.Account.ID)))(t), h.store,
			directoryapi.Store{Kind: directoryapi.Directories, ID: h.directory})
	})
	t.Run("a member is matched", func(t *testing.T) {
		from := h.verified(t, h.away, h.email())
		member := h.verified(t, h.directory, from.Email, inGroup(group))
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Linked, member.ID)
	})
	t.Run("another account of its directory is not matched", func(t *testing.T) {
		from := h.verified(t, h.away, h.email())
		h.verified(t, h.directory, from.Email)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
	})
	t.Run("a link to another account of its directory is not followed, and prevents others", func(t *testing.T) {
		from, beside := h.verified(t, h.away, h.email()), h.verified(t, h.directory, h.email())
		h.Link(t, h.ref(from.ID), h.ref(beside.ID))
		h.verified(t, h.directory, from.Email, inGroup(group))
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
	})
	t.Run("a disabled group refuses whom a link leads to, and gets nobody new", func(t *testing.T) {
		linked, from, same := h.verified(t, h.away, h.email()), h.verified(t, h.away, h.email()),
			h.verified(t, h.away, h.email())
		wantOutcome(t, h.loginOf(t, linked.ID, false, true), directoryapi.Provisioned,
			h.loginOf(t, linked.ID, false, false).Account.ID)
		h.verified(t, h.directory, same.Email, inGroup(group))
		h.DisableGroup(t, h.ref(group))
		wantError(h.API.LinkedAccount(t.Context(), h.request(linked.ID, true, true)))(t, apierr.GroupDisabled)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
		wantOutcome(t, h.loginOf(t, same.ID, true, true), directoryapi.Unchanged, same.ID)
	})
	t.Run("a group of a disabled directory does as well", func(t *testing.T) {
		shut := newDefaultStore(t, s)
		shut.store = directoryapi.Store{Kind: directoryapi.Groups, ID: shut.group(t, shut.directory, "Staff")}
		linked, from := shut.verified(t, shut.away, shut.email()), shut.verified(t, shut.away, shut.email())
		shut.loginOf(t, linked.ID, false, true)
		shut.DisableDirectory(t, shut.ref(shut.directory))
		wantError(shut.API.LinkedAccount(t.Context(), shut.request(linked.ID, true, true)))(t, apierr.DirectoryDisabled)
		wantOutcome(t, shut.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
	})
	t.Run("a group that is gone", func(t *testing.T) {
		from := h.verified(t, h.away, h.email())
		h.store.ID = NewID()
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
	})
}

func accountsThatMayNotLogIn(t *testing.T, s subject) {
	h := newDefaultStore(t, s)
	for state, want := range map[string]error{directoryapi.Disabled: apierr.AccountDisabled,
		directoryapi.Unverified: apierr.AccountUnverified} {
		t.Run("behind a link: "+state, func(t *testing.T) {
			from, to := h.account(t, h.away, h.email()), h.account(t, h.directory, h.email(), status(state))
			h.Link(t, h.ref(from.ID), h.ref(to.ID))
			wantError(h.API.LinkedAccount(t.Context(), h.request(from.ID, true, true)))(t, want)
		})
		t.Run("of the same email, without a link that stays: "+state, func(t *testing.T) {
			from := h.verified(t, h.away, h.email())
			h.verified(t, h.directory, from.Email, status(state))
			wantError(h.API.LinkedAccount(t.Context(), h.request(from.ID, true, true)))(t, want)
			wantOutcome(t, h.loginOf(t, from.ID, false, false), directoryapi.Unchanged, from.ID)
		})
	}
	t.Run("in a disabled directory, which gets nobody new", func(t *testing.T) {
		linked, from, same := h.verified(t, h.away, h.email()), h.verified(t, h.away, h.email()),
			h.verified(t, h.away, h.email())
		h.Link(t, h.ref(linked.ID), h.ref(h.account(t, h.directory, h.email()).ID))
		h.verified(t, h.directory, same.Email)
		before := h.accountsOfStore(t)
		h.DisableDirectory(t, h.ref(h.directory))
		wantError(h.API.LinkedAccount(t.Context(), h.request(linked.ID, true, true)))(t, apierr.DirectoryDisabled)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
		wantOutcome(t, h.loginOf(t, same.ID, true, true), directoryapi.Unchanged, same.ID)
		wantEqual(t, "the accounts of the default store", h.accountsOfStore(t), before)
	})
}

func excludedLinks(t *testing.T, s subject) {
	h := newDefaultStore(t, s)
	t.Run("the account of the same email is linked to another of the same directory", func(t *testing.T) {
		from, rival := h.verified(t, h.away, h.email()), h.account(t, h.away, h.email())
		to := h.verified(t, h.directory, from.Email)
		h.Link(t, h.ref(to.ID), h.ref(rival.ID))
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
		wantOutcome(t, h.loginOf(t, rival.ID, true, true), directoryapi.Followed, to.ID)
	})
	t.Run("an account has ten links already", func(t *testing.T) {
		full, match := h.verified(t, h.away, h.email()), h.verified(t, h.away, h.email())
		crowded := h.verified(t, h.directory, match.Email)
		for i := range 10 {
			directory := h.tenant.directory(t, fmt.Sprint("Other ", i))
			h.Link(t, h.ref(full.ID), h.ref(h.account(t, directory, h.email()).ID))
			h.Link(t, h.ref(crowded.ID), h.ref(h.account(t, directory, h.email()).ID))
		}
		before := h.accountsOfStore(t)
		wantOutcome(t, h.loginOf(t, full.ID, true, true), directoryapi.Unchanged, full.ID)
		wantOutcome(t, h.loginOf(t, match.ID, true, true), directoryapi.Unchanged, match.ID)
		wantEqual(t, "the accounts of the default store", h.accountsOfStore(t), before)
	})
}

// resetCopies lets the owner of a mailbox reset the password of an account that a login of another
// account, perhaps an attacker's, has created or is linked to.
func resetCopies(t *testing.T, s subject) {
	h := newDefaultStore(t, s)
	reset := func(t *testing.T, login string, directory id.ID) {
		t.Helper()
		must(h.API.ResetPassword(t.Context(), h.spend(h.reset(t, login, directory), "Different1!")))(t)
	}
	t.Run("the link of a copy whose email is not proved ends", func(t *testing.T) {
		from := h.account(t, h.away, h.email())
		made := h.loginOf(t, from.ID, true, true)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Followed, made.Account.ID)
		reset(t, from.Email, h.directory)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
		wantError(0, h.login(t, from.Email, "Different1!", h.directory))(t, nil)
	})
	t.Run("that of a copy whose email reads VERIFIED though its provider says nothing of it ends too", func(t *testing.T) {
		email := h.email()
		from := must(h.API.ProviderAccount(t.Context(), directoryapi.ProviderUser{
			Tenant: h.id, Directory: h.Mirror(t, h.id), ExternalID: email, Email: email, EmailUnstated: true,
		}))(t).Account
		wantEqual(t, "the outcome", h.loginOf(t, from.ID, true, true).Outcome, directoryapi.Provisioned)
		reset(t, email, h.directory)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Unchanged, from.ID)
	})
	t.Run("a reset that is refused ends none", func(t *testing.T) {
		from := h.account(t, h.away, h.email())
		made := h.loginOf(t, from.ID, true, true)
		wantError(h.API.ResetPassword(t.Context(), h.spend(h.reset(t, from.Email, h.directory), "Short1")))(t,
			apierr.TooShort)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Followed, made.Account.ID)
	})
	t.Run("that of a copy whose email is proved stays", func(t *testing.T) {
		from := h.verified(t, h.away, h.email())
		made := h.loginOf(t, from.ID, true, true)
		reset(t, from.Email, h.directory)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Followed, made.Account.ID)
	})
	t.Run("that of a copy whose email was proved after it was made stays", func(t *testing.T) {
		from := h.account(t, h.away, h.email())
		made := h.loginOf(t, from.ID, true, true)
		h.MarkVerified(t, h.ref(made.Account.ID))
		reset(t, from.Email, h.directory)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Followed, made.Account.ID)
	})
	t.Run("it stays when the account that was copied gets a password", func(t *testing.T) {
		from := h.account(t, h.away, h.email())
		made := h.loginOf(t, from.ID, true, true)
		reset(t, from.Email, h.away)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Followed, made.Account.ID)
	})
	t.Run("a link that an administrator made stays", func(t *testing.T) {
		from, to := h.account(t, h.away, h.email()), h.account(t, h.directory, h.email())
		h.Link(t, h.ref(from.ID), h.ref(to.ID))
		reset(t, to.Email, h.directory)
		wantOutcome(t, h.loginOf(t, from.ID, true, true), directoryapi.Followed, to.ID)
	})
}

// parallelFirstLogins has to end with one link and one copy, and no error.
func parallelFirstLogins(t *testing.T, s subject) {
	const logins = 50
	h := newDefaultStore(t, s)
	race := func(t *testing.T, accounts ...id.ID) map[id.ID]int {
		t.Helper()
		var mu sync.Mutex
		var all sync.WaitGroup
		who := map[id.ID]int{}
		for i := range logins {
			all.Go(func() {
				got, err := h.API.LinkedAccount(t.Context(), h.request(accounts[i%len(accounts)], true, true))
				wantError(got, err)(t, nil)
				mu.Lock()
				defer mu.Unlock()
				who[got.Account.ID]++
			})
		}
		all.Wait()
		return who
	}
	t.Run("of one account make one copy", func(t *testing.T) {
		from, before := h.verified(t, h.away, h.email()), h.accountsOfStore(t)
		who := race(t, from.ID)
		wantEqual(t, "the number of accounts that logged in", len(who), 1)
		wantEqual(t, "the logins as the copy", who[h.loginOf(t, from.ID, false, false).Account.ID], logins)
		wantEqual(t, "the accounts of the default store", h.accountsOfStore(t), before+1)
	})
	t.Run("of one account make one link", func(t *testing.T) {
		from := h.verified(t, h.away, h.email())
		to := h.verified(t, h.directory, from.Email)
		wantEqual(t, "the logins as the account of the same email", race(t, from.ID)[to.ID], logins)
	})
	t.Run("of accounts of the same email in different directories make one copy", func(t *testing.T) {
		email, before := h.email(), h.accountsOfStore(t)
		one, other := h.verified(t, h.away, email), h.verified(t, h.tenant.directory(t, "Second"), email)
		who := race(t, one.ID, other.ID)
		wantEqual(t, "the number of accounts that logged in", len(who), 1)
		wantEqual(t, "the accounts of the default store", h.accountsOfStore(t), before+1)
		wantOutcome(t, h.loginOf(t, one.ID, false, false), directoryapi.Followed,
			h.loginOf(t, other.ID, false, false).Account.ID)
	})
	t.Run("of accounts of one directory link one of them to an account", func(t *testing.T) {
		email := h.email()
		to := h.verified(t, h.directory, email)
		one, other := h.verified(t, h.away, email), h.verified(t, h.tenant.directory(t, "Third"), email)
		who := race(t, one.ID, other.ID)
		wantEqual(t, "the logins as the account of the same email", who[to.ID], logins)
	})
}

func otherTenantsDefaultStores(t *testing.T, s subject) {
	h, other := newDefaultStore(t, s), newDefaultStore(t, s)
	from := h.verified(t, h.away, h.email())
	foreign := other.verified(t, other.directory, from.Email)

	t.Run("a store of another tenant is not there", func(t *testing.T) {
		in := h.request(from.ID, true, true)
		in.Store = other.store
		wantOutcome(t, must(h.API.LinkedAccount(t.Context(), in))(t), directoryapi.Unchanged, from.ID)
		wantEqual(t, "the accounts of the other tenant's store", other.accountsOfStore(t), 1)
	})
	t.Run("an account of another tenant is not there", func(t *testing.T) {
		wantError(h.API.LinkedAccount(t.Context(), h.request(foreign.ID, true, true)))(t, apierr.NoSuchAccount)
	})
	t.Run("an email that is looked up as another is no match: it is another mailbox", func(t *testing.T) {
		email := h.email()
		h.verified(t, h.directory, strings.Replace(email, "@", "@strasse.", 1))
		from := h.verified(t, h.away, strings.Replace(email, "@", "@stra\u00dfe.", 1))
		wantEqual(t, "the outcome", h.loginOf(t, from.ID, true, false).Outcome, directoryapi.Unchanged)
	})
	t.Run("an email of another tenant is no match", func(t *testing.T) {
		made := h.loginOf(t, from.ID, true, true)
		wantOutcome(t, made, directoryapi.Provisioned, made.Account.ID)
		wantEqual(t, "the tenant of the copy", made.Account.TenantID, h.id)
	})
}
