package list

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

var spec = Spec{
	"name":      {Column: "name", Folded: "name_folded"},
	"status":    {Column: "status", Kind: Enum, Values: []string{"ENABLED", "DISABLED"}},
	"createdAt": {Column: "created_at", Kind: Time},
	"login":     {Column: "login", Login: true},
	"hidden":    {Column: "hidden", NoFind: true},
	"unsorted":  {Column: "unsorted", NoSort: true},
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want Query
	}{
		{"", Query{Limit: 25}},
		{"offset=10&limit=40", Query{Offset: 10, Limit: 40}},
		{"limit=1000", Query{Limit: 100}},
		{"q=Jo+Doe", Query{Limit: 25, Q: "Jo Doe"}},
		{"name=jo*", Query{Limit: 25, Filters: []Filter{{Attribute: "name", Text: "jo", Match: Prefix}}}},
		{"name=*jo", Query{Limit: 25, Filters: []Filter{{Attribute: "name", Text: "jo", Match: Suffix}}}},
		{"name=*j*o*", Query{Limit: 25, Filters: []Filter{{Attribute: "name", Text: "j*o", Match: Contains}}}},
		{"name=%2Ajo&status=disabled", Query{Limit: 25, Filters: []Filter{{Attribute: "name", Text: "jo", Match: Suffix}, {Attribute: "status", Text: "DISABLED"}}}},
		{"orderBy=name%20desc,createdAt", Query{Limit: 25, Order: []Order{{Attribute: "name", Descending: true}, {Attribute: "createdAt"}}}},
		{"limit=40&limit=40&offset=1&offset=1&q=a&q=%61&orderBy=name&orderBy=name&name=x&name=x", Query{
			Offset: 1, Limit: 40, Q: "a", Order: []Order{{Attribute: "name"}}, Filters: []Filter{{Attribute: "name", Text: "x"}},
		}},
		{"createDirectory=true&encryptSecret=&challenge=x&passwordFormat=mcf&accountStore=y", Query{Limit: 25}},
		{"name=jo+tag", Query{Limit: 25, Filters: []Filter{{Attribute: "name", Text: "jo tag"}}}},
		{"login=jo+tag@x.test", Query{Limit: 25, Filters: []Filter{{Attribute: "login", Text: "jo+tag@x.test", Spaced: "jo tag@x.test"}}}},
		{"login=jo%2Btag@x.test", Query{Limit: 25, Filters: []Filter{{Attribute: "login", Text: "jo+tag@x.test"}}}},
		{"login=%20jo%0D%0A", Query{Limit: 25, Filters: []Filter{{Attribute: "login", Text: "jo"}}}},
		{"login=*a+b*", Query{Limit: 25, Filters: []Filter{{Attribute: "login", Text: "a+b", Spaced: "a b", Match: Contains}}}},
		{"orderBy=name+ASC,name+desc", Query{Limit: 25, Order: []Order{{Attribute: "name"}}}},
	} {
		if got, err := Parse(c.raw, spec); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", c.raw, got, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for raw, want := range map[string]*apierr.Error{
		"name=%zz":                       apierr.MalformedQuery,
		"=x":                             apierr.MalformedQuery,
		"name=%ff":                       apierr.MalformedQuery,
		"name":                           apierr.ParameterEmpty,
		"name=a&name=b":                  apierr.ParameterRepeated,
		"limit=3&limit=4":                apierr.ParameterRepeated,
		"orderBy=name&orderBy=createdAt": apierr.ParameterRepeated,
		"CreateDirectory=true":           apierr.QueryUnsupported,
		"createdAt=2015+02:00":           apierr.ParameterInvalid,
		"createdAt=2015-01-12T12:30:05.1234567890Z": apierr.ParameterInvalid,
		"createdAt=2015-01-12T12:30:05.Z":           apierr.ParameterInvalid,
		"createdAt=2015-01-12T12:30.5Z":             apierr.ParameterInvalid,
		"createdAt=2015-01-12T12:30:05%2B2:00":      apierr.ParameterInvalid,
		"createdAt=2015-01-12T12:30:05%2B24:00":     apierr.ParameterInvalid,
		"createdAt=2015-01-12T12:30:05%2B25:00":     apierr.ParameterInvalid,
		"createdAt=2015-01-12T12:30:05-02:60":       apierr.ParameterInvalid,
		"createdAt=[2015,2015-01-12T12%2B02:60]":    apierr.ParameterInvalid,
		"limit=0":                                   apierr.ParameterInvalid,
		"limit=x":                                   apierr.ParameterInvalid,
		"offset=-1":                                 apierr.ParameterInvalid,
		"createdAt=tomorrow":                        apierr.ParameterInvalid,
		"createdAt=[2015,2014]":                     apierr.RangeReversed,
		"createdAt=[,]":                             apierr.ParameterInvalid,
		"createdAt=[2015":                           apierr.ParameterInvalid,
		"createdAt=0000":                            apierr.ParameterInvalid,
		"createdAt=[,0001)":                         apierr.ParameterInvalid,
		"orderBy=":                                  apierr.OrderMalformed,
		"orderBy=name,":                             apierr.OrderMalformed,
		"orderBy=name+sideways":                     apierr.OrderMalformed,
		"orderBy=nick":                              apierr.OrderUnsupported,
		"orderBy=unsorted":                          apierr.OrderUnsupported,
		"nick=x":                                    apierr.QueryUnsupported,
		"hidden=x":                                  apierr.QueryUnsupported,
		"status=PAUSED":                             apierr.QueryUnsupported,
		"name%27%3B+DROP+TABLE+accounts=x":          apierr.QueryUnsupported,
	} {
		if _, err := Parse(raw, spec); !errors.Is(err, want) {
			t.Errorf("Parse(%q) = %v; want %v", raw, err, want)
		}
	}
}

func TestAPageBeginsAfterAnItem(t *testing.T) {
	large := Spec{"name": {Column: "name"}, AfterKey: After("id")}
	item := id.New(time.Now())
	if q, err := Parse("name=a&limit=5&after="+item.String(), large); err != nil || q.After != item || len(q.Filters) != 1 {
		t.Errorf("Parse = %+v, %v, want the page after %s", q, err, item)
	}
	for raw, want := range map[string]*apierr.Error{
		"after=":  apierr.ParameterInvalid,
		"after=x": apierr.ParameterInvalid,
		"after=https://id.example.com/v1/accounts/" + item.String():        apierr.ParameterInvalid,
		"after=0000000000000000000000":                                     apierr.ParameterInvalid,
		"orderBy=name&after=" + item.String():                              apierr.ParameterInvalid,
		"after=" + item.String() + "&after=" + id.New(time.Now()).String(): apierr.ParameterRepeated,
		"orderBy=after": apierr.OrderUnsupported,
	} {
		if _, err := Parse(raw, large); !errors.Is(err, want) {
			t.Errorf("Parse(%q) = %v, want %v", raw, err, want)
		}
	}
	if _, err := Parse("after="+item.String(), spec); !errors.Is(err, apierr.QueryUnsupported) {
		t.Errorf("a collection that cannot be read so: %v, want %v", err, apierr.QueryUnsupported)
	}
}

func TestARefusalListsWhatThereIs(t *testing.T) {
	for raw, want := range map[string]string{
		"nick=x":        `the collection cannot be searched by "nick", only by createdAt, login, name, status or unsorted`,
		"orderBy=nick":  `the collection cannot be sorted by "nick", only by createdAt, hidden, login, name or status`,
		"status=PAUSED": "status must be ENABLED or DISABLED",
		"createdAt=no": `createdAt query parameter value is invalid or an unexpected type. It must be a datetime or a range: ` +
			`"no" is not the beginning of a datetime such as 2026-11-20T20:25:00.000Z`, // its first sentence is a literal that clients compare
		"name=a&name=b": `the query parameter "name" has two values, "a" and "b"; send one`,
	} {
		if _, err := Parse(raw, spec); apierr.From(err).Reason != want {
			t.Errorf("Parse(%q) = %v; want %q", raw, err, want)
		}
	}
}

func TestPeriods(t *testing.T) {
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		v, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for value, want := range map[string][2]string{
		"2015":                                    {"2015-01-01T00:00:00Z", "2016-01-01T00:00:00Z"},
		"2015-01":                                 {"2015-01-01T00:00:00Z", "2015-02-01T00:00:00Z"},
		"2015-01-12T12":                           {"2015-01-12T12:00:00Z", "2015-01-12T13:00:00Z"},
		"2015-01-12T12:30:05.123Z":                {"2015-01-12T12:30:05.123Z", "2015-01-12T12:30:05.124Z"},
		"2015-01-12T12:30:05.1Z":                  {"2015-01-12T12:30:05.1Z", "2015-01-12T12:30:05.2Z"},
		"2015-01-12T12:30:05.123456":              {"2015-01-12T12:30:05.123456Z", "2015-01-12T12:30:05.123457Z"},
		"2015-01-12T12:30:05.123000000Z":          {"2015-01-12T12:30:05.123Z", "2015-01-12T12:30:05.123001Z"},
		"2015-01-12T12:30:05.123+02:00":           {"2015-01-12T10:30:05.123Z", "2015-01-12T10:30:05.124Z"},
		"2015-01-12T12:30:05 02:00":               {"2015-01-12T10:30:05Z", "2015-01-12T10:30:06Z"},
		"2015-01-12T12-05:30":                     {"2015-01-12T17:30:00Z", "2015-01-12T18:30:00Z"},
		"[2015-01-12T12:30:05.000+00:00,]":        {"2015-01-12T12:30:05Z", ""},
		"[2015-01-12]":                            {"2015-01-12T00:00:00Z", "2015-01-13T00:00:00Z"},
		"[2012,2015]":                             {"2012-01-01T00:00:00Z", "2016-01-01T00:00:00Z"},
		"(2012, 2015)":                            {"2013-01-01T00:00:00Z", "2015-01-01T00:00:00Z"},
		"[2012-05,]":                              {"2012-05-01T00:00:00Z", ""},
		"(,2015-01-14)":                           {"", "2015-01-14T00:00:00Z"},
		"[2015-01-12T12:30:05Z,2015-01-12T12:31]": {"2015-01-12T12:30:05Z", "2015-01-12T12:32:00Z"},
	} {
		from, until, err := parsePeriod(value)
		if err != nil || !from.Equal(at(want[0])) || !until.Equal(at(want[1])) {
			t.Errorf("parsePeriod(%q) = %v, %v, %v; want %v", value, from, until, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"q=a&limit=3", "name=*a*", "createdAt=[2014,2015)", "orderBy=name+desc", "%00=%ff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := Parse(raw, spec)
		if err != nil {
			if apierr.From(err).Status != 400 {
				t.Fatalf("Parse(%q) = %v, which is no answer to a client", raw, err)
			}
			return
		}
		if query.Limit < 1 || query.Limit > MaxLimit || query.Offset < 0 {
			t.Fatalf("Parse(%q) = %+v", raw, query)
		}
	})
}
