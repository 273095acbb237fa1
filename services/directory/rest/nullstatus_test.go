package rest_test

import "testing"

// Clients that serialise absent members as null can create resources. In an update, and empty, a status
// stays invalid.
func TestANullStatusOfANewResourceIsTheDefault(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	directory := b.Post("/v1/directories", `{"name":"Null","status":null}`).Want(201).Href()
	const account = `{"email":"jo@example.test","givenName":"Jo","surname":"Doe","password":"Changeme1"`
	group := b.Post(directory+"/groups", `{"name":"Null","status":null}`).Want(201).Href()
	jo := b.Post(directory+"/accounts", account+`,"status":null,"emailVerificationStatus":null}`).Want(201).Href()
	b.want("emailVerificationStatus", b.Get(jo).Text("emailVerificationStatus"), "UNVERIFIED")
	for _, resource := range []string{directory, group, jo} {
		b.want(resource, b.Get(resource).Text("status"), "ENABLED")
		b.Post(resource, `{"status":null}`).WantError(400, 2000)
		b.Post(resource, `{"status":""}`).WantError(400, 2000)
	}
	b.Post(jo, `{"emailVerificationStatus":null}`).WantError(400, 2000)
	b.Post("/v1/directories", `{"name":"Empty","status":""}`).WantError(400, 2000)
	b.Post(directory+"/groups", `{"name":"Empty","status":" "}`).WantError(400, 2000)
	b.Post(directory+"/accounts", account+`,"status":""}`).WantError(400, 2000)
	b.Post(directory+"/accounts", account+`,"emailVerificationStatus":""}`).WantError(400, 2000)
}
