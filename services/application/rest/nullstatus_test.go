package rest_test

import "testing"

// Clients that serialise absent members as null can create resources. In an update, and empty, a status
// stays invalid.
func TestANullStatusOfANewResourceIsTheDefault(t *testing.T) {
	t.Parallel()
	c := open(t)
	for path, body := range map[string]object{
		"/applications":  {"name": "Null"},
		"/organizations": {"name": "Null", "nameKey": "null"},
	} {
		body["status"] = ""
		c.refused(t, 400, 2000, "POST", path, body)
		body["status"] = nil
		made := c.create(t, path, body)
		if made["status"] != "ENABLED" {
			t.Errorf("%s: the status is %v", path, made["status"])
		}
		c.refused(t, 400, 2000, "POST", made["href"].(string), object{"status": nil})
	}
}
