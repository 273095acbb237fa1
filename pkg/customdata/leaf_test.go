package customdata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/customdata"
)

// said writes a leaf on a line: its path, [] for an element, its text, and what
// it is besides.
func said(leaf customdata.Leaf) string {
	line := leaf.Path
	if leaf.Element {
		line += "[]"
	}
	line += "=" + leaf.Text
	if leaf.Number != nil {
		line += " number " + *leaf.Number
	}
	if leaf.Start != nil {
		line += " from " + leaf.Start.Format(time.RFC3339Nano)
	}
	return line
}

func leaves(t *testing.T, text string) []string {
	t.Helper()
	var lines []string
	for _, leaf := range parse(t, text).Leaves() {
		lines = append(lines, said(leaf))
	}
	return lines
}

func TestLeaves(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`:                       nil,
		`{"a":null,"b":{},"c":[]}`: nil,
		`{"color":"White"}`:        {"color=white"},
		`{"a":"ＳＴＲＡẞＥ","b":"\u0041"}`:                               {"a=strasse", "b=a"},
		`{"greetings":{"morning":"Good day","n":{"x":1}},"last":2}`: {"greetings.morning=good day", "greetings.n.x=1 number 1", "last=2 number 2"},
		`{"yes":true,"no":false}`:                                   {"yes=true", "no=false"},
		`{"a":[1,"B",[true,{"c":"d"}],null,{"c":2}],"e":"f"}`:       {"a[]=1 number 1", "a[]=b", "a[]=true", "a.c[]=d", "a.c[]=2 number 2", "e=f"},
		`{"a":1.50,"b":-0.5E-3,"c":1E2}`:                            {"a=1.50 number 1.50", "b=-0.5e-3 number -0.5E-3", "c=1e2 number 1E2"},
		`{"a":"2015","b":"2015-01","c":"2015-01-12T12:30:05.123Z","d":2015,"e":"20156"}`: {
			"a=2015 from 2015-01-01T00:00:00Z", "b=2015-01 from 2015-01-01T00:00:00Z", "c=2015-01-12t12:30:05.123z from 2015-01-12T12:30:05.123Z",
			"d=2015 number 2015", "e=20156"},
		`{"a":"\u0000","b":"x\u0000y","c":"z"}`: {"c=z"},
		`{"a":"","b":"\ud800"}`:                 {"a=", "b=\ufffd"},
	} {
		if got := leaves(t, text); !slices.Equal(got, want) {
			t.Errorf("%s has the leaves %q; want %q", text, got, want)
		}
	}
}

func TestLeavesAreBounded(t *testing.T) {
	long := strings.Repeat("é", customdata.MaxText)
	if got := leaves(t, `{"a":"`+long+`","b":"`+long+`é","c":"`+strings.Repeat(`\u00e9`, customdata.MaxText)+`"}`); len(got) != 2 || got[0] != "a="+long || got[1] != "c="+long {
		t.Errorf("long texts give %d leaves", len(got))
	}
	if got := leaves(t, `{"a":"`+strings.Repeat("ﷺ", customdata.MaxText)+`"}`); len(got) != 0 {
		t.Error("a text that is long in its normal form is a leaf")
	}

	key := strings.Repeat("k", 255)
	path := key + "." + key + "."
	if got := leaves(t, fmt.Sprintf(`{%q:{%q:{"a":1,"ab":2}},"b":3}`, key, key)); !slices.Equal(got, []string{"b=3 number 3"}) {
		t.Errorf("paths of %d characters give %q", len(path)+1, got)
	}
	if got := leaves(t, fmt.Sprintf(`{%q:{%q:{"a":1,"ab":2}},"b":3}`, key, key[1:])); len(got) != 2 {
		t.Errorf("a path of %d characters returns %q", customdata.MaxPath, got)
	}

	for number, numeric := range map[string]bool{
		strings.Repeat("9", 400): true, strings.Repeat("9", 401): false, "1e399": true, "1e400": false, "1e-399": true, "1e-400": false,
		"1e100000000000000000000": false, "0e-99999": false, "-1.7976931348623157e308": true, "5e-324": true, "123.456e-2": true,
	} {
		found := parse(t, `{"n":`+number+`}`).Leaves()
		if len(found) != 1 || (found[0].Number != nil) != numeric || found[0].Text != number {
			t.Errorf("%.20s… has the leaves %+v", number, found)
		}
	}
	if got := leaves(t, `{"n":`+strings.Repeat("9", 513)+`}`); len(got) != 0 {
		t.Error("a number of 513 digits is a leaf")
	}

	many := parse(t, `{"none":[`+strings.Repeat("null,", 5000)+`null],"a":[`+strings.Repeat("1,", 1500)+`1],"b":2}`).Leaves()
	if len(many) != customdata.MaxLeaves || many[0].Path != "a" || many[len(many)-1].Path != "a" {
		t.Errorf("the document has %d leaves, or they are not those of a", len(many))
	}
}
