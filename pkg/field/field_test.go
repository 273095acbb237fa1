package field

import (
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

type inner struct {
	Name Text `json:"name"`
}

type body struct {
	inner
	Size    Int    `json:"size"`
	Open    Bool   `json:"open"`
	Owner   Link   `json:"owner"`
	Details Object `json:"details"`
	Words   List   `json:"words"`
}

type view struct {
	Href string `json:"href"`
	Name string `json:"name"`
}

func TestDecodeReadsMembers(t *testing.T) {
	var in body
	err := Decode([]byte(`{"name":"Jo","size":"12","open":"true","owner":{"href":"https://x/v1/accounts/1","id":3},"details":{"a":[1]},"words":["b"]}`), &in, view{})
	if err != nil {
		t.Fatal(err)
	}
	if in.Name.Value != "Jo" || in.Size.Value != 12 || !in.Open.Value || in.Owner.Value.Href == "" || string(in.Details.Value) != `{"a":[1]}` || in.Words.Value[0] != "b" {
		t.Fatalf("the body is decoded as %+v", in)
	}
}

func TestDecodeKeepsEscapes(t *testing.T) {
	var in body
	err := Decode([]byte(`{"name":"\ud83d\ude00 \\ud800 \u00e9","details":{"a":"\ud800"}}`), &in, view{})
	if err != nil || in.Name.Value != "\U0001F600 \\ud800 é" || string(in.Details.Value) != `{"a":"\ud800"}` {
		t.Fatalf("Decode = %v, %+v", err, in)
	}
}

func TestDecodeTellsAbsentFromNull(t *testing.T) {
	var in body
	if err := Decode([]byte(`{"name":null}`), &in, view{}); err != nil {
		t.Fatal(err)
	}
	if !in.Name.Present || !in.Name.Null || in.Name.Given() || in.Size.Present {
		t.Fatalf("the body is decoded as %+v", in)
	}
}

func TestDecodeIgnoresWhatTheRepresentationHas(t *testing.T) {
	var in body
	if err := Decode([]byte(`{"href":{"anything":1},"name":"Jo"}`), &in, view{}); err != nil || in.Name.Value != "Jo" {
		t.Fatalf("Decode = %v, %+v", err, in)
	}
}

func TestDecodeIgnoresTheMarksOfAClient(t *testing.T) {
	var in body
	if err := Decode([]byte(`{"httpStatus":200,"name":"Jo","owner":{"href":"x","httpStatus":200,"name":1}}`), &in, view{}); err != nil || in.Owner.Value.Href != "x" {
		t.Fatalf("Decode = %v, %+v", err, in)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		body string
		want *apierr.Error
	}{
		{``, apierr.Format},
		{`  `, apierr.Format},
		{`[]`, apierr.Format},
		{`null`, apierr.Format},
		{`{"name":`, apierr.Format},
		{`{"name":"a"} x`, apierr.Format},
		{"{\"name\":\"\xff\"}", apierr.Encoding},
		{`{"Name":"a"}`, apierr.UnknownProperty},
		{`{"nick":"a"}`, apierr.UnknownProperty},
		{`{"name":1}`, apierr.WrongType},
		{`{"name":"a\u0000b"}`, apierr.Format},
		{`{"name":"a\ud800b"}`, apierr.Encoding},
		{`{"name":"\uDFFF"}`, apierr.Encoding},
		{`{"name":"\udc00\ud800"}`, apierr.Encoding},
		{`{"name":"\ud83d\u0041"}`, apierr.Encoding},
		{`{"words":["a","\ud800"]}`, apierr.Encoding},
		{`{"owner":{"href":"\ud800"}}`, apierr.Encoding},
		{`{"size":"twelve"}`, apierr.WrongType},
		{`{"size":1.5}`, apierr.WrongType},
		{`{"open":1}`, apierr.WrongType},
		{`{"open":"yes"}`, apierr.WrongType},
		{`{"owner":"https://x"}`, apierr.WrongType},
		{`{"owner":{}}`, apierr.WrongType},
		{`{"details":[1]}`, apierr.WrongType},
		{`{"words":"a"}`, apierr.WrongType},
	} {
		var in body
		if err := Decode([]byte(c.body), &in, view{}); !errors.Is(err, c.want) {
			t.Errorf("Decode(%q) = %v; want %v", c.body, err, c.want)
		}
	}
}

func TestDecodeSaysWhereABodyIsMalformed(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"name\": \"Jö\" x\n}": "the body is not well-formed JSON: line 2, column 16: invalid character 'x' after object key:value pair",
		`{"name":`:                   "the body is not well-formed JSON: line 1, column 8: unexpected end of JSON input",
		`}`:                          "the body is not well-formed JSON: line 1, column 1: invalid character '}' looking for beginning of value",
		`[1]`:                        "the body is not a JSON object; it is of the type array",
		`null`:                       "the body is not a JSON object; it is null",
		`{"nick":1,"age":2}`:         `the properties "age" and "nick" are unknown; the properties that can be sent are details, name, open, owner, size and words`,
		`{"nick":"Jo"}`:              `the property "nick" is unknown; the properties that can be sent are details, name, open, owner, size and words`,
	} {
		var in body
		err := apierr.From(Decode([]byte(text), &in, view{}))
		if err.Reason != want || errors.Is(err, apierr.Format) && err.Message != notJSON {
			t.Errorf("Decode(%s) = %v, %q; want %q", text, err, err.Message, want)
		}
	}
}

func TestDecodeSaysWhatAValueMustBe(t *testing.T) {
	type part struct {
		Key   string   `json:"key"`
		Words []string `json:"words"`
	}
	var in struct {
		Part  Nullable[part]   `json:"part"`
		Parts Nullable[[]part] `json:"parts"`
	}
	for body, want := range map[string]string{
		`{"part":"x"}`:           "part must be an object",
		`{"part":[]}`:            "part must be an object",
		`{"part":{"key":5}}`:     "part key must be a string",
		`{"part":{"words":"x"}}`: "part words must be an array of strings",
		`{"parts":{}}`:           "parts must be an array of objects",
		`{"parts":[5]}`:          "parts must be an array of objects",
	} {
		if err := Decode([]byte(body), &in, nil); !errors.Is(err, apierr.WrongType) || apierr.From(err).Reason != want {
			t.Errorf("Decode(%s) = %v; want %q", body, err, want)
		}
	}
}

func TestRequiredTextHasItsLimits(t *testing.T) {
	for _, c := range []struct {
		in   Text
		want *apierr.Error
	}{
		{Text{}, apierr.Required},
		{Text{Present: true, Null: true}, apierr.Required},
		{Some(" \t"), apierr.Required},
		{Some("a"), nil},
		{Some(strings.Repeat("ä", 255)), nil},
		{Some(strings.Repeat("ä", 256)), apierr.TooLong},
	} {
		_, err := Required(c.in, "name", 255)
		if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("Required(%.20q…) = %v; want %v", c.in.Value, err, c.want)
		}
	}
	if text, _ := Required(Some("  Jo  "), "name", 255); text != "Jo" {
		t.Errorf("white space stays: %q", text)
	}
}

func TestEnumTakesAnyCase(t *testing.T) {
	for _, c := range []struct {
		in   Text
		got  string
		want *apierr.Error
	}{
		{Text{}, "ENABLED", nil},
		{Some("disabled"), "DISABLED", nil},
		{Some("paused"), "", apierr.Unsupported},
		{Some(""), "", apierr.Required},
		{Text{Present: true, Null: true}, "", apierr.Required},
	} {
		got, err := Enum(c.in, "status", "ENABLED", "ENABLED", "DISABLED")
		if c.want != nil && !errors.Is(err, c.want) || c.want == nil && (err != nil || got != c.got) {
			t.Errorf("Enum(%+v) = %q, %v", c.in, got, err)
		}
	}
}

func TestTextIsUTF8WithoutNUL(t *testing.T) {
	for text, want := range map[string]bool{"": true, "J\u00f6 \U0001F600": true, "\uFFFD": true, "a\x00b": false, "\xff": false, "\xed\xa0\x80": false} {
		if got := IsText(text); got != want {
			t.Errorf("IsText(%q) = %t", text, got)
		}
	}
}

func TestNamesAreJoinedInWords(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "A": {"A"}, "A or B": {"A", "B"}, "A, B or C": {"A", "B", "C"}} {
		if got := Or(names); got != want {
			t.Errorf("Or(%q) = %q, want %q", names, got, want)
		}
	}
}

func TestFoldGivesOneFormForWhatLooksAlike(t *testing.T) {
	for _, same := range [][2]string{{"Jo@Example.TEST", "jo@example.test"}, {"stra\u00dfe", "STRASSE"}, {"\uff2a\uff4f", "jo"}, {"e\u0301", "\u00c9"}, {"\ufb01n", "FIN"}, {"\u13b6\u13f0", "\uab86\u13f8"}} {
		if Fold(same[0]) != Fold(same[1]) {
			t.Errorf("Fold(%q) = %q, Fold(%q) = %q", same[0], Fold(same[0]), same[1], Fold(same[1]))
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"name":"Jo","size":"12"}`, `{"owner":{"href":"x"}}`, `{"details":{}}`, `{"words":[null]}`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var in body
		if err := Decode(data, &in, view{}); err != nil && apierr.From(err).Status != 400 {
			t.Fatalf("Decode(%q) = %v, which is no answer to a client", data, err)
		}
	})
}

func FuzzFold(f *testing.F) {
	f.Add("Jo@Example.TEST")
	f.Add("\u13b6\uab86\u13f0\u13f8")
	f.Add("\xf7\u037a")
	f.Fuzz(func(t *testing.T, text string) {
		if once := Fold(text); Fold(once) != once {
			t.Fatalf("Fold(Fold(%q)) = %q, Fold = %q", text, Fold(once), once)
		}
	})
}
