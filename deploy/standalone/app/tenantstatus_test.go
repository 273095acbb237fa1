package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	directorystore "github.com/doorward/doorward/services/directory/store"
)

// An operator suspends a tenant and resumes it, also twice, and each command is recorded with its reason, also one that
// was refused.
func TestAnOperatorSuspendsATenant(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, directorystore.Config)
	data, now := directorystore.New(db, time.Now), time.Now().Truncate(time.Millisecond)
	tenant := directoryapi.Tenant{ID: id.New(now), Key: "calm-otter", Name: "Calm Otter", CreatedAt: now, ModifiedAt: now}
	other := directoryapi.Tenant{ID: id.New(now), Key: "blue-river", Name: "Blue River", CreatedAt: now, ModifiedAt: now}
	err := data.Tx(t.Context(), func(tx *directorystore.Tx) error {
		return errors.Join(tx.InsertTenant(t.Context(), tenant), tx.InsertTenant(t.Context(), other))
	})
	if err != nil {
		t.Fatal(err)
	}
	source := func() *env.Source {
		return env.New([]string{"DIRECTORY_DATABASE_URL=" + pgtest.URL(db), "DOORWARD_OPERATOR=jo"})
	}
	var out bytes.Buffer
	suspend := func(name, reason string, asJSON bool) error {
		out.Reset()
		return SuspendTenant(t.Context(), source(), name, reason, asJSON, &out)
	}
	resume := func(name string) error {
		out.Reset()
		return ResumeTenant(t.Context(), source(), name, false, &out)
	}

	if err := suspend("calm-otter", "", false); !errors.Is(err, ErrUsage) {
		t.Errorf("a suspension without a reason returns %v, want a usage error", err)
	}
	if err := suspend("no-tenant", "unpaid", false); err == nil || errors.Is(err, ErrUsage) {
		t.Errorf("the suspension of an unknown tenant returns %v", err)
	}
	for _, reason := range []string{"unpaid", "still unpaid"} {
		if err := suspend("calm-otter", reason, false); err != nil || out.String() != "calm-otter: SUSPENDED\n" {
			t.Errorf("the suspension prints %q, %v", out.String(), err)
		}
	}
	var shown directoryapi.Tenant
	if err := suspend(tenant.ID.String(), "unpaid", true); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &shown); err != nil || shown.Status != directoryapi.Suspended || shown.StatusReason == nil ||
		*shown.StatusReason != "unpaid" || shown.SuspendedAt == nil || shown.DeleteAfter != nil {
		t.Errorf("the suspended tenant is %s, %v", out.String(), err)
	}
	status := func(of id.ID) string {
		t.Helper()
		found, err := data.Tenant(caller.WithTenant(t.Context(), of), of)
		if err != nil {
			t.Fatal(err)
		}
		return found.Status
	}
	if status(tenant.ID) != directoryapi.Suspended || status(other.ID) != directoryapi.Enabled {
		t.Errorf("the tenants are %s and %s", status(tenant.ID), status(other.ID))
	}
	for range 2 {
		if err := resume("calm-otter"); err != nil || out.String() != "calm-otter: ENABLED\n" {
			t.Errorf("the end of the suspension prints %q, %v", out.String(), err)
		}
	}
	if status(tenant.ID) != directoryapi.Enabled {
		t.Errorf("the tenant that was resumed is %s", status(tenant.ID))
	}

	events := func(name string) []string {
		t.Helper()
		out.Reset()
		if err := OperatorEvents(t.Context(), source(), name, "1d", false, &out); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	}
	all, of := events(""), events("calm-otter")
	if len(all) != 6 || len(of) != 5 {
		t.Fatalf("the record has %d rows, %d of the tenant:\n%s", len(all), len(of), out.String())
	}
	if want := " DONE jo " + tenant.ID.String() + " tenant resume -"; !strings.HasSuffix(of[0], want) {
		t.Errorf("the newest row is %q, want %q", of[0], want)
	}
	if want := " DONE jo " + tenant.ID.String() + " tenant suspend unpaid"; !strings.HasSuffix(of[4], want) {
		t.Errorf("the oldest row of the tenant is %q, want %q", of[4], want)
	}
	if want := " REFUSED jo - tenant suspend unpaid"; !strings.HasSuffix(all[5], want) {
		t.Errorf("the oldest row is %q, want %q", all[5], want)
	}
	if err := OperatorEvents(t.Context(), source(), "", "401d", false, &out); !errors.Is(err, ErrUsage) {
		t.Errorf("a record of 401 days is %v, want a usage error", err)
	}
}
