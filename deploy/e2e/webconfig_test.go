package e2e_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// webConfig returns the web config of an application.
func webConfig(t *testing.T, application e2e.Object) e2e.Object {
	t.Helper()
	return client.Get(t, application.Link(t, "webConfig"))
}

func TestAnApplicationHasAClientAPIThatCanBeConfigured(t *testing.T) {
	fixture := client.NewFixture(t)
	application := fixture.Application
	config := webConfig(t, application)

	t.Run("it has a name of its own, whose pages are let in", func(t *testing.T) {
		domain := config.Text("domainName")
		if label := config.Text("dnsLabel"); label == "" || !strings.HasPrefix(domain, label+".") {
			t.Errorf("the Client API is named %q, at %q", label, domain)
		}
		origins, _ := application["authorizedOriginUris"].([]any)
		if len(origins) != 1 || origins[0] != "https://"+domain {
			t.Errorf("the authorized origins are %v", origins)
		}
	})
	t.Run("it is on, and signs with the key that asked for the application", func(t *testing.T) {
		for _, endpoints := range []string{"oauth2", "register", "login", "me"} {
			if config.Object(endpoints)["enabled"] != true {
				t.Errorf("%s is %v", endpoints, config[endpoints])
			}
		}
		if config.Text("status") != "ENABLED" || config.Link(t, "signingApiKey") != client.Key.BaseURL+"/apiKeys/"+client.Key.ID {
			t.Errorf("the web config is %v", config)
		}
	})
	t.Run("it comes with the application, and brings what it leads to", func(t *testing.T) {
		if got := client.Get(t, application.Href()+"?expand=webConfig").Object("webConfig"); got.Text("dnsLabel") != config.Text("dnsLabel") {
			t.Errorf("the application has %v", got)
		}
		got := client.Get(t, config.Href()+"?expand=application,tenant,signingApiKey")
		if got.Object("application").Text("name") != application.Text("name") || got.Object("signingApiKey").Text("id") != client.Key.ID {
			t.Errorf("the expanded web config is %v", got)
		}
	})
	t.Run("a change keeps what it does not name, and the pages follow the name", func(t *testing.T) {
		label := strings.ToLower(e2e.Unique("shop"))
		changed := client.Update(t, config.Href(), e2e.Object{
			"dnsLabel": label, "register": e2e.Object{"enabled": "false"}, "me": e2e.Object{"expand": e2e.Object{"groups": true}},
			"mfa": e2e.Object{"required": true}, "signingApiKey": nil,
		})
		me := changed.Object("me")
		if changed.Object("register")["enabled"] != false || me["enabled"] != true || me.Object("expand")["groups"] != true || me.Object("expand")["tenant"] != false {
			t.Errorf("the changed web config is %v", changed)
		}
		if changed.Object("mfa")["required"] != true || changed["signingApiKey"] != nil || changed.Object("verifyEmail")["enabled"] != nil {
			t.Errorf("the changed web config is %v", changed)
		}
		origins, _ := client.Get(t, application.Href())["authorizedOriginUris"].([]any)
		if want := "https://" + changed.Text("domainName"); len(origins) != 1 || origins[0] != want || !strings.HasPrefix(want, "https://"+label+".") {
			t.Errorf("let in are %v at %q", origins, want)
		}
		client.Update(t, config.Href(), changed)
	})
	t.Run("what it does not know or may not be is refused", func(t *testing.T) {
		account := client.Register(t, application.Link(t, "accounts"))
		ordinary := client.Create(t, account.Link(t, "apiKeys"), nil)
		for name, c := range map[string]struct {
			code int
			body e2e.Object
		}{
			"an unknown property":       {2015, e2e.Object{"idSite": true}},
			"an unknown one inside":     {2015, e2e.Object{"login": e2e.Object{"uri": "/login"}}},
			"no switch":                 {2004, e2e.Object{"login": true}},
			"nothing":                   {2000, e2e.Object{"login": nil}},
			"a name with a dot":         {2006, e2e.Object{"dnsLabel": "a.b"}},
			"an unknown factor":         {2003, e2e.Object{"mfa": e2e.Object{"factorTypes": []string{"voice"}}}},
			"the key of an end user":    {2014, e2e.Object{"signingApiKey": e2e.Object{"href": ordinary.Href()}}},
			"a key that never was":      {2014, e2e.Object{"signingApiKey": e2e.Object{"href": client.Key.BaseURL + "/apiKeys/NOBODY"}}},
			"a status that is not one":  {2003, e2e.Object{"status": "OPEN"}},
			"a name that is no text":    {2004, e2e.Object{"dnsLabel": 7}},
			"an expansion there is not": {2015, e2e.Object{"me": e2e.Object{"expand": e2e.Object{"secrets": true}}}},
		} {
			t.Run(name, func(t *testing.T) { client.Refused(t, http.StatusBadRequest, c.code, post(config.Href(), c.body)) })
		}
	})
	t.Run("it goes with its application, and leaves its name to others", func(t *testing.T) {
		gone := client.NewApplication(t)
		config := webConfig(t, gone)
		client.Delete(t, gone.Href())
		client.NotFound(t, config.Href())
		other := client.Update(t, webConfig(t, client.NewApplication(t)).Href(), e2e.Object{"dnsLabel": config.Text("dnsLabel")})
		if other.Text("domainName") != config.Text("domainName") {
			t.Errorf("the other is at %q, want %q", other.Text("domainName"), config.Text("domainName"))
		}
	})
}

func TestAnApplicationsNameIsGivenOnce(t *testing.T) {
	const many = 10
	label := strings.ToLower(e2e.Unique("wanted"))
	var configs [many]string
	for i := range many {
		configs[i] = client.NewApplication(t).Link(t, "webConfig")
	}
	var answers [many]e2e.Answer
	var wg sync.WaitGroup
	for i, config := range configs {
		wg.Go(func() { answers[i] = client.Call(t, post(config, e2e.Object{"dnsLabel": label, "status": "disabled"})) })
	}
	wg.Wait()
	given := 0
	for i, config := range configs {
		now := client.Get(t, config)
		if answers[i].Status == http.StatusOK {
			given++
			if now.Text("dnsLabel") != label || now.Text("status") != "DISABLED" {
				t.Errorf("%s became %v", config, now)
			}
			continue
		}
		e2e.CheckError(t, answers[i], http.StatusConflict, 2001)
		if now.Text("dnsLabel") == label || now.Text("status") != "ENABLED" {
			t.Errorf("a refused change left %v", now)
		}
	}
	if given != 1 {
		t.Errorf("the name was given %d times", given)
	}
}

func TestTheConsoleHasNoClientAPI(t *testing.T) {
	built := e2e.Named(t, client.All(t, client.Tenant(t).Link(t, "applications")), console)
	config := webConfig(t, built)
	if config.Text("status") != "DISABLED" || config["dnsLabel"] != nil || config["domainName"] != nil {
		t.Errorf("the web config of the console is %v", config)
	}
	client.Refused(t, http.StatusBadRequest, 400, post(config.Href(), e2e.Object{"status": "ENABLED"}))
	client.Update(t, config.Href(), config)
}
