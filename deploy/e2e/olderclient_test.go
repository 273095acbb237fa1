package e2e_test

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// olderClient behaves as the published client libraries of such services do: it keeps
// the address of a collection and adds its parameters to it, follows redirects with
// its own query, posts back whole objects as it read them, sends null for what it does
// not have, deletes what may be gone, and caches resources by their href.
type olderClient struct {
	*testing.T
	cache map[string]e2e.Object
}

// get reads a resource with a query, following redirects, and caches it and what came
// expanded with it.
func (c olderClient) get(address string, query url.Values) e2e.Object {
	c.Helper()
	for range 5 {
		answer := client.Call(c.T, get(address+joint(address)+query.Encode()))
		switch answer.Status {
		case http.StatusFound:
			address = answer.Header.Get("Location")
			continue
		case http.StatusOK:
		default:
			c.Fatalf("the request is answered with %s", answer)
		}
		object, err := answer.Object()
		if err != nil {
			c.Fatal(err)
		}
		object["httpStatus"] = answer.Status // some keep it with the object
		c.keep(object)
		return object
	}
	c.Fatalf("%s redirects without end", address)
	return nil
}

func joint(address string) string {
	if strings.Contains(address, "?") {
		return "&"
	}
	return "?"
}

// keep caches an object and the objects in it. A link must not replace a resource.
func (c olderClient) keep(value any) {
	switch value := value.(type) {
	case e2e.Object:
		c.keep(map[string]any(value))
	case map[string]any:
		if href, _ := value["href"].(string); href != "" && len(value) > 1 {
			if value["items"] == nil {
				c.cache[href] = value
			} else if strings.Contains(href, "?") {
				c.Errorf("a collection has the address %s", href)
			}
		}
		for _, member := range value {
			c.keep(member)
		}
	case []any:
		for _, member := range value {
			c.keep(member)
		}
	}
}

// of returns a resource that a link leads to, from the cache where it is there.
func (c olderClient) of(object e2e.Object, link string) e2e.Object {
	c.Helper()
	href := object.Link(c.T, link)
	if cached, ok := c.cache[href]; ok {
		return cached
	}
	return c.get(href, nil)
}

// all reads a collection page by page: each page's address is that of the page before
// with the parameters of this one.
func (c olderClient) all(address string, query url.Values) (items []e2e.Object) {
	c.Helper()
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", "2")
	for range 100 {
		query.Set("offset", strconv.Itoa(len(items)))
		page := c.get(address, query)
		items = append(items, page.Items(c.T)...)
		if len(page.Items(c.T)) < 2 {
			if size := page.Number(c.T, "size"); size != len(items) {
				c.Errorf("%s has the size %d, %d items came", address, size, len(items))
			}
			return items
		}
		address = page.Href()
	}
	c.Fatalf("%s has no end", address)
	return nil
}

// create posts a body with null for every field that has no value.
func (c olderClient) create(address string, body e2e.Object, absent ...string) e2e.Object {
	c.Helper()
	for _, name := range absent {
		body[name] = nil
	}
	created := client.Create(c.T, address, body)
	c.keep(created)
	return created
}

// save posts a whole object back as it is in the cache, with changes, and checks that
// nothing else has changed.
func (c olderClient) save(object, changes e2e.Object) e2e.Object {
	c.Helper()
	before := maps.Clone(object)
	whole := maps.Clone(object)
	maps.Copy(whole, changes)
	saved := client.Update(c.T, object.Href(), whole)
	for name, value := range before {
		if _, changed := changes[name]; changed || name == "modifiedAt" || name == "fullName" || name == "httpStatus" {
			continue
		}
		text, plain := value.(string)
		if now, still := saved[name]; !still || plain && now != text {
			c.Errorf("%s of %s was %v and is %v", name, object.Href(), value, now)
		}
	}
	for name, value := range changes {
		if saved[name] != value {
			c.Errorf("%s of %s is %v, want %v", name, object.Href(), saved[name], value)
		}
	}
	c.keep(saved)
	return saved
}

// remove deletes twice: what an application takes with it is deleted again by itself.
func (c olderClient) remove(object e2e.Object) {
	c.Helper()
	client.Delete(c.T, object.Href())
	client.Delete(c.T, object.Href())
	delete(c.cache, object.Href())
	client.NotFound(c.T, object.Href())
}

func TestAnOlderClientLibrary(t *testing.T) {
	c := olderClient{t, map[string]e2e.Object{}}
	tenant := c.get("/tenants/current", url.Values{"expand": {"customData"}})
	if tenant.Object("customData").Href() != tenant.Href()+"/customData" || tenant.Object("customData")["createdAt"] == nil {
		t.Errorf("the tenant came without its customData: %v", tenant["customData"])
	}
	name := e2e.Unique("older")
	application := c.create("/applications?createDirectory=true", e2e.Object{"name": name, "status": "enabled"}, "description")
	client.DeleteAtEnd(t, application.Href())
	directory := c.of(c.of(application, "defaultAccountStoreMapping"), "accountStore")
	client.DeleteAtEnd(t, directory.Href())

	accounts := application.Link(t, "accounts")
	for range 5 {
		email := e2e.Unique("jo") + "@example.test"
		account := c.create(accounts, e2e.Object{"email": email, "password": e2e.Password, "customData": e2e.Object{"plan": "gold"}}, "givenName", "surname", "middleName", "username")
		if account.Text("username") != email || account["givenName"] != nil {
			t.Errorf("the account is %v", account)
		}
	}
	for _, query := range []url.Values{nil, {"expand": {"customData,groups"}}, {"orderBy": {"email desc"}, "status": {"ENABLED"}}, {"q": {"jo"}}} {
		items := c.all(accounts, query)
		seen := map[string]bool{}
		for _, each := range items {
			seen[each.Href()] = true
		}
		if len(seen) != 5 {
			t.Errorf("with %v there are %d accounts in %d items", query, len(seen), len(items))
		}
	}
	t.Run("a parameter twice counts once, unless it differs", func(t *testing.T) {
		client.Get(t, accounts+"?limit=2&limit=2&expand=customData&expand=customData&status=ENABLED&status=ENABLED")
		client.Refused(t, 400, 2102, get(accounts+"?status=ENABLED&status=DISABLED"))
	})

	account := c.all(accounts, nil)[0]
	login := client.Want(t, http.StatusOK, e2e.Login(application, account.Text("email"), e2e.Password))
	if body, err := login.Object(); err != nil || body.Link(t, "account") != account.Href() {
		t.Errorf("the login is %s", login)
	}
	account = c.save(c.get(account.Href(), nil), e2e.Object{"givenName": "Jo"})
	account = c.save(c.get(account.Href(), url.Values{"expand": {"customData,directory,groups"}}), e2e.Object{"surname": "Doe"})
	account = c.save(account, e2e.Object{"middleName": nil})
	c.save(c.get(application.Href(), url.Values{"expand": {"tenant,accounts,accountStoreMappings"}}), e2e.Object{"description": "a shop"})
	c.save(c.get(directory.Href(), nil), e2e.Object{"description": "its users"})
	for _, policy := range []string{"passwordPolicy", "accountCreationPolicy"} {
		c.save(c.of(directory, policy), nil)
	}
	data := c.get(account.Href()+"/customData", nil)
	if data.Text("plan") != "gold" {
		t.Errorf("the customData is %v", data)
	}

	group := c.create(directory.Link(t, "groups"), e2e.Object{"name": "readers", "nameKey": "readers"}, "description")
	whole := maps.Clone(group)
	whole["httpStatus"] = 201
	membership := c.create("/groupMemberships", e2e.Object{"account": account, "group": whole})
	if items := c.all(account.Link(t, "groups"), nil); len(items) != 1 || items[0].Href() != group.Href() {
		t.Errorf("the account's groups are %v", items)
	}
	c.save(c.get(group.Href(), nil), e2e.Object{"status": "DISABLED"})
	c.remove(membership)
	c.remove(group)
	c.remove(account)

	token := client.Want(t, http.StatusOK, post(application.Href()+"/oauth/token", passwordGrant(c.all(accounts, nil)[0].Text("email"), e2e.Password)))
	body, err := token.Object()
	if err != nil {
		t.Fatal(err)
	}
	shown := c.get(application.Href()+"/authTokens/"+body.Text("access_token"), url.Values{"expand": {"account"}})
	if shown.Object("account").Text("email") == "" {
		t.Errorf("the token is %v", shown)
	}
	refresh := e2e.Request{Method: http.MethodPost, URL: application.Href() + "/oauth/token?grant_type=refresh_token&refresh_token=" + body.Text("refresh_token")}
	client.Want(t, http.StatusOK, refresh)
	c.remove(c.cache[shown.Href()])
	c.remove(application)
	c.remove(directory)
}
