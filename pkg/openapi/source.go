package openapi

import (
	"fmt"

	"github.com/goccy/go-yaml"
)

// file is the content of a source file.
type file struct {
	Order       int    // of the topic in the document
	Topic       string // tag of the operations
	Description string
	Document    object               // members of the document itself
	Usual       usual                // what the operations of the file have in common
	Components  object               // parameters, headers, responses and security schemes, copied unchanged
	Resources   map[string]*resource // by the name of their schema
	Schemas     object               // other schemas, by name
	Claims      *Claims              // of the JWTs of a hosted login
	Operations  yaml.MapSlice        // "GET /v1/accounts/{accountId}": an entry
}

// Claims are the claims of the JWTs with which a hosted login begins and ends. They stand in
// docs/interface/id-site.md too.
type Claims struct{ Request, Assertion []Claim }

// Claim is a claim of a JWT (RFC 7519, section 4).
type Claim struct {
	Name, Text string
	Required   bool
}

// resource describes a resource by its fields. A field is a JSON schema with
// these members besides those of the standard:
//
//	nullable: true      null is a value too
//	nullable: create    in a body that creates the resource, null stands for the default
//	link: Account       it is a link to an Account, or an expanded Account
//	links: Account      it is a link to a collection of Accounts, or an expanded page
//	in: create          only a body that creates the resource has it
//	in: update          only a body that changes it has it
//	in: none            no body has it, as if it were readOnly (links are)
//	out: false          it is never returned
//	optional: true      it is returned only where it applies
type resource struct {
	Name        string `yaml:"-"`
	Description string
	Path        string   // the URL of a resource in examples
	Head        []string // which of href, createdAt and modifiedAt it has; all unless named
	Expand      []string // the links that can be expanded
	Search      []string // the attributes that a list can be searched by
	After       bool     // a list can begin after an item
	Sort        []string // further attributes that it can be sorted by
	Required    []string // in a body that creates one
	Fields      object
	Open        bool // further members of any name
	Lenient     bool // members of any name are ignored in a body that creates one
}

// entry describes an operation. One of Get, List, Create, Update and Delete is the resource and what the
// operation does with it; the other fields are what differs from the defaults.
type entry struct {
	Get, List, Create, Update string
	Delete                    bool

	ID          string
	Summary     string
	Description string
	Body        any    // schema of the body, or its name
	Form        bool   // the body is a form
	Either      bool   // the body is JSON or a form
	Optional    bool   // the body may be absent
	Public      bool   // no API key
	Token       string // the required security scheme in place of an API key
	Login       bool   // logs an account in: it can fail with all errors of a login
	Expand      string // resource whose links can be expanded
	Query       object // parameters of the query: a schema each, with description and example
	Answers     object // by status: a schema, its name, or a text for an answer without a body
	Errors      []int  // error codes of the operation besides the defaults
	BadRequests []int  // error codes that the operation returns with the status 400 in place of their usual status
	Example     any    // of the body
	Examples    object // several, by name
}

// usual is what all operations of a file have in common.
type usual struct {
	Public  bool
	Token   string
	Server  string   // prefix of their paths, below the host
	Headers []string // headers of every answer that is no error
	Answers object
	Errors  []int
}

func (b *builder) declare(f *file) error {
	for name, r := range f.Resources {
		if b.resources[name] != nil {
			return fmt.Errorf("%s is described twice", name)
		}
		r.Name = name
		if r.Head == nil {
			r.Head = []string{"href", "createdAt", "modifiedAt"}
		}
		b.resources[name] = r
	}
	for _, member := range f.Schemas {
		if b.schemas[member.Key.(string)] != nil {
			return fmt.Errorf("%v is described twice", member.Key)
		}
		b.schemas[member.Key.(string)] = b.schema(member.Value)
	}
	for _, r := range f.Resources {
		b.declareResource(r)
	}
	parameters, _ := get(f.Components, "parameters").(object)
	for _, parameter := range parameters {
		b.own[parameter.Key.(string)] = true
	}
	return nil
}
