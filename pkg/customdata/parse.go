package customdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/doorward/doorward/pkg/apierr"
)

const (
	maxKey  = 255    // characters
	maxKeys = 50_000 // in all levels of a document together
	// maxDepth stays below the 10,000 levels that encoding/json reads, so that a
	// document can be part of other bodies.
	maxDepth = 9990
)

// readOnly are the reserved members of a representation. They are ignored if a client sends them back
// as strings.
var readOnly = []string{"href", "createdAt", "modifiedAt"}

// reserved are the other reserved keys. All reserved keys are so at the top level alone: documents of
// other systems have them inside.
var reserved = []string{"meta", "spMeta", "spmeta", "ionmeta", "ionMeta"}

// Parse parses and validates the customData of a body
// (docs/interface/custom-data.md#restrictions). The last value of a duplicate key
// applies. It returns apierr.Encoding, Format,
// CustomDataKeyEmpty, CustomDataKeyLong, CustomDataKeyInvalid, CustomDataReserved
// or CustomDataSize.
func Parse(text []byte) (Document, error) {
	d, err := parse(text)
	if err != nil {
		refusal := apierr.From(err)
		return "", refusal.Because("the customData %s", refusal.Reason)
	}
	return d, nil
}

// CheckKey returns the error of Parse for a document with this key, if it is no key of customData.
func CheckKey(key string) error {
	text, err := json.Marshal(map[string]bool{key: true})
	if err != nil {
		return err
	}
	_, err = Parse(text)
	return err
}

// parse is Parse; the reasons of its errors have no subject ("is larger than …").
func parse(text []byte) (Document, error) {
	if !utf8.Valid(text) {
		return "", apierr.Encoding.Because("is not valid UTF-8")
	}
	p := parser{in: decoder(text), out: make([]byte, 0, len(text))}
	if err := p.run(); err != nil {
		return "", err
	}
	if d := p.document(); len(d) <= MaxSize {
		return d, nil
	}
	return "", tooLarge
}

// decoder returns a JSON decoder that accepts duplicate keys, of which the last applies, and escapes of
// half a surrogate pair, which are stored as they were sent.
func decoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
}

var (
	notAnObject = apierr.Format.Because("must be a JSON object, nested no deeper than %d levels", maxDepth)
	tooManyKeys = apierr.CustomDataSize.Because("has more than %d keys in all its levels together", maxKeys)
	tooLarge    = apierr.CustomDataSize.Because("is larger than %d bytes", MaxSize)
)

// parser parses JSON in one pass, and writes it to out without white space; it stops at the first
// error. It does not recurse, so that deep nesting does not exhaust the stack.
type parser struct {
	in       *jsontext.Decoder
	out      []byte
	open     []container
	keys     int
	replaced []span
}

// container is an object or array whose end was not read yet.
type container struct {
	object    bool
	members   []member       // of an object
	lastIndex map[string]int // index of the last member by name, from mapThreshold members on
}

// member is a key and its position in out.
type member struct {
	name  string
	start int
}

// span is a part of out that a later member with the same key replaces.
type span struct{ start, end int }

// mapThreshold is the number of members from which a map is faster than a search.
const mapThreshold = 16

func (p *parser) run() error {
	if p.in.PeekKind() != '{' {
		return notAnObject
	}
	for first := true; first || len(p.open) > 0; first = false {
		if err := p.next(); err != nil {
			return err
		}
	}
	if _, err := p.in.ReadToken(); !errors.Is(err, io.EOF) {
		return notAnObject
	}
	return nil
}

// next reads the next bracket, key or scalar.
func (p *parser) next() error {
	kind := p.in.PeekKind()
	within, length := p.in.StackIndex(p.in.StackDepth())
	if within == '[' && length > 0 && kind != ']' {
		p.out = append(p.out, ',')
	}
	switch {
	case within == '{' && length%2 == 0 && kind == '"':
		return p.member()
	case kind == '{' || kind == '[':
		if len(p.open) == maxDepth {
			return notAnObject
		}
		p.push(kind == '{')
	case kind == '}' || kind == ']':
		p.open = p.open[:len(p.open)-1]
	default:
		value, err := p.in.ReadValue()
		p.out = append(p.out, value...)
		return malformed(err)
	}
	_, err := p.in.ReadToken()
	p.out = append(p.out, byte(kind))
	return malformed(err)
}

// malformed turns an error of the decoder into one for the client.
func malformed(err error) error {
	if err != nil {
		return notAnObject
	}
	return nil
}

// push begins a container, and reuses the memory of an earlier container.
func (p *parser) push(object bool) {
	if len(p.open) == cap(p.open) {
		p.open = append(p.open, container{object: object})
		return
	}
	p.open = p.open[:len(p.open)+1]
	c := &p.open[len(p.open)-1]
	*c = container{object: object, members: c.members[:0]}
}

// member reads a key, and skips the value of a read-only member.
func (p *parser) member() error {
	quoted, err := p.in.ReadValue()
	if err != nil {
		return notAnObject
	}
	name, err := parseKey(string(quoted))
	if err != nil {
		return err
	}
	if len(p.open) == 1 && slices.Contains(readOnly, name) {
		return p.ignore(name)
	}
	if len(p.open) == 1 && slices.Contains(reserved, name) {
		return errReserved(name)
	}
	if p.keys++; p.keys > maxKeys {
		return tooManyKeys
	}
	c := &p.open[len(p.open)-1]
	former := c.indexOf(name)
	if len(c.members) > 0 {
		p.out = append(p.out, ',')
	}
	c.add(member{name, len(p.out)})
	if former >= 0 {
		p.replaced = append(p.replaced, span{c.members[former].start, c.members[former+1].start})
	}
	p.out = append(append(append(p.out, '"'), name...), '"', ':')
	return nil
}

// ignore skips the value of a read-only member, which must be a text.
func (p *parser) ignore(name string) error {
	if p.in.PeekKind() != '"' {
		return errReserved(name)
	}
	return malformed(p.in.SkipValue())
}

// indexOf returns the index of the last member with a name, or -1.
func (c *container) indexOf(name string) int {
	if c.lastIndex != nil {
		if at, known := c.lastIndex[name]; known {
			return at
		}
		return -1
	}
	for at, m := range slices.Backward(c.members) {
		if m.name == name {
			return at
		}
	}
	return -1
}

func (c *container) add(m member) {
	c.members = append(c.members, m)
	switch {
	case c.lastIndex != nil:
		c.lastIndex[m.name] = len(c.members) - 1
	case len(c.members) == mapThreshold:
		c.lastIndex = map[string]int{}
		for at, m := range c.members {
			c.lastIndex[m.name] = at
		}
	}
}

// document returns out without the members that later members replace.
func (p *parser) document() Document {
	if len(p.replaced) == 0 {
		return Document(p.out)
	}
	slices.SortFunc(p.replaced, func(a, b span) int { return a.start - b.start })
	kept, from := p.out[:0], 0
	for _, cut := range p.replaced {
		if cut.start < from {
			continue // inside of the span that was just removed
		}
		kept = append(kept, p.out[from:cut.start]...)
		from = cut.end
	}
	return Document(append(kept, p.out[from:]...))
}

// parseKey decodes and validates a key in quotes.
func parseKey(quoted string) (name string, err error) {
	name = quoted[1 : len(quoted)-1]
	if strings.IndexByte(name, '\\') >= 0 {
		if err := json.Unmarshal([]byte(quoted), &name); err != nil {
			return "", apierr.Format.Because("has a key that is no string")
		}
	}
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return "", apierr.CustomDataKeyEmpty.Because("has an empty key")
	case n > maxKey:
		return "", apierr.CustomDataKeyLong.Because("has a key of %d characters; at most %d are allowed", n, maxKey)
	case !hasKeyCharacters(name):
		return "", apierr.CustomDataKeyInvalid.Because(
			"has the key %q; a key has the characters 0-9 A-Z a-z _ - and begins with no dash", name)
	}
	return name, nil
}

func errReserved(name string) error {
	return apierr.CustomDataReserved.Because("has the reserved key %q at its top level", name)
}

func hasKeyCharacters(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', c == '_', c == '-' && i > 0:
		default:
			return false
		}
	}
	return true
}
