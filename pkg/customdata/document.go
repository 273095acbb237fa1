// Package customdata is custom data: the keys and values that clients attach to tenants,
// applications, directories, groups, organizations and accounts
// (docs/interface/custom-data.md). Document is the stored JSON object and its changes, parse.go
// parses and validates it (keys, size, depth), leaf.go extracts the values that can be searched.
// Package customdatastore stores it in the schema of a service, pkg/rest/customdata.go has its
// endpoints. The owner of customData is the resource that has it.
//
// A document is stored as text, not as jsonb, so that a client gets numbers and strings back exactly
// as it has sent them; jsonb would change 1e100000, 1.50 or "\u0000".
package customdata

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// Resource is the customData of an owner with its times. It is created with its owner; a change of it
// does not change the times of the owner.
type Resource struct {
	Document   Document
	CreatedAt  time.Time
	ModifiedAt time.Time
}

// Store reads and changes the customData of one kind of owner. Its methods return apierr.NotFound if
// the tenant has no such owner.
type Store interface {
	// Read returns the customData of an owner.
	Read(ctx context.Context, owner id.Ref) (Resource, error)
	// Merge adds the members of in to an owner's customData, or replaces them, and
	// returns the result. An empty document changes nothing.
	Merge(ctx context.Context, owner id.Ref, in Document) (Resource, error)
	// Clear removes all keys of an owner's customData.
	Clear(ctx context.Context, owner id.Ref) error
	// DeleteKey removes one key of an owner's customData, which need not be there.
	DeleteKey(ctx context.Context, owner id.Ref, key string) error
}

// MaxSize is the largest document, in bytes of its JSON without white space and
// without the three reserved members of a representation.
const MaxSize = 10 << 20

// Document is the text of a JSON object that Parse has accepted: without white space, with unique
// keys in the order in which they were first set, and with the values as they were sent. The zero
// value is the empty document.
type Document string

const empty Document = "{}"

// Change is the member customData of a body that creates or updates the owner.
// Absent and null change nothing; an object is merged.
type Change = field.Nullable[Document]

// IsEmpty reports whether the document has no key.
func (d Document) IsEmpty() bool { return len(d) <= len(empty) }

// MarshalJSON writes the document.
func (d Document) MarshalJSON() ([]byte, error) { return d.Append(nil), nil }

// UnmarshalJSON is Parse for a member of a body.
func (d *Document) UnmarshalJSON(text []byte) (err error) {
	*d, err = parse(text)
	return err
}

// Append appends the document to dst.
func (d Document) Append(dst []byte) []byte {
	if d.IsEmpty() {
		d = empty
	}
	return append(dst, d...)
}

// Merge returns the document with the members of in: existing members are replaced at their position
// (no deep merge), new members are added at the end. It returns apierr.CustomDataSize if the result
// is larger than MaxSize or has too many keys.
func (d Document) Merge(in Document) (Document, error) {
	if in.IsEmpty() {
		return d, nil
	}
	sent := map[string]string{}
	in.each(func(name, member string) { sent[name] = member })
	out := builder{}
	out.text.Grow(len(d) + len(in))
	d.each(func(name, member string) {
		if newer, replaced := sent[name]; replaced {
			member = newer
			delete(sent, name)
		}
		out.add(member)
	})
	in.each(func(name, member string) {
		if _, added := sent[name]; added {
			out.add(member)
		}
	})
	merged := out.document()
	if len(merged) > MaxSize {
		return d, tooLarge.Because("the merged customData has %d bytes; at most %d are allowed", len(merged), MaxSize)
	}
	if n := merged.keys(); n > maxKeys {
		return d, tooManyKeys.Because(
			"the merged customData has %d keys in all its levels together; at most %d are allowed",
			n, maxKeys)
	}
	return merged, nil
}

// MaxPrinted is the longest value that Printed returns, in bytes.
const MaxPrinted = 4000

// Printed returns the values of keys as text, for the macros of mails: a string without its quotes, a
// number as it was sent, true or false. It leaves out keys that are absent, and values that are
// null, an object, an array, or longer than MaxPrinted.
func (d Document) Printed(keys []string) map[string]string {
	if len(keys) == 0 || d.IsEmpty() {
		return nil
	}
	values := map[string]string{}
	d.each(func(name, member string) {
		if !slices.Contains(keys, name) {
			return
		}
		if value, ok := printableText(member[len(name)+len(`"":`):]); ok {
			values[name] = value
		}
	})
	return values
}

// printableText returns the text of a JSON value, if Printed returns it.
func printableText(value string) (text string, ok bool) {
	switch value[0] {
	case '{', '[', 'n':
		return "", false
	case '"':
		const longest = len(`\u0000`) // the longest escape of one byte
		if len(value) > longest*MaxPrinted || json.Unmarshal([]byte(value), &text) != nil {
			return "", false
		}
	default:
		text = value
	}
	return text, len(text) <= MaxPrinted
}

// Keys are the root keys.
func (d Document) Keys() (keys []string) {
	d.each(func(name, _ string) { keys = append(keys, name) })
	return keys
}

// Without returns the document without a key; the key may be absent.
func (d Document) Without(key string) Document {
	out := builder{}
	out.text.Grow(len(d))
	d.each(func(name, member string) {
		if name != key {
			out.add(member)
		}
	})
	return out.document()
}

// each calls fn with every key, and its member as text: the key in quotes, a colon and the value.
func (d Document) each(fn func(name, member string)) {
	if d.IsEmpty() {
		return
	}
	in := decoder([]byte(d))
	_, err := in.ReadToken()
	for err == nil && in.PeekKind() == '"' {
		var name jsontext.Value
		name, err = in.ReadValue()
		end := int(in.InputOffset())
		start := end - len(name)
		if err == nil {
			err = in.SkipValue()
		}
		fn(string(d[start+1:end-1]), string(d[start:in.InputOffset()]))
	}
}

// keys returns how many keys the document has in all its levels.
func (d Document) keys() (n int) {
	const shortest = len(`"a":1,`)
	if len(d) <= maxKeys*shortest {
		return 0 // the document is too short for more than maxKeys keys
	}
	in := decoder([]byte(d))
	for {
		within, length := in.StackIndex(in.StackDepth())
		token, err := in.ReadToken()
		if err != nil {
			return n
		}
		if within == '{' && length%2 == 0 && token.Kind() == '"' {
			n++
		}
	}
}

// builder writes a document member by member.
type builder struct{ text strings.Builder }

func (b *builder) add(member string) {
	separator := byte(',')
	if b.text.Len() == 0 {
		separator = '{'
	}
	b.text.WriteByte(separator)
	b.text.WriteString(member)
}

func (b *builder) document() Document {
	if b.text.Len() == 0 {
		return empty
	}
	b.text.WriteByte('}')
	return Document(b.text.String())
}
