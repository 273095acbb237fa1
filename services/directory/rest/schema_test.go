package rest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest/resttest"
)

// fields returns the addresses of a schema's fields by their names.
func (b *bench) fields(schema string) map[string]string {
	b.Helper()
	hrefs := map[string]string{}
	for _, item := range b.Get(schema + "/fields").Want(200).Object()["items"].([]any) {
		field := item.(map[string]any)
		hrefs[field["name"].(string)] = field["href"].(string)
	}
	if len(hrefs) != 2 {
		b.Fatalf("%s has the fields %v", schema, hrefs)
	}
	return hrefs
}

func TestSchema(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	schema := b.Get(b.directory("Staff")).Want(200).Href("accountSchema")
	b.Get(schema).Want(200).Golden("schema")
	b.Get(schema + "/fields").Want(200).Golden("schema_fields")
	b.Get(schema + "/fields?limit=1&offset=1&orderBy=modifiedAt").Want(200).Golden("schema_fields_page")
	b.Get(schema+"/fields?required=true").WantError(400, 2105)
	if found := b.Get(schema + "/fields?name=GivenName").Want(200).
		Items(); len(found) != 1 || found[0]["name"] != "givenName" {
		t.Errorf("the field givenName is found as %v", found)
	}
	for order, want := range map[string]string{
		"name": "givenName", "name+desc": "surname", "required,name+desc": "surname",
	} {
		if first := b.Get(schema + "/fields?orderBy=" + order).Want(200).Items()[0]["name"]; first != want {
			t.Errorf("the first field by %s is %s", order, first)
		}
	}
	surname := b.fields(schema)["surname"]
	b.Get(surname).Want(200).Golden("field")
	b.clock.Move(time.Minute)
	read := b.Post(surname, `{"required":"true","name":"nickname","schema":{"href":"x"}}`).Want(200).
		Golden("field_required")
	if last := b.Get(schema + "/fields?orderBy=required+desc,name").Want(200).Items()[1]["name"]; last != "givenName" {
		t.Errorf("%s is the last field, though it is not required", last)
	}
	if modified := b.Get(schema).Want(200).Text("modifiedAt"); modified != read.Text("modifiedAt") {
		t.Errorf("the schema was modified at %s, its field at %s", modified, read.Text("modifiedAt"))
	}
	b.Post(surname, `{}`).Want(200).Golden("field_required")
	b.Post(surname, string(read.Body)).Want(200).Golden("field_required")
	b.Post(surname, `{"required":false}`).Want(200)
	b.Get(surname).Want(200).Golden("field")
}

func TestSchemaRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	schema := b.Get(b.directory("Staff")).Want(200).Href("accountSchema")
	givenName := b.fields(schema)["givenName"]
	b.Post(givenName, `{"required":null}`).WantError(400, 2000)
	b.Post(givenName, `{"required":1}`).WantError(400, 2004)
	b.Post(givenName, `{"required":"yes"}`).WantError(400, 2004)
	b.Post(givenName, `{"requires":true}`).WantError(400, 2015)
	b.Post(schema, `{}`).WantError(405, 1100)
	b.Delete(schema).WantError(405, 1100)
	b.Post(schema+"/fields", `{"name":"middleName"}`).WantError(405, 1100)
	b.Delete(givenName).WantError(405, 1100)
	unknown := id.New(b.clock.Now()).String()
	b.Get("/v1/schemas/"+unknown).WantError(404, 404)
	b.Get("/v1/schemas/"+unknown+"/fields").WantError(404, 404)
	b.Get("/v1/fields/"+unknown).WantError(404, 404)
	b.Post("/v1/fields/"+unknown, `{"required":true}`).WantError(404, 404)
}

func TestWhatASchemaRequires(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	n := 0
	account := func(names string) resttest.Answer {
		n++
		return b.Post(staff+"/accounts", fmt.Sprintf(`{"email":"a%d@example.test","password":"Changeme1!"%s}`, n, names))
	}
	fields := b.fields(b.Get(staff).Href("accountSchema"))
	without := account("").Want(201).Href()
	b.Post(fields["givenName"], `{"required":true}`).Want(200)
	account("").WantError(400, 2000)
	account(`,"givenName":null`).WantError(400, 2000)
	account(`,"givenName":" "`).WantError(400, 2000)
	account(`,"givenName":""`).WantError(400, 2000)
	account(`,"givenName":"Jo","surname":""`).Want(201) // which is not required
	jo := account(`,"givenName":"Jo"`).Want(201).Href()
	b.Post(jo, `{"givenName":null}`).WantError(400, 2000)
	b.Post(jo, `{"givenName":""}`).WantError(400, 2000)
	b.Post(jo, `{"surname":null}`).Want(200)
	b.Post(fields["surname"], `{"required":"true"}`).Want(200)
	account(`,"givenName":"Jo"`).WantError(400, 2000)
	account(`,"givenName":"Jo","surname":"Doe"`).Want(201)
	b.Post(without, `{"username":"older"}`).Want(200)      // which is not checked
	b.Post(without, string(b.Get(without).Body)).Want(200) // nor when it is sent back
	b.mirrored(staff)
	b.Post(without, `{"status":"DISABLED"}`).Want(200)
}

func TestTheAdministratorsDirectoryHasASchemaAndPolicies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	administrators := b.Get(base.To("directories", b.signedUp.Directory.ID)).Want(200)
	b.fields(administrators.Href("accountSchema"))
	b.Get(administrators.Href("accountCreationPolicy") + "/welcomeEmailTemplates").Want(200)
	b.Get(administrators.Href("passwordPolicy") + "/strength").Want(200)
}
