package openapi

import (
	"slices"
	"strings"
)

// ClientJSON returns the document from which pkg/client is generated: it has the bodies and answers of
// operations, without errors and examples. A link has the type of the linked resource, of which only
// the href is set unless the link was expanded. Pages of collections have one generic type. Forms,
// and operations that only browsers call, are left out.
func (d *Document) ClientJSON() ([]byte, error) {
	parts := []any{ref("schemas", "Error")}
	for _, op := range d.Operations {
		if !strings.HasPrefix(op.Path, "/v1/") {
			continue
		}
		body, _ := get(op.object, "requestBody").(object)
		content, _ := get(body, "content").(object)
		parts = append(parts, get(content, "application/json"))
		for _, answer := range get(op.object, "responses").(object) {
			if answer.Key.(string) < "400" {
				parts = append(parts, answer.Value)
			}
		}
	}
	b := builder{schemas: map[string]any{}}
	for _, schema := range d.at("components", "schemas") {
		name, described := schema.Key.(string), schema.Value
		if item, isPage := strings.CutSuffix(name, "Collection"); isPage {
			described = object{
				{Key: "description", Value: get(described.(object), "description")},
				{Key: "items", Value: ref("schemas", item)}, {Key: "x-go-type", Value: "Collection[" + item + "]"},
			}
		}
		b.schemas[name] = described
	}
	copied := *d
	components := object{{Key: "schemas", Value: b.used(parts)}}
	copied.root = simplified(set(set(d.root, "components", components), "paths", object{}), "").(object)
	return copied.JSON()
}

func simplified(v any, name string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = simplified(v[i], "")
		}
		return out
	case object:
		if target := linkTarget(v); target != nil {
			return target
		}
		if properties, ok := get(v, "properties").(object); ok && get(v, "required") != nil {
			v = set(v, "required", slices.DeleteFunc(slices.Clone(get(v, "required").([]any)), func(name any) bool {
				property, _ := get(properties, name.(string)).(object)
				return linkTarget(property) != nil || get(property, "$ref") == "#/components/schemas/Link"
			}))
		}
		var out object
		for _, member := range v {
			key := member.Key.(string)
			_, words := member.Value.(string)
			switch {
			case name != "properties" && slices.Contains([]string{"example", "examples", "readOnly", "writeOnly",
				"default",
				"pattern", "enum",
				"unevaluatedProperties"}, key):
			case name != "properties" && key == "description" && words && strings.Contains(member.Value.(string), "\n"):
				out = set(out, key, strings.Join(strings.Fields(member.Value.(string)), " "))
			default:
				out = set(out, key, simplified(member.Value, key))
			}
		}
		return out
	}
	return v
}

// linkTarget returns the reference to the schema of the linked resource, if it is of one kind.
func linkTarget(schema object) any {
	choices, _ := get(schema, "anyOf").([]any)
	if len(choices) < 2 || get(choices[0].(object), "$ref") != "#/components/schemas/Link" {
		return nil
	}
	second := choices[1].(object)
	if len(choices) > 2 && get(choices[2].(object), "$ref") != nil || get(second, "$ref") == nil {
		return ref("schemas", "Link")
	}
	return second
}
