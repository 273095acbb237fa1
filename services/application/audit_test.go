package application_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/telemetry/telemetrytest"
)

func TestLoginsAreAudited(t *testing.T) {
	x := openThrottled(t)
	other := x.Account(t, x.tenant, x.people, "other@example.test")
	found, err := x.Directories.Account(t.Context(), directoryapi.Ref{Tenant: x.tenant, ID: other})
	if err != nil {
		t.Fatal(err)
	}
	log := telemetrytest.NewLog(t)
	x.expect(apierr.WrongPassword, home, jo, wrong)
	x.expect(nil, home, "other@example.test", right)
	complete := applicationapi.CompleteLogin{Tenant: x.tenant, Application: x.app, Account: found.ID}
	if _, err := x.service.CompleteLogin(t.Context(), complete); err != nil {
		t.Fatal(err)
	}
	complete.Application = x.NewID()
	if _, err := x.service.CompleteLogin(t.Context(), complete); !errors.Is(err, apierr.NotFound) {
		t.Fatal(err)
	}
	x.service.RecordPending()
	tenant, app := x.tenant.String(), x.app.String()
	want := []map[string]any{
		{"by": "password", "application": app, "account": other.String(), "tenant": tenant, "client": home},
		{"by": "other", "application": app, "account": other.String(), "tenant": tenant},
		{"by": "other", "application": complete.Application.String(), "code": 404.0, "tenant": tenant},
		{"by": "password", "application": app, "code": float64(apierr.WrongPassword.Code), "tenant": tenant, "client": home,
			"account": x.jo(t).String(), "directory": x.people.String()},
	}
	if found := log.Audited(t, "login"); !reflect.DeepEqual(found, want) {
		t.Errorf("audited is\n%v, want\n%v", found, want)
	}
}
