package mappingrule

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	var object any
	decoder := json.NewDecoder(strings.NewReader(`{"id":12345678901234567890,"data":{"id":"d","list":[{"user_id":"u"},[1,2]]},"null":null,
		"https://claims.test/role":"admin","a.b":"literal","a":{"b":"nested"},"ok":true,"empty":""}`))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"id": "12345678901234567890", "data.id": "d", "data.list[0].user_id": "u", "data.list[1][1]": "2", "https://claims.test/role": "admin",
		"a.b": "literal", "ok": "true", "empty": "", "null": "", "data": "", "data.list[2]": "", "data.list[0][0]": "", "data.id[0]": "",
		"data.list[-1]": "", "data.list[x]": "", "missing.id": "", "id.id": "", "": "", ".": "", "[0]": "",
	} {
		value, _ := Lookup(object, path)
		if text, _ := Text(value); text != want {
			t.Errorf("%q leads to %q, want %q", path, text, want)
		}
	}
	if _, found := Lookup([]any{"x"}, "[0]"); found {
		t.Error("a list is no user object")
	}
}
