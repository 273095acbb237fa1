package e2e_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// dependent is a resource that ends with others, at its address and in the lists that have it.
type dependent struct {
	name, address string
	lists         []string
	owners        []string // kinds of resources with which it ends
}

// estate is one resource of each kind that can be deleted, with everything that hangs on it.
type estate struct {
	owners     map[string]string // addresses, by kind
	dependents []dependent
}

func newEstate(t *testing.T) estate {
	t.Helper()
	fixture, organization := client.NewFixture(t), client.Create(t, "/organizations", e2e.Object{"name": e2e.Unique("org"), "nameKey": e2e.Unique("org")})
	client.DeleteAtEnd(t, organization.Href())
	application, directory := fixture.Application, fixture.Directory
	group := client.Create(t, directory.Link(t, "groups"), e2e.Object{"name": e2e.Unique("group")})
	account := client.Register(t, directory.Link(t, "accounts"))
	mapping := func(of string, owner e2e.Object, path, store string) e2e.Object {
		return client.Create(t, path, e2e.Object{of: e2e.Object{"href": owner.Href()}, "accountStore": e2e.Object{"href": store}})
	}
	all := []string{"account", "directory"}
	e := estate{owners: map[string]string{
		"account": account.Href(), "group": group.Href(), "directory": directory.Href(), "application": application.Href(),
		"organization": organization.Href(),
	}}
	add := func(name string, made e2e.Object, owners []string, lists ...string) {
		e.dependents = append(e.dependents, dependent{name, made.Href(), lists, owners})
	}
	bare := client.NewApplication(t)
	const organizationMappings = "/organizationAccountStoreMappings"
	add("the mapping of the directory to the organization", mapping("organization", organization, organizationMappings, directory.Href()),
		[]string{"directory", "organization"}, organization.Link(t, "accountStoreMappings"), directory.Href()+"/organizationMappings")
	add("the mapping of the group to the organization", mapping("organization", organization, organizationMappings, group.Href()),
		[]string{"directory", "organization", "group"}, organization.Link(t, "accountStoreMappings"))
	add("the mapping of the organization to an application", mapping("application", application, "/accountStoreMappings", organization.Href()),
		[]string{"organization", "application"}, application.Link(t, "accountStoreMappings"))
	add("the mapping of the group to an application", mapping("application", bare, "/accountStoreMappings", group.Href()),
		[]string{"directory", "group"}, bare.Link(t, "accountStoreMappings"), group.Link(t, "accountStoreMappings"))
	add("the mapping of the directory to the other application", mapping("application", bare, "/accountStoreMappings", directory.Href()),
		[]string{"directory"}, bare.Link(t, "accountStoreMappings"), directory.Href()+"/applicationMappings")
	add("the mapping of the directory", client.Get(t, application.Link(t, "accountStoreMappings")).Items(t)[0],
		[]string{"directory", "application"}, application.Link(t, "accountStoreMappings"), directory.Href()+"/applicationMappings")
	add("a membership", client.Create(t, "/groupMemberships", e2e.Object{"account": e2e.Object{"href": account.Href()},
		"group": e2e.Object{"href": group.Href()}}), append([]string{"group"}, all...),
		account.Link(t, "groupMemberships"), group.Link(t, "accountMemberships"))
	add("an API key", client.Create(t, account.Link(t, "apiKeys"), e2e.Object{}), all, account.Link(t, "apiKeys"))
	add("a phone", client.Create(t, account.Link(t, "phones"), e2e.Object{"number": "+12025550123"}), all,
		account.Link(t, "phones"), client.Tenant(t).Href()+"/phones")
	factor := client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator"})
	add("a factor", factor, all, account.Link(t, "factors"))
	add("a challenge", client.Create(t, factor.Link(t, "challenges"), e2e.Object{}), all, factor.Link(t, "challenges"))

	token := client.Token(t, application.Href(), passwordGrant(account.Text("email"), e2e.Password))
	refresh := client.Get(t, account.Link(t, "refreshTokens")).Items(t)[0]
	add("an access token", e2e.Object{"href": token.Text("service_access_token_href")}, append([]string{"application"}, all...),
		account.Link(t, "accessTokens"))
	add("a refresh token", refresh, append([]string{"application"}, all...), account.Link(t, "refreshTokens"))
	add("a password reset token", client.WantObject(t, http.StatusOK, post(application.Link(t, "passwordResetTokens"),
		e2e.Object{"email": account.Text("email")})), append([]string{"application"}, all...))
	add("an OAuth policy", client.Get(t, application.Link(t, "oAuthPolicy")), []string{"application"})
	add("a web config", client.Get(t, application.Link(t, "webConfig")), []string{"application"})
	for _, kind := range []string{"directory", "application", "organization"} {
		add("the custom data of the "+kind, client.Get(t, e.owners[kind]+"/customData"), []string{kind})
	}
	add("the custom data of an account of the directory", client.Get(t, account.Link(t, "customData")), all)
	add("the custom data of a group of the directory", client.Get(t, group.Href()+"/customData"), []string{"directory", "group"})
	return e
}

// The answer to a DELETE is the moment: from the next request on what was deleted with the resource
// is behind no address and in no list, in whatever service it lies. All is read at once, as the
// services hear of the deletion a moment later.
func TestWhatEndsIsEndedAtOnce(t *testing.T) {
	for _, kind := range []string{"account", "group", "directory", "application", "organization"} {
		t.Run(kind, func(t *testing.T) {
			e := newEstate(t)
			for _, d := range e.dependents {
				client.Get(t, d.address)
			}
			client.Delete(t, e.owners[kind])
			var reads sync.WaitGroup
			for _, d := range e.dependents {
				if !slices.Contains(d.owners, kind) {
					continue
				}
				reads.Go(func() {
					if answer, err := client.Do(t.Context(), get(d.address)); err != nil || answer.Status != http.StatusNotFound {
						t.Errorf("%s: %s, %v", d.name, answer, err)
					}
				})
				for _, list := range d.lists {
					reads.Go(func() {
						answer, err := client.Do(t.Context(), get(list+"?limit=100"))
						if err == nil && answer.Status == http.StatusNotFound {
							return
						}
						page := e2e.Object{}
						if err == nil {
							page, err = answer.Object()
						}
						if err != nil {
							t.Error(err)
							return
						}
						if slices.ContainsFunc(page.Objects("items"), func(item e2e.Object) bool { return item.Href() == d.address }) {
							t.Errorf("%s is in the list %s", d.name, list)
						}
					})
				}
			}
			reads.Wait()
			for _, d := range e.dependents {
				if !slices.Contains(d.owners, kind) {
					client.Get(t, d.address)
				}
			}
		})
	}
}
