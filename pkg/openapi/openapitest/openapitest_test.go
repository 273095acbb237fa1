package openapitest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/openapi/openapitest"
)

const membership = `{"href":"https://localhost:8443/v1/groupMemberships/1","createdAt":"2026-11-20T20:25:00.000Z",
	"modifiedAt":"2026-11-20T20:25:00.000Z","account":{"href":"https://localhost:8443/v1/accounts/1"},"group":{"href":"https://localhost:8443/v1/groups/1"}}`

func exchange(method, path, sent string, status int, answer string) openapitest.Exchange {
	return openapitest.Exchange{
		Method: method, URL: "https://localhost:8443/v1" + path, RequestBody: []byte(sent), Status: status, AnswerBody: []byte(answer),
		AnswerHeader: http.Header{"Content-Type": {"application/json;charset=UTF-8"}, "Location": {"https://localhost:8443/v1/groupMemberships/1"}},
	}
}

// below is an exchange at a path that is not of the management API.
func below(method, path string, status int, answer string) openapitest.Exchange {
	x := exchange(method, "", "", status, answer)
	x.URL = "https://localhost:8443" + path
	return x
}

func TestCheck(t *testing.T) {
	checker, err := openapitest.For("service")
	if err != nil {
		t.Fatal(err)
	}
	const sent = `{"account":{"href":"a"},"group":{"href":"g"}}`
	for _, test := range []struct {
		name string
		x    openapitest.Exchange
		want string // what the error says, empty for none
	}{
		{"as described", exchange("GET", "/groupMemberships/1", "", 200, membership), ""},
		{"a member of the answer that is not described", exchange("GET", "/groupMemberships/1", "", 200, strings.Replace(membership, "{", `{"extra":1,`, 1)), "extra"},
		{"a member inside a link that is not described",
			exchange("GET", "/groupMemberships/1", "", 200, strings.Replace(membership, `"account":{`, `"account":{"extra":1,`, 1)), "extra"},
		{"a member of the wrong type", exchange("GET", "/groupMemberships/1", "", 200, strings.Replace(membership, `"2026-11-20T20:25:00.000Z"`, "1", 1)), "createdAt"},
		{"a time of the wrong format", exchange("GET", "/groupMemberships/1", "", 200, strings.Replace(membership, "2026-11-20T20", "2026-11-20 20", 1)), "date-time"},
		{"a member that is missing", exchange("GET", "/groupMemberships/1", "", 200, strings.Replace(membership, `"createdAt"`, `"modifiedAt"`, 1)), "createdAt"},
		{"a status that is not described", exchange("GET", "/groupMemberships/1", "", 202, ""), "no such status"},
		{"a code that is not described", exchange("GET", "/groups/1", "", 400,
			`{"status":400,"code":7100,"message":"","developerMessage":"","moreInfo":"","requestId":""}`), "code"},
		{"an operation that is not described", exchange("DELETE", "/groupMemberships", "", 204, ""), "not described"},
		{"HEAD of a redirect", below("HEAD", "/sso?jwtRequest=x", 200, ""), ""},
		{"GET of a redirect without one", below("GET", "/sso?jwtRequest=x", 200, ""), "no such status"},
		{"an operation that does not exist", exchange("DELETE", "/groupMemberships", "", 405, ""), ""},
		{"a body as described", exchange("POST", "/groupMemberships", sent, 201, membership), ""},
		{"a body with what is read-only", exchange("POST", "/groupMemberships", strings.Replace(sent, "{", `{"createdAt":"x",`, 1), 201, membership), ""},
		{"a body with what is not described", exchange("POST", "/groupMemberships", strings.Replace(sent, "{", `{"extra":"x",`, 1), 201, membership), "extra"},
		{"text in the place of a boolean", exchange("POST", "/fields/1", `{"required":"true"}`, 200,
			`{"href":"https://x","createdAt":"2026-11-20T20:25:00.000Z","modifiedAt":"2026-11-20T20:25:00.000Z","name":"surname","required":true,"schema":{"href":"https://x"}}`), ""},
		{"a field of a form that is not described", exchange("POST", "/applications/1/oauth/revoke", "token=x&extra=1", 200, ""), "extra"},
		{"a field of a form with a wrong value", exchange("POST", "/applications/1/oauth/revoke", "token=x&token_type_hint=y", 200, ""), "token_type_hint"},
		{"a form without what it needs", exchange("POST", "/applications/1/oauth/revoke", "token=", 200, ""), "token"},
		{"a form as described", exchange("POST", "/applications/1/oauth/revoke", "token=x&token_type_hint=access_token", 200, ""), ""},
		{"a code that a form's answer does not have", exchange("POST", "/applications/1/oauth/revoke", "", 400,
			`{"status":400,"code":7100,"message":"","developerMessage":"","moreInfo":"","requestId":"","error":"invalid_request"}`), "code"},
		{"a parameter of a list that is not described", exchange("GET", "/groups/1/accounts?shoeSize=1", "", 200,
			`{"href":"https://x","offset":0,"limit":25,"size":0,"items":[]}`), "shoeSize"},
		{"a call of a hosted page with what is not described", below("GET", "/session/v1/applications/1", 200, `{"href":"https://x","extra":1}`), "extra"},
		{"a call that no hosted page may make", below("GET", "/session/v1/accounts/1", 403, ""), ""},
		{"a call that a hosted page may make and is not described", below("GET", "/session/v1/accounts/1", 200, ""), "not described"},
		{"a call of the Client API with what is not described", below("GET", "/client/calm-otter/me", 400, `{"status":400,"message":"x","code":400}`), "no such status"},
		{"an error of the Client API", below("POST", "/client/calm-otter/forgot", 400, `{"status":400,"message":"x"}`), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := checker.Check(test.x)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("Check returned %v, want %q", err, test.want)
			}
		})
	}
}
