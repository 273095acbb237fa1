package tenants

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/usage"
	application "github.com/doorward/doorward/services/application/store"
	directory "github.com/doorward/doorward/services/directory/store"
	idsite "github.com/doorward/doorward/services/idsite/store"
	mfa "github.com/doorward/doorward/services/mfa/store"
	notification "github.com/doorward/doorward/services/notification/store"
	oauth "github.com/doorward/doorward/services/oauth/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// migrated migrates what the commands read.
func migrated(ctx context.Context, url string) error {
	for _, config := range []func(secure.Secret) pg.Config{
		directory.Config, application.Config, notification.Config, oauth.Config, mfa.Config, idsite.Config,
	} {
		db, err := pg.Open(ctx, config(secure.Secret(url)))
		if err != nil {
			return err
		}
		db.Close()
	}
	return nil
}

// deploymentOfTest is a database with two tenants.
func deploymentOfTest(t *testing.T) (url string, tenant directoryapi.Tenant) {
	t.Helper()
	url = pgtest.New(t, migrated)
	now := time.Now().UTC().Truncate(time.Millisecond)
	tenant = directoryapi.Tenant{ID: id.New(now), Key: "calm-otter", Name: "Calm Otter", CreatedAt: now, ModifiedAt: now}
	other := directoryapi.Tenant{ID: id.New(now), Key: "blue-river", Name: "Blue River", CreatedAt: now, ModifiedAt: now}
	data := directory.New(open(t, directory.Config(secure.Secret(url))), time.Now)
	err := data.Tx(t.Context(), func(tx *directory.Tx) error {
		return errors.Join(tx.InsertTenant(t.Context(), tenant), tx.InsertTenant(t.Context(), other))
	})
	if err != nil {
		t.Fatal(err)
	}
	return url, tenant
}

func open(t *testing.T, config pg.Config) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func source(url string) *env.Source {
	source := env.New([]string{"DATABASE_URL=" + url, "DOORWARD_OPERATOR=jo"})
	app.DeclareOperator(source)
	return source
}

// The usage of tenants is that of both services that count.
func TestTheUsageOfTenants(t *testing.T) {
	t.Parallel()
	url, tenant := deploymentOfTest(t)
	logins := usage.NewCounter(open(t, application.Config(secure.Secret(url))), time.Now)
	sent := usage.NewCounter(open(t, notification.Config(secure.Secret(url))), time.Now)
	gone := id.New(time.Now())
	logins.AddLogin(tenant.ID, nil)
	sent.AddMail(tenant.ID)
	sent.AddText(gone)
	if err := errors.Join(logins.Flush(t.Context()), sent.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour).Format(time.RFC3339)
	for _, c := range []struct{ tenant, want string }{
		{"calm-otter", "calm-otter " + today + " 1 0 1 0\n"}, {tenant.ID.String(), "calm-otter " + today + " 1 0 1 0\n"},
		{"blue-river", ""}, {"", "calm-otter " + today + " 1 0 1 0\n" + gone.String() + " " + today + " 0 0 0 1\n"},
	} {
		var out bytes.Buffer
		if err := Usage(t.Context(), source(url), UsageQuery{Tenant: c.tenant}, false, &out); err != nil || out.String() != c.want {
			t.Errorf("the usage of %q is %q, %v, want %q", c.tenant, out.String(), err, c.want)
		}
	}
	if err := Usage(t.Context(), source(url), UsageQuery{By: "week"}, false, new(bytes.Buffer)); !errors.Is(err, app.ErrUsage) {
		t.Errorf("the usage by week returns %v, want a usage error", err)
	}
	if err := Usage(t.Context(), source(url), UsageQuery{Tenant: "none"}, false, new(bytes.Buffer)); err == nil || errors.Is(err, app.ErrUsage) {
		t.Errorf("the usage of an unknown tenant returns %v", err)
	}
}

// A tenant is listed, shown, and deleted after a confirmation; it can be resumed within its grace.
func TestTenantsAreListedShownAndDeleted(t *testing.T) {
	t.Parallel()
	url, tenant := deploymentOfTest(t)
	run := func(want string, command func(out io.Writer) error) {
		t.Helper()
		var out bytes.Buffer
		if err := command(&out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("the command writes %q, %v, want %q", out.String(), err, want)
		}
	}
	run("calm-otter "+tenant.ID.String()+" ENABLED 0 0 0 Calm Otter\n", func(out io.Writer) error {
		return List(t.Context(), source(url), "calm", "enabled", false, out)
	})
	for _, name := range []string{"calm-otter", tenant.ID.String(), "calm otter"} {
		run(`"key": "calm-otter"`, func(out io.Writer) error { return Show(t.Context(), source(url), name, out) })
	}
	if err := Show(t.Context(), source(url), "none", io.Discard); err == nil {
		t.Error("a tenant that is not there is shown")
	}
	remove := func(in Deletion, typed io.Reader) (string, error) {
		var out bytes.Buffer
		err := Delete(t.Context(), source(url), in, typed, false, &out)
		return out.String(), err
	}
	in := Deletion{Tenant: "calm-otter", Reason: "left", Grace: "P7D"}
	if _, err := remove(in, nil); !errors.Is(err, app.ErrUsage) {
		t.Errorf("off a terminal the deletion returns %v, want a usage error", err)
	}
	if _, err := remove(Deletion{Tenant: "calm-otter", Grace: "P7D", Confirmed: true}, nil); !errors.Is(err, app.ErrUsage) {
		t.Errorf("without a reason the deletion returns %v, want a usage error", err)
	}
	if _, err := remove(in, strings.NewReader("blue-river\n")); err == nil || errors.Is(err, app.ErrUsage) {
		t.Errorf("with another key typed the deletion returns %v", err)
	}
	if out, err := remove(in, strings.NewReader("calm-otter\n")); err != nil || !strings.Contains(out, "calm-otter: DELETING until ") {
		t.Errorf("the deletion writes %q, %v", out, err)
	}
	run("calm-otter: ENABLED\n", func(out io.Writer) error {
		return app.ResumeTenant(t.Context(), source(url), "calm-otter", false, out)
	})
	run(" tenant delete left", func(out io.Writer) error {
		return app.OperatorEvents(t.Context(), source(url), "calm-otter", "1d", false, out)
	})
}
