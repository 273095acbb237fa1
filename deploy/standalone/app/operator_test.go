package app

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/doorward/doorward/pkg/agesecret"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/tenantpurge"
	"github.com/doorward/doorward/pkg/tenantsize"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/directory/operator"
	directorystore "github.com/doorward/doorward/services/directory/store"
)

// The listener of operators of TestStandalone, and a key of each role.
const operatorAddress = "127.0.0.2:18499" // an address of its own, so that no other program has the port

var operatorKeys = "jo:admin:" + strings.Repeat("a", 32) + " cell:lookup:" + strings.Repeat("l", 32)

// operator sends a request of an operator and reads the answer into out.
func (p *product) operator(method, path, body string, want int, out any) {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), method, "http://"+operatorAddress+"/operator/v1"+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	request.SetBasicAuth("jo", strings.Repeat("a", 32))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		p.Fatalf("%s %s: %v", method, path, err)
	}
	if response.StatusCode != want {
		p.Fatalf("%s %s is answered with %d %v, want %d", method, path, response.StatusCode, out, want)
	}
}

// operatorTenant is what the tests read of a tenant.
type operatorTenant struct {
	Href, ID, Key, Name, Status string
	Reason, SuspendedAt         *string
}

// operatorEvents is what the tests read of the record.
type operatorEvents struct {
	Size  int
	Items []struct {
		ID, At, Command, Operator, Outcome string
		Reason, Tenant                     *string
	}
}

func operatorsLookTenantsUp(p *product) {
	_, header := p.send("GET", "/tenants/current", "", http.StatusFound)
	href := header.Get("Location")
	tenant, _ := p.send("GET", href, "", http.StatusOK)
	tenantID := href[strings.LastIndexByte(href, '/')+1:]
	applications, _ := p.send("GET", href+"/applications?q=My", "", http.StatusOK)
	application := applications["items"].([]any)[0].(map[string]any)
	sites, _ := p.send("GET", href+"/idSites", "", http.StatusOK)
	directories, _ := p.send("GET", href+"/directories", "", http.StatusOK)
	ending := func(of any) string {
		href := of.(map[string]any)["href"].(string)
		return href[strings.LastIndexByte(href, '/')+1:]
	}
	config, _ := p.send("GET", application["href"].(string)+"?expand=webConfig", "", http.StatusOK)
	for _, query := range []url.Values{
		{"key": {p.key.ID}}, {"id": {tenantID}}, {"id": {ending(application)}}, {"id": {ending(directories["items"].([]any)[0])}},
		{"host": {strings.ToUpper(sites["items"].([]any)[0].(map[string]any)["domainName"].(string))}},
		{"host": {config["webConfig"].(map[string]any)["domainName"].(string) + ":8443"}},
	} {
		var found struct{ Tenant, Key, Status string }
		p.operator("GET", "/lookup?"+query.Encode(), "", http.StatusOK, &found)
		if found.Tenant != tenantID || found.Key != tenant["key"] || found.Status != "ENABLED" {
			p.Errorf("the look-up by %s finds %+v, want the tenant %s", query.Encode(), found, tenantID)
		}
	}
	p.send("POST", application["href"].(string)+"/loginAttempts", `{"type":"basic","value":"bm9ib2R5OnBhc3N3b3Jk"}`, http.StatusBadRequest)
	worktest.Await(p, "the failed login in the usage of the tenant", func() bool {
		var used struct{ Items []struct{ FailedLogins int } }
		p.operator("GET", "/tenants/"+tenantID+"/usage", "", http.StatusOK, &used)
		return len(used.Items) == 1 && used.Items[0].FailedLogins > 0
	})
	var refusal struct{ Code int }
	for _, query := range []string{"key=NONE", "host=example.test", "id=" + tenantID[1:] + "0", "id=-"} {
		p.operator("GET", "/lookup?"+query, "", http.StatusNotFound, &refusal)
	}

	var shown operatorTenant
	path := "/tenants/" + tenant["key"].(string)
	p.operator("GET", path, "", http.StatusOK, &shown)
	if shown.ID != tenantID || shown.Status != "ENABLED" || shown.Href != "http://"+operatorAddress+"/operator/v1/tenants/"+tenantID {
		p.Errorf("the tenant is shown as %+v", shown)
	}
	var before, events operatorEvents
	p.operator("GET", "/events", "", http.StatusOK, &before)
	p.operator("POST", path+"/suspend", `{}`, http.StatusBadRequest, &refusal)
	if refusal.Code != 2000 {
		p.Errorf("a suspension without a reason is %d, want 2000", refusal.Code)
	}
	p.operator("POST", "/tenants/none/suspend", `{"reason":"unpaid"}`, http.StatusNotFound, &refusal)
	p.operator("POST", path+"/suspend", `{"reason":"unpaid"}`, http.StatusOK, &shown)
	if shown.Status != "SUSPENDED" || shown.Reason == nil || *shown.Reason != "unpaid" || shown.SuspendedAt == nil {
		p.Errorf("the suspended tenant is shown as %+v", shown)
	}
	for _, query := range []string{"status=SUSPENDED", "key=" + shown.Key, "q=" + shown.Key[1:], "orderBy=name"} {
		var page struct{ Items []operatorTenant }
		if p.operator("GET", "/tenants?"+query, "", http.StatusOK, &page); len(page.Items) == 0 || page.Items[0].ID != tenantID {
			p.Errorf("the list by %s has %+v, want the tenant %s", query, page.Items, tenantID)
		}
	}
	p.operator("GET", "/tenants?orderBy=nothing", "", http.StatusBadRequest, &refusal)
	p.operator("POST", path+"/resume", `{"reason":"paid"}`, http.StatusOK, &shown)
	if shown.Status != "ENABLED" {
		p.Errorf("the tenant that was resumed is shown as %+v", shown)
	}

	p.operator("GET", "/events?tenant="+shown.Key+"&limit=1", "", http.StatusOK, &events)
	if len(events.Items) != 1 || events.Items[0].Command != "tenant resume" || events.Items[0].Operator != "jo" ||
		events.Items[0].Outcome != "DONE" || *events.Items[0].Tenant != tenantID || *events.Items[0].Reason != "paid" {
		p.Errorf("the newest event of the tenant is %+v", events.Items)
	}
	p.operator("GET", "/events?limit=2&offset=1", "", http.StatusOK, &events)
	last, refused := events.Items[0], events.Items[1]
	if refused.Outcome != "REFUSED" || refused.Tenant != nil || events.Size != before.Size+3 {
		p.Errorf("the record has %d events, and %+v for the tenant that is not there", events.Size, refused)
	}
	p.operator("GET", "/events?after="+refused.ID, "", http.StatusOK, &events)
	if len(events.Items) != 2 || events.Items[0].ID != last.ID || events.Items[1].Command != "tenant resume" {
		p.Errorf("after the refused event the record has %+v, want the suspension and its end", events.Items)
	}
}

// An operator creates a tenant and deletes it: until the end of its grace it is suspended, then its keys, its hosts and
// its rows are gone in every service, but for its key and its id, which are not given again. The bootstrap's tenant stays.
func operatorsCreateAndDeleteATenant(p *product) {
	var refusal struct{ Code int }
	var made struct {
		operatorTenant
		APIKey       struct{ ID, Secret string }
		Owner        struct{ Email string }
		Applications int
	}
	for body, code := range map[string]int{
		`{"ownerEmail":"jo@example.test"}`: 2000, `{"name":"Gone"}`: 2000, `{"name":"Gone","ownerEmail":"jo"}`: 2006,
		`{"name":"Gone","ownerEmail":"jo@example.test","key":"Gone!"}`:      2006,
		`{"name":"Gone","ownerEmail":"jo@example.test","recipient":"age1"}`: 2006,
	} {
		if p.operator("POST", "/tenants", body, http.StatusBadRequest, &refusal); refusal.Code != code {
			p.Errorf("the tenant %s is refused with %d, want %d", body, refusal.Code, code)
		}
	}
	body := `{"name":"Gone Soon","ownerEmail":"jo@example.test","key":"gone-soon"}`
	p.operator("POST", "/tenants", body, http.StatusCreated, &made)
	if made.Key != "gone-soon" || made.Name != "Gone Soon" || made.Owner.Email != "jo@example.test" || made.Applications != 2 {
		p.Errorf("the tenant was created as %+v", made)
	}
	p.operator("POST", "/tenants", body, http.StatusConflict, &refusal)
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		p.Fatal(err)
	}
	var sealed struct {
		ID, Key string
		APIKey  agesecret.APIKey
	}
	p.operator("POST", "/tenants", `{"name":"Sealed","ownerEmail":"jo@example.test","recipient":"`+mine.Recipient().String()+`"}`,
		http.StatusCreated, &sealed)
	own := *p
	own.key.ID, own.key.Secret = sealed.APIKey.ID, openSealed(p.T, sealed.APIKey.Sealed, mine)
	if _, header := own.send("GET", "/tenants/current", "", http.StatusFound); sealed.APIKey.Secret != "" || header.Get("Location") == "" {
		p.Errorf("for a recipient the API key is %+v", sealed.APIKey)
	}
	p.operator("DELETE", "/tenants/"+sealed.Key+"?reason=tried&grace=PT0S", "", http.StatusAccepted, &sealed)
	p.purgeDeletedTenants(sealed.ID)
	own.key.ID, own.key.Secret = made.APIKey.ID, made.APIKey.Secret
	own.send("GET", "/tenants/"+made.ID, "", http.StatusOK)

	_, header := p.send("GET", "/tenants/current", "", http.StatusFound)
	first := header.Get("Location")[strings.LastIndexByte(header.Get("Location"), '/')+1:]
	if p.operator("DELETE", "/tenants/"+first+"?reason=left", "", http.StatusConflict, &refusal); refusal.Code != 409 {
		p.Errorf("the deletion of the bootstrap's tenant is refused with %d, want 409", refusal.Code)
	}
	p.operator("DELETE", "/tenants/none?reason=left", "", http.StatusNotFound, &refusal)
	p.operator("DELETE", "/tenants/gone-soon", "", http.StatusBadRequest, &refusal)
	p.operator("DELETE", "/tenants/gone-soon?reason=left&grace=P500D", "", http.StatusBadRequest, &refusal)
	var shown struct {
		Status      string
		DeleteAfter time.Time
	}
	p.operator("DELETE", "/tenants/gone-soon?reason=left", "", http.StatusAccepted, &shown)
	if shown.Status != "DELETING" || time.Until(shown.DeleteAfter) < 6*24*time.Hour {
		p.Errorf("the tenant is shown as %+v", shown)
	}
	p.operator("POST", "/tenants/gone-soon/resume", `{"reason":"stays"}`, http.StatusOK, &shown)
	if shown.Status != "ENABLED" {
		p.Errorf("the tenant that was resumed is %s", shown.Status)
	}
	p.operator("DELETE", "/tenants/gone-soon?reason=left&grace=PT0S", "", http.StatusAccepted, &shown)
	p.purgeDeletedTenants(made.ID)
	worktest.Await(p, "the end of the key", func() bool {
		request, err := http.NewRequestWithContext(p.Context(), "GET", p.key.BaseURL+"/tenants/"+made.ID, nil)
		if err != nil {
			p.Fatal(err)
		}
		request.SetBasicAuth(made.APIKey.ID, made.APIKey.Secret)
		response, err := p.client.Do(request)
		if err != nil {
			p.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusUnauthorized
	})
	p.operator("GET", "/tenants/gone-soon", "", http.StatusNotFound, &refusal)
	p.operator("POST", "/tenants/gone-soon/resume", `{"reason":"back"}`, http.StatusNotFound, &refusal)
	p.operator("GET", "/lookup?key="+made.APIKey.ID, "", http.StatusNotFound, &refusal)
	p.operator("GET", "/lookup?host=gone-soon.id.localhost", "", http.StatusNotFound, &refusal)
	p.operator("GET", "/lookup?id="+made.ID, "", http.StatusNotFound, &refusal)
	if p.operator("POST", "/tenants", body, http.StatusConflict, &refusal); refusal.Code != 2001 {
		p.Errorf("the key of the deleted tenant is refused with %d, want 2001", refusal.Code)
	}
}

// purgeDeletedTenants does what the workers of the services do each minute, until nothing of a tenant is left.
func (p *product) purgeDeletedTenants(name string) {
	p.Helper()
	tenant, err := id.Parse(name)
	if err != nil {
		p.Fatal(err)
	}
	url, err := private.Running(filepath.Join(p.dir, "postgres"))
	if err != nil {
		p.Fatal(err)
	}
	var operators *operator.Service
	for _, config := range allInOneDatabase(url).Configs() {
		db, err := pg.OpenWithoutMigrating(p.Context(), config)
		if err != nil {
			p.Fatal(err)
		}
		defer db.Close()
		if operators == nil {
			operators = operator.New(directorystore.New(db, time.Now), time.Now)
			if err := operators.EndGraces(p.Context()); err != nil {
				p.Fatal(err)
			}
		}
		worktest.Await(p, "the purge of "+config.Schema, func() bool {
			if err := tenantpurge.Purge(p.Context(), db, operators.DeletedTenants); err != nil {
				p.Fatal(err)
			}
			sizes, err := tenantsize.Measure(p.Context(), db, []id.ID{tenant})
			if err != nil {
				p.Fatal(err)
			}
			for _, kept := range tenantpurge.Kept {
				delete(sizes[tenant].Rows, kept)
			}
			return len(sizes[tenant].Rows) == 0
		})
	}
}
