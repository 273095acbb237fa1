package customdata_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
)

func parse(t testing.TB, text string) customdata.Document {
	t.Helper()
	d, err := customdata.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%.100q) = %v", text, err)
	}
	return d
}

func TestParse(t *testing.T) {
	for sent, want := range map[string]string{
		`{}`:                                   `{}`,
		" {\t} \r\n":                           `{}`,
		`{"a":1,"b":"x"}`:                      `{"a":1,"b":"x"}`,
		`{ "a" : [ 1 , 2 , { "b" : null } ] }`: `{"a":[1,2,{"b":null}]}`,
		`{"z":1,"a":2}`:                        `{"z":1,"a":2}`,
		`{"a":{},"b":[],"c":[[],{}]}`:          `{"a":{},"b":[],"c":[[],{}]}`,
		`{"a":" spaces, [brackets] and \" stay "}`: `{"a":" spaces, [brackets] and \" stay "}`,
		`{"a":"\\","b":"\\\""}`:                    `{"a":"\\","b":"\\\""}`,
		`{"a":true,"b":false}`:                     `{"a":true,"b":false}`,
		`{"_":1,"a-b":2,"0":3,"A_9-":4}`:           `{"_":1,"a-b":2,"0":3,"A_9-":4}`,
		`{"\u0061\u005f":1}`:                       `{"a_":1}`,

		// Numbers and strings stay as they are.
		`{"a":1e100000,"b":1.50,"c":-0,"d":123456789012345678901234567890.123456789012345678901234567890,"e":1E+2}`: `{"a":1e100000,"b":1.50,"c":-0,"d":123456789012345678901234567890.123456789012345678901234567890,"e":1E+2}`,
		`{"a":"\u0000","b":"\ud800","c":"\u00e9é","d":"<&>"}`:                                                       `{"a":"\u0000","b":"\ud800","c":"\u00e9é","d":"<&>"}`,

		// What a representation shows is ignored, at the top.
		`{"href":"https://a/b"}`:                              `{}`,
		`{"href":"x","createdAt":"y","a":1,"modifiedAt":"z"}`: `{"a":1}`,
		`{"a":1,"href":"x","b":{"c":2},"createdAt" : "y"}`:    `{"a":1,"b":{"c":2}}`,

		// Of doubles the last one counts, at every level.
		`{"a":1,"a":2}`:                                           `{"a":2}`,
		`{"a":1,"b":2,"a":3}`:                                     `{"b":2,"a":3}`,
		`{"a":1,"a":2,"a":3,"\u0061":4}`:                          `{"a":4}`,
		`{"x":[{"a":[1,{"b":2,"b":3}],"c":4,"a":5},{"a":6}]}`:     `{"x":[{"c":4,"a":5},{"a":6}]}`,
		`{"x":{"b":1,"b":2},"y":{"b":1,"c":2,"b":3},"x":{"a":1}}`: `{"y":{"c":2,"b":3},"x":{"a":1}}`,
		manyTwice(40):                                             manyOnce(40),
	} {
		if got := parse(t, sent); string(got) != want {
			t.Errorf("Parse(%s) = %s; want %s", sent, got, want)
		}
	}
}

// manyTwice is an object that has each of n keys twice.
func manyTwice(n int) string {
	return `{"deep":{` + pairs(n, "former") + `,` + pairs(n, "last") + `}}`
}

func manyOnce(n int) string { return `{"deep":{` + pairs(n, "last") + `}}` }

func pairs(n int, value string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"k%d":%q`, i, value))
	}
	return strings.Join(all, ",")
}

func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("k", 256)
	for sent, want := range map[string]*apierr.Error{
		``:                               apierr.Format,
		` `:                              apierr.Format,
		`{`:                              apierr.Format,
		`{"a":}`:                         apierr.Format,
		`{"a":01}`:                       apierr.Format,
		`{"a":NaN}`:                      apierr.Format,
		`{} {}`:                          apierr.Format,
		`[]`:                             apierr.Format,
		`"x"`:                            apierr.Format,
		`null`:                           apierr.Format,
		"{\"a\":\"\x00\"}":               apierr.Format,
		"\ufeff{}":                       apierr.Format,
		"{\"a\":\"\xff\"}":               apierr.Encoding,
		"{\"a\":\"\xed\xa0\x80\"}":       apierr.Encoding,
		`{"":1}`:                         apierr.CustomDataKeyEmpty,
		`{"a":[{"":1}]}`:                 apierr.CustomDataKeyEmpty,
		`{"` + long + `":1}`:             apierr.CustomDataKeyLong,
		`{"a":{"b":{"` + long + `":1}}}`: apierr.CustomDataKeyLong,
		`{"` + strings.Repeat(`\u00e9`, 256) + `":1}`: apierr.CustomDataKeyLong,
		`{"` + strings.Repeat(`é`, 255) + `":1}`:      apierr.CustomDataKeyInvalid,
		`{"-a":1}`:          apierr.CustomDataKeyInvalid,
		`{"a.b":1}`:         apierr.CustomDataKeyInvalid,
		`{"a b":1}`:         apierr.CustomDataKeyInvalid,
		`{"a\u0000":1}`:     apierr.CustomDataKeyInvalid,
		`{"$":1}`:           apierr.CustomDataKeyInvalid,
		`{"a":{"é":1}}`:     apierr.CustomDataKeyInvalid,
		`{"a":[[{"-":1}]]}`: apierr.CustomDataKeyInvalid,
		`{"meta":1}`:        apierr.CustomDataReserved,
		`{"spMeta":1}`:      apierr.CustomDataReserved,
		`{"spmeta":1}`:      apierr.CustomDataReserved,
		`{"ionmeta":1}`:     apierr.CustomDataReserved,
		`{"ionMeta":{}}`:    apierr.CustomDataReserved,
		`{"\u006deta":"x"}`: apierr.CustomDataReserved,
		`{"href":null}`:     apierr.CustomDataReserved,
		`{"href":{"a":1}}`:  apierr.CustomDataReserved,
		`{"createdAt":1}`:   apierr.CustomDataReserved,
	} {
		if _, err := customdata.Parse([]byte(sent)); !errors.Is(err, want) {
			t.Errorf("Parse(%.80s) = %v; want %v", sent, err, want)
		}
	}
	for _, fine := range []string{`{"HREF":1,"Meta":2,"sp_meta":3}`, `{"` + long[1:] + `":1}`} {
		parse(t, fine)
	}
}

func TestTheDepthIsBoundedByTheParserOnly(t *testing.T) {
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels-1) + `{}` + strings.Repeat(`}`, levels-1)
	}
	if d := parse(t, nested(9990)); string(d) != nested(9990) || len(d.Leaves()) != 0 {
		t.Error("a deep document is another one")
	}
	for _, levels := range []int{9991, 10001, 1000000} {
		if _, err := customdata.Parse([]byte(nested(levels))); !errors.Is(err, apierr.Format) {
			t.Errorf("%d levels are %v", levels, err)
		}
	}
	if _, err := customdata.Parse([]byte(`{"a":` + strings.Repeat("[", 5000000))); !errors.Is(err, apierr.Format) {
		t.Errorf("arrays that do not end are %v", err)
	}
}

func TestTheSizeIsThatOfTheWholeDocument(t *testing.T) {
	sized := func(key string, size int) string {
		return `{"` + key + `":"` + strings.Repeat("x", size-len(`{"":""}`)-len(key)) + `"}`
	}
	const most = customdata.MaxSize
	if most != 10485760 {
		t.Fatalf("MaxSize is %d", most)
	}
	for _, size := range []int{most - 1, most} {
		if d := parse(t, sized("a", size)); len(d) != size {
			t.Errorf("%d bytes became %d", size, len(d))
		}
	}
	if _, err := customdata.Parse([]byte(sized("a", most+1))); !errors.Is(err, apierr.CustomDataSize) {
		t.Errorf("a byte too much is %v", err)
	}
	padded := `{"href":"https://localhost/v1", ` + sized("a", most)[1:] + strings.Repeat(" ", 1000)
	if d := parse(t, padded); len(d) != most {
		t.Errorf("what is not kept counts: %d", len(d))
	}

	full := parse(t, sized("a", most-len(`"b":1,`)))
	merged, err := full.Merge(parse(t, `{"b":1}`))
	if err != nil || len(merged) != most {
		t.Errorf("merged to %d bytes, %v", len(merged), err)
	}
	if kept, err := full.Merge(parse(t, `{"b":12}`)); !errors.Is(err, apierr.CustomDataSize) || kept != full {
		t.Errorf("merged over the limit: %v", err)
	}
	if _, err := full.Merge(parse(t, sized("a", most))); err != nil {
		t.Errorf("what is replaced counts: %v", err)
	}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ document, in, want string }{
		{`{}`, `{"a":1}`, `{"a":1}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
		{`{"a":1}`, `{"href":"x"}`, `{"a":1}`},
		{`{"a":1,"b":2,"c":3}`, `{"d":4,"b":[5]}`, `{"a":1,"b":[5],"c":3,"d":4}`},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"c":3}}`, `{"a":{"c":3}}`},
		{`{"a":1}`, `{"a":null}`, `{"a":null}`},
		{`{"a":"},\"b\":{"}`, `{"b":"\\"}`, `{"a":"},\"b\":{","b":"\\"}`},
	} {
		got, err := parse(t, c.document).Merge(parse(t, c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s with %s = %s, %v; want %s", c.document, c.in, got, err, c.want)
		}
	}
	var none customdata.Document
	if got, err := none.Merge(parse(t, `{"a":1}`)); err != nil || got != `{"a":1}` {
		t.Errorf("the zero document with a key = %s, %v", got, err)
	}
}

func TestWithout(t *testing.T) {
	for _, c := range []struct{ document, key, want string }{
		{`{"a":1,"b":{"a":2},"c":3}`, "a", `{"b":{"a":2},"c":3}`},
		{`{"a":1,"b":{"a":2},"c":3}`, "b", `{"a":1,"c":3}`},
		{`{"a":1,"b":{"a":2},"c":3}`, "c", `{"a":1,"b":{"a":2}}`},
		{`{"a":1}`, "a", `{}`},
		{`{"a":1}`, "A", `{"a":1}`},
		{`{"a":1}`, "", `{"a":1}`},
		{`{}`, "a", `{}`},
	} {
		if got := parse(t, c.document).Without(c.key); string(got) != c.want {
			t.Errorf("%s without %s = %s; want %s", c.document, c.key, got, c.want)
		}
	}
}

func TestTheMemberOfABody(t *testing.T) {
	type body struct {
		CustomData customdata.Change `json:"customData,omitzero"`
	}
	for sent, want := range map[string]string{
		`{}`:                             `{}`,
		`{"customData":null}`:            `{"customData":null}`,
		`{"customData":{}}`:              `{"customData":{}}`,
		`{"customData":{"href":"x"}}`:    `{"customData":{}}`,
		`{"customData":{ "a" : 1.0 }}`:   `{"customData":{"a":1.0}}`,
		`{"customData":{"a":"\u0000x"}}`: `{"customData":{"a":"\u0000x"}}`,
	} {
		var b body
		if err := json.Unmarshal([]byte(sent), &b); err != nil {
			t.Errorf("%s is %v", sent, err)
		}
		if got, err := json.Marshal(b); err != nil || string(got) != want {
			t.Errorf("%s travels as %s, %v; want %s", sent, got, err, want)
		}
	}
	for sent, want := range map[string]*apierr.Error{
		`{"customData":"x"}`: apierr.Format, `{"customData":[]}`: apierr.Format, `{"customData":7}`: apierr.Format,
		`{"customData":{"":1}}`: apierr.CustomDataKeyEmpty, `{"customData":{"meta":1}}`: apierr.CustomDataReserved,
	} {
		var b body
		if err := json.Unmarshal([]byte(sent), &b); !errors.Is(err, want) {
			t.Errorf("%s is %v; want %v", sent, err, want)
		}
	}
}

var seeds = []string{
	`{}`, `{"a":1,"b":{"c":[true,null,"x"]}}`, `{"a":1e999999999,"a":2}`, `{"href":"x","a":{"b":1,"b":{"c":1,"c":2}}}`, `{"":1}`, `{"meta":1}`,
	`{"a":"\u0000\ud83d\ude00\\\""}`, `[{"a":1}]`, `{"start":"2015-01-12T12:30:05.123Z","n":-0.5e-3}`, " {\n\"a\" : [ ] }\t", `{"a":[[[{"b":{}}]]]}`,
}

func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := customdata.Parse([]byte(text))
		if err != nil {
			if apierr.From(err).Status != 400 {
				t.Fatalf("Parse(%q) = %v, which is no answer to a client", text, err)
			}
			return
		}
		if got, want := values(t, string(d)), values(t, text); !reflect.DeepEqual(got, want) {
			t.Fatalf("Parse(%q) = %s", text, d)
		}
		if again := parse(t, string(d)); again != d {
			t.Fatalf("%s is read back as %s", d, again)
		}
		for _, leaf := range d.Leaves() {
			if leaf.Path == "" || len(leaf.Path) > customdata.MaxPath || strings.ContainsRune(leaf.Text, 0) {
				t.Fatalf("%s has the leaf %+v", d, leaf)
			}
		}
	})
}

func FuzzMerge(f *testing.F) {
	for i, seed := range seeds {
		f.Add(seed, seeds[len(seeds)-1-i], "a")
	}
	f.Fuzz(func(t *testing.T, document, in, key string) {
		d, err := customdata.Parse([]byte(document))
		if err != nil {
			return
		}
		sent, err := customdata.Parse([]byte(in))
		if err != nil {
			return
		}
		merged, err := d.Merge(sent)
		if err != nil {
			t.Fatal(err)
		}
		want := values(t, document)
		for name, value := range values(t, in) {
			want[name] = value
		}
		if got := values(t, string(merged)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s with %s = %s", d, sent, merged)
		}
		delete(want, key)
		rest := merged.Without(key)
		if got := values(t, string(rest)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s without %q = %s", merged, key, rest)
		}
		if parse(t, string(rest)) != rest {
			t.Fatalf("%s is no document", rest)
		}
	})
}

// values is a document as encoding/json reads it, but for what is ignored.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	for _, name := range []string{"href", "createdAt", "modifiedAt"} {
		delete(object, name)
	}
	return object
}

// Documents that would take minutes if anything were done more than once for
// each of their characters.
func TestHostileDocumentsOfFullSize(t *testing.T) {
	fill := func(head, tail string, next func(i int) string) string {
		var text strings.Builder
		text.WriteString(head)
		for i := 0; ; i++ {
			more := next(i)
			if text.Len()+len(more)+len(tail)+len(`,"last":1`) > customdata.MaxSize {
				text.WriteString(tail)
				return text.String()
			}
			text.WriteString(more)
		}
	}
	same := func(piece string) func(int) string { return func(int) string { return piece } }
	longKey := `{"` + strings.Repeat("k", 255) + `":`
	for what, c := range map[string]struct {
		text   string
		leaves int
	}{
		"many keys":                          {`{"z":{` + pairs(49_000, strings.Repeat("x", 180)) + `}}`, customdata.MaxLeaves},
		"one key many times":                 {`{` + strings.Repeat(`"a":1,`, 49_000) + `"a":1}`, 1},
		"a large object before small ones":   {`{"z":[{` + pairs(25_000, "") + `}` + strings.Repeat(`,{"a":1}`, 24_000) + `]}`, customdata.MaxLeaves},
		"values below long paths":            {fill(strings.Repeat(longKey, 9000)+`[1`, `]`+strings.Repeat(`}`, 9000), same(`,1`)), 0},
		"texts that grow by normalisation":   {fill(`{"a":[1`, `]}`, same(`,"`+strings.Repeat("ﷺ", 512)+`"`)), 1},
		"a number":                           {fill(`{"a":1`, `}`, same("9")), 0},
		"a text of escapes":                  {fill(`{"a":"`, `"}`, same(`\\`)), 0},
		"doubles inside of what is replaced": {strings.Repeat(`{"a":1,"a":`, 9000) + `2` + strings.Repeat(`}`, 9000), 0},
	} {
		t.Run(what, func(t *testing.T) {
			d := parse(t, c.text)
			if n := len(d.Leaves()); n != c.leaves {
				t.Errorf("%d leaves, want %d", n, c.leaves)
			}
			d = d.Without("z")
			if merged, err := d.Merge(`{"last":1}`); err != nil || merged.Without("last") != d {
				t.Errorf("merged to %d bytes, %v", len(merged), err)
			}
		})
	}
}

func TestTheKeysOfAllLevelsAreCounted(t *testing.T) {
	const most = 50_000
	for what, text := range map[string]string{
		"one object":      `{` + pairs(most+1, "") + `}`,
		"nested":          `{"a":{` + pairs(most, "") + `}}`,
		"in an array":     `{"a":[` + strings.TrimSuffix(strings.Repeat(`{"b":1},`, most), ",") + `]}`,
		"one many times":  `{` + strings.Repeat(`"a":1,`, most) + `"a":1}`,
		"600,000 of them": `{` + pairs(600_000, "123") + `}`,
	} {
		if _, err := customdata.Parse([]byte(text)); !errors.Is(err, apierr.CustomDataSize) {
			t.Errorf("%s: %v", what, err)
		}
	}
	full, half := parse(t, `{`+pairs(most, "")+`}`), parse(t, `{"z":{`+pairs(most/2, "")+`}}`)
	for what, c := range map[string]struct {
		d, in customdata.Document
		good  bool
	}{
		"one more": {full, `{"one":1}`, false}, "one for another": {full, `{"k0":2}`, true}, "both halves": {half, parse(t, `{"y":{`+pairs(most/2, "")+`}}`), false},
		"both halves but two": {half, parse(t, `{"y":{`+pairs(most/2-2, "")+`}}`), true},
	} {
		if merged, err := c.d.Merge(c.in); (err == nil) != c.good || err != nil && (!errors.Is(err, apierr.CustomDataSize) || merged != c.d) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatStandsInAText(t *testing.T) {
	long, tooLong := strings.Repeat("ä", customdata.MaxPrinted/2), strings.Repeat("ä", customdata.MaxPrinted/2)+"a"
	d, err := customdata.Parse([]byte(`{"plan":"gold","quoted":"a\"b\n\u00e9","seats":12.50,"big":1e100,"on":true,"off":false,"none":null,"list":[1],"object":{"plan":"x"},"empty":"","long":"` + long + `","tooLong":"` + tooLong + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"plan", "quoted", "seats", "big", "on", "off", "none", "list", "object", "empty", "long", "tooLong", "absent"}
	want := map[string]string{"plan": "gold", "quoted": "a\"b\né", "seats": "12.50", "big": "1e100", "on": "true", "off": "false", "empty": "", "long": long}
	if got := d.Printed(keys); !maps.Equal(got, want) {
		t.Errorf("the printed values are %q, want %q", got, want)
	}
	if got := d.Printed([]string{"plan"}); !maps.Equal(got, map[string]string{"plan": "gold"}) {
		t.Errorf("one key returns %q", got)
	}
	if got := customdata.Document("").Printed(keys); len(got) != 0 {
		t.Errorf("the empty document returns %q", got)
	}
}

func TestReservedKeysAreReservedAtTheTopLevelAlone(t *testing.T) {
	for _, key := range []string{"href", "createdAt", "modifiedAt", "meta", "spMeta", "spmeta", "ionmeta", "ionMeta"} {
		for _, text := range []string{`{"a":{"` + key + `":"x"}}`, `{"a":[{"` + key + `":{"` + key + `":1}}]}`} {
			if d, err := customdata.Parse([]byte(text)); err != nil || string(d) != text {
				t.Errorf("%s is read as %s, %v", text, d, err)
			}
		}
		if _, err := customdata.Parse([]byte(`{"` + key + `":{}}`)); !errors.Is(err, apierr.CustomDataReserved) {
			t.Errorf("%s at the top level: %v", key, err)
		}
	}
}
