package rest_test

import (
	"strings"
	"testing"
	"time"
)

func TestTenant(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Get("/v1/tenants/current?expand=x").Want(302).Golden("tenant_current")
	b.Get(b.tenant()).Want(200).Golden("tenant")
	b.Get(b.tenant() + "/directories").Want(200).Golden("tenant_directories")
	b.Get(b.tenant() + "/accounts").Want(200).Golden("tenant_accounts")
}

func TestTenantUpdate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.clock.Move(time.Minute)
	b.Post(
		b.tenant(), `{"name":" Shop ","key":"other","href":"ignored","accounts":{"href":"x"},"customData":{"plan":"gold"}}`).Want(200).Golden("tenant_updated")
	b.Get(b.tenant() + "/customData").Want(200).Golden("tenant_custom_data")
	for body, code := range map[string]int{
		`{"name":null}`: 2000, `{"name":" "}`: 2000, `{"name":1}`: 2004, `{"name":"` + strings.Repeat("x", 256) + `"}`: 2008,
		`{"nick":"x"}`: 2015, `[]`: 2006,
		`{"customData":1}`: 2006, `{"customData":{"-x":1}}`: 3002,
	} {
		b.Post(b.tenant(), body).WantError(400, code)
	}
	b.Post(b.tenant(), `{"name":"`+strings.Repeat("x", 255)+`"}`).Want(200)
	b.Post(b.tenant(), `{}`).Want(200)
}

func TestAnAdministratorIsInvited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.tenant() + "/invitations"
	b.Post(at, `{"email":"new@example.test"}`).Want(201).Golden("invitation")
	for body, code := range map[string]int{
		`{}`: 2000, `{"email":null}`: 2000, `{"email":"x"}`: 2006, `{"email":1}`: 2004, `{"mail":"x"}`: 2015,
	} {
		b.Post(at, body).WantError(400, code)
	}
	b.Post(at, `{"email":"`+b.signedUp.Owner.Email+`"}`).WantError(409, 2001)
}
