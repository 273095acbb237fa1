package application_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/words"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// labels returns the number of labels that are taken.
func labels(t *testing.T, d *applicationtest.Deployment) int {
	t.Helper()
	n, err := pg.Value[int](t.Context(), d.DB, `SELECT count(*) FROM dns_label_routes`)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// read returns an application as it is now.
func read(t *testing.T, d *applicationtest.Deployment, tenant, at id.ID) applicationapi.Application {
	t.Helper()
	a, err := d.Service.Application(t.Context(), id.Ref{Tenant: tenant, ID: at})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// changeLabel changes the DNS label of an application.
func changeLabel(t *testing.T, d *applicationtest.Deployment, tenant, at id.ID,
	label string) (applicationapi.Application, error) {
	t.Helper()
	return d.Service.SetDNSLabel(t.Context(), applicationapi.SetDNSLabel{Tenant: tenant, Application: at, Label: label})
}

func TestAnApplicationBeginsWithItsOwnOrigin(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	for name, c := range map[string]struct {
		origins field.List
		want    func(own string) []string
	}{
		"unless": {field.List{}, func(own string) []string { return []string{own} }},
		"others": {field.Some([]string{"https://app.localhost"}),
			func(own string) []string { return []string{own, "https://app.localhost"} }},
		"none":       {field.Some([]string{}), func(own string) []string { return []string{own} }},
		"explicitly": {field.List{Present: true, Null: true}, func(own string) []string { return []string{own} }},
	} {
		a, err := d.Service.CreateApplication(t.Context(), tenant,
			application.NewApplication{Name: field.Some(name), AuthorizedOriginURIs: c.origins}, application.DirectoryToCreate{})
		if err != nil {
			t.Fatal(err)
		}
		own := "https://" + a.DNSLabel + "." + applicationtest.Suffix
		if got := read(t, d, tenant, a.ID); !slices.Equal(got.AuthorizedOriginURIs, c.want(own)) ||
			got.DNSLabel != a.DNSLabel || strings.Count(got.DNSLabel, "-") != 1 {
			t.Errorf("%s: it is named %q and lets in %v", name, got.DNSLabel, got.AuthorizedOriginURIs)
		}
	}
}

func TestAnApplicationRemembersTheKeyThatAskedForIt(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	ctx := caller.Into(t.Context(), caller.Caller{Tenant: tenant, Key: "THEKEY"})
	a, err := d.Service.CreateApplication(ctx, tenant, application.NewApplication{Name: field.Some("Shop")},
		application.DirectoryToCreate{})
	if err != nil || a.CreatedBy != "THEKEY" || read(t, d, tenant, a.ID).CreatedBy != "THEKEY" {
		t.Errorf("the application was made by %q, %v", a.CreatedBy, err)
	}
}

// Any tenant may take a former label, so that its origin is no longer authorized.
func TestTheOwnOriginFollowsTheLabel(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop := newApplication(t, d, tenant)
	at := id.Ref{Tenant: tenant, ID: shop}
	before := read(t, d, tenant, shop)
	origins := []string{"https://first.example", "https://" + before.DNSLabel + ".apps.localhost", "https://last.example"}
	if _, err := d.Service.UpdateApplication(t.Context(), at,
		application.NewApplication{AuthorizedOriginURIs: field.Some(origins)}); err != nil {
		t.Fatal(err)
	}
	d.Clock.Tick()
	if _, err := changeLabel(t, d, tenant, shop, "quiet-heron"); err != nil {
		t.Fatal(err)
	}
	after := read(t, d, tenant, shop)
	if want := []string{"https://first.example", "https://quiet-heron.apps.localhost",
		"https://last.example"}; !slices.Equal(after.AuthorizedOriginURIs, want) {
		t.Errorf("the application lets in %v, want %v", after.AuthorizedOriginURIs, want)
	}
	if !after.ModifiedAt.Equal(d.Clock.Now()) {
		t.Errorf("the application was modified at %v", after.ModifiedAt)
	}

	t.Run("which a client cannot take out of the list, nor add twice", func(t *testing.T) {
		for _, sent := range [][]string{{}, {"https://QUIET-heron.apps.localhost", "https://quiet-heron.apps.localhost"}} {
			a, err := d.Service.UpdateApplication(t.Context(), at,
				application.NewApplication{AuthorizedOriginURIs: field.Some(sent)})
			if err != nil || len(a.AuthorizedOriginURIs) != 1 ||
				!strings.EqualFold(a.AuthorizedOriginURIs[0], "https://quiet-heron.apps.localhost") {
				t.Errorf("of %v the list is %v, %v", sent, a.AuthorizedOriginURIs, err)
			}
		}
	})
	t.Run("also where it was not sent", func(t *testing.T) {
		only := []string{"https://only.example"}
		if _, err := d.Service.UpdateApplication(t.Context(), at,
			application.NewApplication{AuthorizedOriginURIs: field.Some(only)}); err != nil {
			t.Fatal(err)
		}
		if _, err := changeLabel(t, d, tenant, shop, "loud-heron"); err != nil {
			t.Fatal(err)
		}
		if got := read(t, d, tenant, shop); !slices.Equal(got.AuthorizedOriginURIs,
			[]string{"https://loud-heron.apps.localhost", only[0]}) || got.DNSLabel != "loud-heron" {
			t.Errorf("the application is named %q and lets in %v", got.DNSLabel, got.AuthorizedOriginURIs)
		}
	})
}

func TestALabelIsGivenOnce(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	const many = 20
	var tenants, shops [many]id.ID
	for i := range many {
		tenants[i], _ = d.Tenant(t)
		shops[i] = newApplication(t, d, tenants[i])
	}
	var given atomic.Int32
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			_, err := changeLabel(t, d, tenants[i], shops[i], "calm-otter")
			switch {
			case err == nil:
				given.Add(1)
			case !errors.Is(err, apierr.Exists):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if given.Load() != 1 {
		t.Errorf("the label was given %d times", given.Load())
	}
	named := 0
	for i := range many {
		if a := read(t, d, tenants[i], shops[i]); a.DNSLabel == "calm-otter" {
			named++
		} else if own := "https://" + a.DNSLabel + ".apps.localhost"; !slices.Equal(a.AuthorizedOriginURIs, []string{own}) {
			t.Errorf("an application that was refused lets in %v", a.AuthorizedOriginURIs)
		}
	}
	if named != 1 || labels(t, d) != many {
		t.Errorf("%d applications have it, of %d labels", named, labels(t, d))
	}
}

func TestOneApplicationIsNamedManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop := newApplication(t, d, tenant)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := changeLabel(t, d, tenant, shop, "shop-"+strconv.Itoa(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a := read(t, d, tenant, shop)
	if own := "https://" + a.DNSLabel + ".apps.localhost"; !slices.Equal(a.AuthorizedOriginURIs, []string{own}) ||
		labels(t, d) != 1 {
		t.Errorf("the application is named %q and lets in %v; there are %d labels", a.DNSLabel, a.AuthorizedOriginURIs, labels(t, d))
	}
}

func TestTwoApplicationsExchangeTheirLabels(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	one, two := newApplication(t, d, tenant), newApplication(t, d, tenant)
	first, second := read(t, d, tenant, one).DNSLabel, read(t, d, tenant, two).DNSLabel
	for range 10 { // in any order, neither gets the other's
		var wg sync.WaitGroup
		for at, label := range map[id.ID]string{one: second, two: first} {
			wg.Go(func() {
				if _, err := changeLabel(t, d, tenant, at, label); !errors.Is(err, apierr.Exists) {
					t.Errorf("the error is %v", err)
				}
			})
		}
		wg.Wait()
	}
}

func TestALabelIsFreeAgain(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	stranger, _ := d.Tenant(t)
	shop, other := newApplication(t, d, tenant), newApplication(t, d, stranger)
	label := read(t, d, tenant, shop).DNSLabel

	t.Run("after its application was deleted", func(t *testing.T) {
		if _, err := changeLabel(t, d, stranger, other, label); !errors.Is(err, apierr.Exists) {
			t.Fatalf("the error is %v", err)
		}
		if err := d.Service.DeleteApplication(t.Context(), id.Ref{Tenant: tenant, ID: shop}); err != nil {
			t.Fatal(err)
		}
		if a, err := changeLabel(t, d, stranger, other, label); err != nil || a.DNSLabel != label {
			t.Errorf("the other is named %q, %v", a.DNSLabel, err)
		}
	})
	t.Run("after it was given up for another", func(t *testing.T) {
		if _, err := changeLabel(t, d, stranger, other, "elsewhere"); err != nil {
			t.Fatal(err)
		}
		if a, err := changeLabel(t, d, tenant, newApplication(t, d, tenant), label); err != nil || a.DNSLabel != label {
			t.Errorf("the third is named %q, %v", a.DNSLabel, err)
		}
	})
	t.Run("after its application could not be made", func(t *testing.T) {
		before := labels(t, d)
		body := application.NewApplication{Name: field.Some("Twice")}
		for _, want := range []error{nil, apierr.Exists} {
			if _, err := d.Service.CreateApplication(t.Context(), tenant, body, application.DirectoryToCreate{}); !errors.Is(err,
				want) {
				t.Fatal(err)
			}
		}
		if n := labels(t, d); n != before+1 {
			t.Errorf("there are %d labels, want %d", n, before+1)
		}
	})
}

// The pairs that belong to the id of an application are taken by others here.
func TestANumberFollowsWhenThePairsAreTaken(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, administrators := d.Tenant(t)
	in := applicationapi.SignUp{
		Tenant: tenant, Console: d.NewID(), ConsoleName: "Service", Administrators: administrators, ConsoleMapping: d.NewID(),
		Application: d.NewID(), ApplicationMapping: d.NewID(), Directory: d.NewID(),
	}
	pair := func(try int) string {
		return words.Pair("doorward/dns label/" + in.Application.String() + "/" + strconv.Itoa(try))
	}
	for try := range 4 {
		if _, err := pg.Exec(t.Context(), d.DB, `INSERT INTO dns_label_routes VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			pair(try), d.NewID(), d.NewID()); err != nil {
			t.Fatal(err)
		}
	}
	made, err := d.Service.SignUp(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	number, found := strings.CutPrefix(made.Application.DNSLabel, pair(4)+"-")
	if _, err := strconv.ParseUint(number, 10, 64); !found || err != nil {
		t.Errorf("the application is named %q, want %q and a number", made.Application.DNSLabel, pair(4))
	}
}

// An application of a release without labels gets one label, also with concurrent requests.
func TestAnApplicationOfBeforeLabels(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop := newApplication(t, d, tenant)
	before := read(t, d, tenant, shop)
	if _, err := pg.Exec(t.Context(), d.DB, `DELETE FROM dns_label_routes`); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), d.DB, `UPDATE applications
		SET dns_label = '', authorized_origin_uris = '{https://app.localhost}'`); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			a, err := d.Service.ApplicationOfWebConfig(t.Context(), id.Ref{Tenant: tenant, ID: before.WebConfigID})
			own := "https://" + a.DNSLabel + ".apps.localhost"
			if err != nil || a.DNSLabel == "" || !slices.Equal(a.AuthorizedOriginURIs, []string{own, "https://app.localhost"}) {
				t.Errorf("the application is named %q and lets in %v, %v", a.DNSLabel, a.AuthorizedOriginURIs, err)
			}
		})
	}
	wg.Wait()
	after := read(t, d, tenant, shop)
	if labels(t, d) != 1 || !after.ModifiedAt.Equal(before.ModifiedAt) {
		t.Errorf("there are %d labels; it was modified at %v", labels(t, d), after.ModifiedAt)
	}
}
