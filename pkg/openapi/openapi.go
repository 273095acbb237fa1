// Package openapi has the OpenAPI 3.1 description of the REST API (Swagger). It is generated from the
// files in source, one for each topic.
//
// A source file describes resources by their fields, and operations by what they do with a
// resource. This package generates the rest: the representation of a resource, the bodies that
// create and change it, its collection, the parameters and errors that all operations of one kind
// have in common, and examples. source.go describes the format of a source file, schema.go makes
// the schemas, operation.go the operations, page.go the API reference in HTML.
//
// The gateway serves the document, pkg/openapi/openapitest checks answers
// against it, and pkg/client is generated from it.
package openapi

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/doorward/doorward/pkg/href"
)

//go:embed source/*.yaml
var sources embed.FS

// object is a JSON object whose members keep their order.
type object = yaml.MapSlice

// Document is the OpenAPI description for one deployment.
type Document struct {
	Topics     []Topic
	Operations []*Operation // in the order of the source
	Claims     *Claims
	root       object
	resources  map[string]*resource
}

// Expandable returns the links of a kind of resource that can be expanded. The kind is compared in any
// letter case.
func (d *Document) Expandable(kind string) []string {
	for name, r := range d.resources {
		if strings.EqualFold(name, kind) {
			return r.Expand
		}
	}
	return nil
}

// Topic is a group of operations; a source file describes one.
type Topic struct{ Name, Description string }

// Deployment says what differs between the documents of two deployments.
type Deployment struct {
	Base  href.Base
	Alias string // lower case
}

// New makes the document of a deployment.
func New(d Deployment) (*Document, error) {
	b := builder{resources: map[string]*resource{}, schemas: map[string]any{}, own: map[string]bool{},
		host:      d.Base.Host(),
		requestID: d.title() + "-Request-Id"}
	names, err := fs.Glob(sources, "source/*.yaml")
	if err != nil {
		return nil, err
	}
	var files []*file
	for _, name := range names {
		f, err := d.read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, f)
	}
	slices.SortStableFunc(files, func(a, b *file) int { return a.Order - b.Order })
	for _, f := range files {
		if err := b.declare(f); err != nil {
			return nil, err
		}
	}
	for _, r := range b.resources {
		b.body(r, "create")
		b.body(r, "update")
	}
	return b.document(files)
}

// exampled matches the placeholder of an id in an example: <accountId>.
var exampled = regexp.MustCompile(`<\w+Id>`)

// read parses a source file, after replacing the placeholders of base URL and alias.
func (d Deployment) read(name string) (*file, error) {
	text, err := sources.ReadFile(name)
	if err != nil {
		return nil, err
	}
	replaced := strings.NewReplacer(
		"{{base}}", d.Base.String(), "{{host}}", d.Base.Host(), "{{hostname}}", d.Base.Hostname(),
		"{{alias}}", d.Alias, "{{Alias}}", d.title(),
	).Replace(string(text))
	replaced = exampled.ReplaceAllStringFunc(replaced,
		func(name string) string { return exampleID(strings.Trim(name, "<>")) })
	f := new(file)
	return f, yaml.UnmarshalWithOptions([]byte(replaced), f, yaml.UseOrderedMap(), yaml.Strict())
}

func (d Deployment) title() string { return strings.ToUpper(d.Alias[:1]) + d.Alias[1:] }

// JSON returns the document as JSON.
func (d *Document) JSON() ([]byte, error) {
	var out bytes.Buffer
	err := writeJSON(&out, d.root)
	return out.Bytes(), err
}

// YAML returns the document as YAML.
func (d *Document) YAML() ([]byte, error) {
	return yaml.MarshalWithOptions(d.root, yaml.UseLiteralStyleIfMultiline(true), yaml.IndentSequence(true))
}

// writeJSON writes a value; the members of an object keep their order.
func writeJSON(out *bytes.Buffer, v any) error {
	var open, end byte
	var err error
	sequence := func(n int, item func(i int) error) error {
		out.WriteByte(open)
		for i := range n {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := item(i); err != nil {
				return err
			}
		}
		return out.WriteByte(end)
	}
	switch v := v.(type) {
	case object:
		open, end = '{', '}'
		return sequence(len(v), func(i int) error {
			if err := writeJSON(out, fmt.Sprint(v[i].Key)); err != nil {
				return err
			}
			out.WriteByte(':')
			return writeJSON(out, v[i].Value)
		})
	case []any:
		open, end = '[', ']'
		return sequence(len(v), func(i int) error { return writeJSON(out, v[i]) })
	}
	text, err := json.Marshal(v)
	out.Write(text)
	return err
}

func (b *builder) document(files []*file) (*Document, error) {
	d := &Document{resources: b.resources}
	var tags []any
	paths := object{}
	for _, f := range files {
		d.root = append(d.root, f.Document...)
		d.Claims = cmp.Or(f.Claims, d.Claims)
		if len(f.Operations) == 0 {
			continue
		}
		d.Topics = append(d.Topics, Topic{f.Topic, f.Description})
		tags = append(tags, object{{Key: "name", Value: f.Topic}, {Key: "description", Value: f.Description}})
		for _, member := range f.Operations {
			op, err := b.operation(f, member)
			if err != nil {
				return nil, fmt.Errorf("%s: %v: %w", f.Topic, member.Key, err)
			}
			d.Operations = append(d.Operations, op)
			at, _ := get(paths, op.Path).(object)
			paths = set(paths, op.Path, set(at, strings.ToLower(op.Method), op.object))
		}
	}
	components := object{}
	for _, f := range files {
		for _, part := range f.Components {
			kind := part.Key.(string)
			earlier, _ := get(components, kind).(object)
			components = set(components, kind, slices.Concat(earlier, part.Value.(object)))
		}
	}
	components = set(components, "parameters", slices.Concat(get(components, "parameters").(object),
		b.pathParameters(paths), b.filters))
	components = set(components, "schemas", b.used(object{{Key: "paths", Value: paths},
		{Key: "components", Value: components}}))
	d.root = append(d.root, yaml.MapItem{Key: "tags", Value: tags}, yaml.MapItem{Key: "paths", Value: paths},
		yaml.MapItem{Key: "components", Value: components})
	return d, nil
}

// pathParameters describes the path parameters that no source file describes.
func (b *builder) pathParameters(paths object) object {
	var parameters object
	for _, path := range paths {
		for _, match := range placeholder.FindAllStringSubmatch(path.Key.(string), -1) {
			name := match[1]
			if get(parameters, name) != nil || b.own[name] {
				continue
			}
			parameters = append(parameters, yaml.MapItem{Key: name, Value: object{
				{Key: "name", Value: name}, {Key: "in", Value: "path"}, {Key: "required", Value: true},
				{Key: "description", Value: "Id of the " + words(strings.TrimSuffix(name,
					"Id")) + ": the last part of its `href`."},
				{Key: "schema", Value: ref("schemas", "Id")}, {Key: "example", Value: exampleID(name)},
			}})
		}
	}
	return parameters
}

// used returns the schemas to which a part of the document refers, directly or through other schemas,
// by name.
func (b *builder) used(part any) object {
	schemas := map[string]any{}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				visit(item)
			}
		case object:
			for _, member := range v {
				target, _ := member.Value.(string)
				name, found := strings.CutPrefix(target, "#/components/schemas/")
				if member.Key == "$ref" && found && schemas[name] == nil {
					schemas[name] = b.schemas[name]
					visit(b.schemas[name])
				}
				visit(member.Value)
			}
		}
	}
	visit(part)
	var out object
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		out = append(out, yaml.MapItem{Key: name, Value: schemas[name]})
	}
	return out
}

func ref(kind, name string) object {
	return object{{Key: "$ref", Value: "#/components/" + kind + "/" + name}}
}

func get(o object, key string) any {
	for _, member := range o {
		if member.Key == key {
			return member.Value
		}
	}
	return nil
}

func set(o object, key string, value any) object {
	for i := range o {
		if o[i].Key == key {
			o = slices.Clone(o)
			o[i].Value = value
			return o
		}
	}
	return append(slices.Clip(o), yaml.MapItem{Key: key, Value: value})
}

func without(o object, keys ...string) object {
	var rest object
	for _, member := range o {
		if !slices.Contains(keys, member.Key.(string)) {
			rest = append(rest, member)
		}
	}
	return rest
}
