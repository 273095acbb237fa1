package openapi

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"

	"github.com/doorward/doorward/pkg/id"
)

type builder struct {
	resources map[string]*resource
	schemas   map[string]any
	own       map[string]bool // parameters that a source describes itself
	filters   object          // parameters that search lists
	host      string
	requestID string // name of the header with the request's id
}

// extensions are the members of a field that are not part of JSON Schema.
var extensions = []string{"nullable", "link", "links", "in", "out", "optional"}

// schema replaces the extensions in a schema, and in the schemas inside it, by JSON Schema.
func (b *builder) schema(v any) any {
	switch v := v.(type) {
	case object:
		var out object
		for _, member := range v {
			// of two, one is what `<<` merges, and comes first
			out = set(out, member.Key.(string), b.schema(member.Value))
		}
		if get(v, "link") != nil || get(v, "links") != nil {
			return b.link(v, true)
		}
		if get(v, "nullable") == true {
			return nullable(without(out, extensions...))
		}
		return without(out, extensions...)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = b.schema(v[i])
		}
		return out
	default:
		return v
	}
}

// nullable returns a schema that also allows null.
func nullable(schema object) object {
	kind := get(schema, "type")
	if kind == nil {
		return object{{Key: "anyOf", Value: []any{schema, object{{Key: "type", Value: "null"}}}}}
	}
	schema = set(schema, "type", []any{kind, "null"})
	if values, ok := get(schema, "enum").([]any); ok {
		schema = set(schema, "enum", append(slices.Clip(values), nil))
	}
	return schema
}

// link returns the schema of a link. A link that can be expanded may be the resource, or a page of the
// collection.
func (b *builder) link(field object, expandable bool) object {
	choices := []any{ref("schemas", "Link")}
	if expandable {
		for _, name := range texts(get(field, "link")) {
			choices = append(choices, ref("schemas", name))
		}
		for _, name := range texts(get(field, "links")) {
			choices = append(choices, ref("schemas", name+"Collection"))
		}
	}
	if get(field, "nullable") == true {
		choices = append(choices, object{{Key: "type", Value: "null"}})
	}
	rest := without(field, append(extensions, "example")...)
	if len(choices) == 1 {
		return append(object{{Key: "$ref", Value: "#/components/schemas/Link"}}, rest...)
	}
	return append(object{{Key: "anyOf", Value: choices}}, rest...)
}

func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, text := range v {
			out = append(out, text.(string))
		}
		return out
	}
	return nil
}

// declareResource makes the schemas of the representation of a resource and of its collection.
func (b *builder) declareResource(r *resource) {
	properties, required := object{}, []any{}
	for _, name := range r.Head {
		properties = set(properties, name, ref("schemas", strings.ToUpper(name[:1])+name[1:]))
		required = append(required, name)
	}
	for _, member := range r.Fields {
		name, field := member.Key.(string), member.Value.(object)
		if get(field, "out") == false {
			continue
		}
		if get(field, "optional") != true {
			required = append(required, name)
		}
		if isLink(field) {
			properties = set(properties, name, b.link(field, slices.Contains(r.Expand, name)))
		} else {
			properties = set(properties, name, b.schema(field))
		}
	}
	schema := object{
		{Key: "type", Value: "object"}, {Key: "description", Value: r.Description}, {Key: "required", Value: required},
		{Key: "properties", Value: properties},
	}
	if !r.Open {
		schema = set(schema, "additionalProperties", false)
	}
	b.schemas[r.Name] = set(schema, "example", r.example())
	b.schemas[r.Name+"Collection"] = object{
		{Key: "description", Value: "A page of a collection of " + words(r.Name) + " resources."},
		{Key: "allOf", Value: []any{ref("schemas", "Collection"), object{
			{Key: "type", Value: "object"},
			{Key: "properties", Value: object{
				{Key: "items", Value: object{{Key: "type", Value: "array"},
					{Key: "items", Value: ref("schemas", r.Name)}}},
			}},
		}}},
		{Key: "unevaluatedProperties", Value: false},
	}
}

func isLink(field object) bool { return get(field, "link") != nil || get(field, "links") != nil }

// writable reports whether a body of that kind, create or update, has a field.
func writable(field object, kind string) bool {
	switch in := get(field, "in"); in {
	case nil:
		return !isLink(field) && get(field, "readOnly") != true
	case "both":
		return true
	default:
		return in == kind
	}
}

// body makes the schema of a body that creates or changes a resource, and
// returns its name.
func (b *builder) body(r *resource, kind string) string {
	name := "New" + r.Name
	if kind == "update" {
		name = r.Name + "Change"
	}
	if b.schemas[name] != nil {
		return name
	}
	var properties object
	for _, member := range r.Fields {
		field := member.Value.(object)
		if get(field, "link") == "CustomData" {
			properties = set(properties, "customData", ref("schemas", "CustomDataChange"))
			continue
		}
		if !writable(field, kind) {
			continue
		}
		if isLink(field) {
			field = append(object{{Key: "$ref", Value: "#/components/schemas/Reference"}},
				without(field, append(extensions, "example")...)...)
		}
		if kind == "update" {
			field = without(field, "default")
		}
		if get(field, "nullable") == kind {
			field = set(field, "nullable", true)
		}
		properties = set(properties, member.Key.(string), b.schema(without(field, "readOnly")))
	}
	schema := object{{Key: "type", Value: "object"}, {Key: "description", Value: bodyDescription(r, kind)}}
	if kind == "create" && len(r.Required) > 0 {
		required := make([]any, len(r.Required))
		for i, name := range r.Required {
			required[i] = name
		}
		schema = set(schema, "required", required)
	}
	schema = set(schema, "properties", properties)
	if kind == "update" || !r.Lenient {
		schema = set(schema, "additionalProperties", false)
	}
	b.schemas[name] = schema
	return name
}

func bodyDescription(r *resource, kind string) string {
	if kind == "create" {
		return "What a new " + words(r.Name) + " is made of."
	}
	return "The members that change; what is absent stays."
}

// example returns an example of the representation, from the examples of the fields.
func (r *resource) example() object {
	self := r.Path
	values := map[string]any{"href": self, "createdAt": "2026-11-20T20:25:00.000Z",
		"modifiedAt": "2026-11-21T08:00:00.000Z"}
	var out object
	for _, name := range r.Head {
		out = append(out, yaml.MapItem{Key: name, Value: values[name]})
	}
	for _, member := range r.Fields {
		name, field := member.Key.(string), member.Value.(object)
		if get(field, "out") == false || get(field, "optional") == true && get(field, "example") == nil {
			continue
		}
		value := exampleOf(field)
		if isLink(field) && value == nil && get(field, "nullable") != true {
			value = object{{Key: "href", Value: self + "/" + name}}
		}
		out = append(out, yaml.MapItem{Key: name, Value: value})
	}
	return out
}

// exampleOf returns the example of a field, or a value that its schema allows.
func exampleOf(field object) any {
	for _, key := range []string{"example", "default", "const"} {
		if v := get(field, key); v != nil {
			return v
		}
	}
	if values, ok := get(field, "enum").([]any); ok && get(field, "nullable") != true {
		return values[0]
	}
	switch {
	case get(field, "nullable") == true:
		return nil
	case get(field, "type") == "array":
		return []any{}
	case get(field, "type") == "boolean":
		return false
	case get(field, "format") == "date-time":
		return "2026-11-20T20:25:00.000Z"
	}
	return nil
}

// exampleID returns the example of an id, always the same for a path parameter.
func exampleID(parameter string) string {
	sum := sha256.Sum256([]byte(parameter))
	return id.ID(sum[:16]).String()
}

// words returns the name of a schema or parameter as words: "account creation policy".
func words(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte(' ')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	text := out.String()
	for _, word := range slices.Sorted(maps.Keys(spelled)) {
		text = strings.ReplaceAll(text, word, spelled[word])
	}
	return text
}

// spelled are the words that are not written in lower case.
var spelled = map[string]string{"saml": "SAML", "api": "API", "smtp": "SMTP", "id site": "ID site", "o auth": "OAuth",
	"x509": "X.509"}
