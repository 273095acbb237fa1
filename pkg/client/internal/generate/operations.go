package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"text/template"

	"github.com/doorward/doorward/pkg/openapi"
)

// omitted are operations for browsers and LDAP agents, and operations without JSON answers.
var omitted = []string{"startSamlLogin", "consumeSamlResponse", "listAgentChecks", "answerAgentCheck", "downloadAgent",
	"getCertificate"}

// redirected are operations that answer with a redirect to a resource, which the HTTP client follows.
var redirected = map[string]string{"getCurrentTenant": "Tenant", "validateToken": "AccessToken"}

// described is the part of the document from which the methods are generated.
type described struct {
	Paths map[string]map[string]struct {
		Summary     string
		Parameters  []struct{ In string }
		RequestBody struct{ Content map[string]content }
		Responses   map[string]struct{ Content map[string]content }
	}
}

type content struct {
	Schema struct {
		Ref   string              `json:"$ref"`
		AnyOf []map[string]string `json:"anyOf"`
		OneOf []map[string]string `json:"oneOf"`
	}
}

// method is one method of the client.
type method struct {
	Name, Summary, HTTP string
	Args                []string // of the path
	Path                string   // Go expressions of its segments
	Body, BodyType      string
	Answer              string // type of the answer, "" for none
	Item                string // type of the items, for a collection
}

var methods = template.Must(template.New("").Parse(
	`// Code generated from the description of the interface. DO NOT EDIT.

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)
{{range .}}
// {{.Name}}: {{.Summary}}.
func (c *Client) {{.Name}}(ctx context.Context{{range .Args}}, {{.}} string{{end}}
	{{- if .Body}}, {{.Body}} {{.BodyType}}{{end}}, query ...url.Values)
	{{- if .Item}} iter.Seq2[*{{.Item}}, error] {
	return all[{{.Item}}](ctx, c, at({{.Path}}), query)
}
	{{- else if .Answer}} (*{{.Answer}}, error) {
	return call[{{.Answer}}](ctx, c, http.Method{{.HTTP}}, at({{.Path}}), {{or .Body "nil"}}, query)
}
	{{- else}} error {
	return call0(ctx, c, http.Method{{.HTTP}}, at({{.Path}}), {{or .Body "nil"}}, query)
}
	{{- end}}
{{end}}`))

// operations returns the source of a method for every operation of the management API.
func operations(document *openapi.Document) ([]byte, error) {
	text, err := document.JSON()
	if err != nil {
		return nil, err
	}
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	var found []method
	for _, op := range document.Operations {
		path, managed := strings.CutPrefix(op.Path, "/v1/")
		if !managed || slices.Contains(omitted, op.ID) {
			continue
		}
		x := d.Paths[op.Path][strings.ToLower(op.Method)]
		m := method{Name: strings.ToUpper(op.ID[:1]) + op.ID[1:], Summary: x.Summary,
			HTTP: op.Method[:1] + strings.ToLower(op.Method[1:])}
		var segments []string
		for segment := range strings.SplitSeq(path, "/") {
			if argument, ok := strings.CutPrefix(segment, "{"); ok {
				argument = strings.TrimSuffix(strings.TrimSuffix(argument, "}"), "Id")
				m.Args = append(m.Args, argument)
				segments = append(segments, argument)
			} else {
				segments = append(segments, fmt.Sprintf("%q", segment))
			}
		}
		m.Path = strings.Join(segments, ", ")
		if sent, ok := x.RequestBody.Content["application/json"]; ok {
			m.Body, m.BodyType = "body", name(sent)
		} else if len(x.RequestBody.Content) > 0 {
			m.Body, m.BodyType = "form", "url.Values"
		}
		m.Answer = redirected[op.ID]
		for _, status := range []string{"200", "201"} {
			if answer, ok := x.Responses[status].Content["application/json"]; ok {
				if m.Answer = name(answer); m.Answer == "" {
					return nil, fmt.Errorf("the answer of %s has no named type", op.ID)
				}
			}
		}
		if item, isPage := strings.CutSuffix(m.Answer, "Collection"); isPage {
			m.Item = item
		}
		found = append(found, m)
	}
	var out bytes.Buffer
	if err := methods.Execute(&out, found); err != nil {
		return nil, err
	}
	return format.Source(out.Bytes())
}

// name returns the type of a schema; of several alternatives it is the first.
func name(c content) string {
	at := c.Schema.Ref
	if choices := slices.Concat(c.Schema.AnyOf, c.Schema.OneOf); len(choices) > 0 {
		at = choices[0]["$ref"]
	}
	return at[strings.LastIndexByte(at, '/')+1:]
}
