// Package field decodes and validates the members of a JSON request body. It distinguishes absent
// from null, accepts booleans and integers as strings, and validates lengths and values with the
// error codes of the interface
// (docs/interface/conventions.md#resources, docs/interface/limits.md#field-limits).
package field

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
)

// Nullable is a member of a body. If it is absent, Present is false; if it is null, Present and Null
// are true; otherwise Value is the value that was sent.
type Nullable[T any] struct {
	Present bool
	Null    bool
	Value   T
}

type (
	// Text is a member that holds a text.
	Text = Nullable[string]
	// Bool is a member that is true or false.
	Bool = Nullable[bool]
	// Int is a member that holds a whole number.
	Int = Nullable[int]
	// Link is a member that is a link to another resource.
	Link = Nullable[href.Link]
	// Object is a member that is an object, as it was sent.
	Object = Nullable[json.RawMessage]
	// List is a member that holds texts.
	List = Nullable[[]string]
)

// Some is a member that was sent with a value.
func Some[T any](v T) Nullable[T] { return Nullable[T]{Present: true, Value: v} }

// Given reports whether the member was sent with a value other than null.
func (f Nullable[T]) Given() bool { return f.Present && !f.Null }

// Or returns the value, or fallback for an absent or null member.
func (f Nullable[T]) Or(fallback T) T {
	if f.Given() {
		return f.Value
	}
	return fallback
}

// NullIsAbsent returns the member, and an absent one for null where the resource is new, so that it gets
// its default.
func (f Nullable[T]) NullIsAbsent(isNew bool) Nullable[T] {
	if isNew && f.Null {
		return Nullable[T]{}
	}
	return f
}

// IsZero lets encoding/json leave out an absent member (omitzero).
func (f Nullable[T]) IsZero() bool { return !f.Present }

// MarshalJSON writes the value, so that a body can travel between services.
func (f Nullable[T]) MarshalJSON() ([]byte, error) {
	if !f.Given() {
		return []byte("null"), nil
	}
	return json.Marshal(f.Value)
}

// UnmarshalJSON reads the member of a body.
func (f *Nullable[T]) UnmarshalJSON(data []byte) error {
	*f = Nullable[T]{Present: true}
	if string(data) == "null" {
		f.Null = true
		return nil
	}
	if _, verbatim := any(&f.Value).(*json.RawMessage); !verbatim && !decodesItems[T]() && hasLoneSurrogate(data) {
		return apierr.Encoding.Because("has an escape of half a surrogate pair, which is no character")
	}
	switch target := any(&f.Value).(type) {
	case *string:
		if json.Unmarshal(data, target) != nil {
			return apierr.WrongType.Because("must be a string")
		}
		if strings.ContainsRune(*target, 0) {
			return apierr.Format.Because("must not contain the character NUL")
		}
	case *bool:
		b, err := strconv.ParseBool(unquote(data))
		if err != nil || !slices.Contains([]string{"true", "false"}, unquote(data)) {
			return apierr.WrongType.Because("must be true or false")
		}
		*target = b
	case *int:
		n, err := strconv.Atoi(unquote(data))
		if err != nil {
			return apierr.WrongType.Because("must be a whole number")
		}
		*target = n
	case *href.Link:
		var link struct{ Href *string }
		if json.Unmarshal(data, &link) != nil || link.Href == nil {
			return apierr.WrongType.Because(`must be an object of the form {"href": "…"}`)
		}
		target.Href = *link.Href
	case *[]string:
		if json.Unmarshal(data, target) != nil {
			return apierr.WrongType.Because("must be an array of strings")
		}
	case *json.RawMessage:
		if data[0] != '{' {
			return apierr.WrongType.Because("must be an object")
		}
		*target = bytes.Clone(data)
	default:
		return wrongTypeError(json.Unmarshal(data, target), reflect.TypeFor[T]())
	}
	return nil
}

// IsText reports whether a text that did not come in JSON can be stored: it is UTF-8 without the
// character NUL.
func IsText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// decodesItems reports whether a type is a list whose items have an UnmarshalJSON, which checks the
// members of each item.
func decodesItems[T any]() bool {
	list := reflect.TypeFor[T]()
	return list.Kind() == reflect.Slice &&
		reflect.PointerTo(list.Elem()).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// hasLoneSurrogate reports whether well-formed JSON has an escape of half a surrogate pair
// (RFC 8259, section 8.2), which encoding/json would decode to U+FFFD. Objects that
// are stored as they were sent may have it.
func hasLoneSurrogate(data []byte) bool {
	return bytes.Contains(data, []byte(`\u`)) && !jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true))
}

// typeName returns the name of a type in an error message; empty for types that need no message.
func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Struct:
		return "an object"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return "an array of objects"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return "an array of strings"
	}
	return ""
}

// wrongTypeError returns apierr.WrongType, with the expected type, for an error of a wrong type. Other
// errors are returned unchanged.
func wrongTypeError(err error, member reflect.Type) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	if wrong.Field != "" {
		member = wrong.Type
	}
	if typeName(member) == "" {
		return err
	}
	return apierr.WrongType.Because("%s", strings.TrimSpace(wrong.Field+" must be "+typeName(member)))
}

func unquote(data []byte) string {
	if len(data) > 1 && data[0] == '"' {
		return string(data[1 : len(data)-1])
	}
	return string(data)
}

// Decode decodes a JSON body into the struct that in points to. Members that only the representation of
// the resource has (the JSON names of the struct view) are read-only: they are ignored. It returns
// apierr.UnknownProperty for any other member. Where a member is invalid, it decodes the others and
// leaves that one absent.
func Decode(body []byte, in, view any) error {
	sent, err := object(body)
	if err != nil {
		return err
	}
	writable, readable := members(reflect.TypeOf(in).Elem()), map[string][]int(nil)
	if view != nil {
		readable = members(reflect.TypeOf(view))
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if _, ok := writable[name]; ok || name == "httpStatus" {
			continue
		}
		if _, ok := readable[name]; !ok {
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	if len(unknown) > 0 {
		named := "the property " + unknown[0] + " is"
		if len(unknown) > 1 {
			named = "the properties " + And(unknown) + " are"
		}
		return apierr.UnknownProperty.Because("%s unknown; the properties that can be sent are %s", named,
			And(slices.Sorted(maps.Keys(writable))))
	}
	return decodeMembers(sent, in)
}

// DecodeKnown is Decode, but every member that in does not have is ignored.
func DecodeKnown(body []byte, in any) error {
	sent, err := object(body)
	if err != nil {
		return err
	}
	return decodeMembers(sent, in)
}

// object returns the members of a JSON body.
func object(body []byte) (sent map[string]json.RawMessage, err error) {
	if !utf8.Valid(body) {
		return nil, apierr.Encoding.Because("the body is not valid UTF-8")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, apierr.Format.Because("the body is empty; a JSON object is expected").Saying(notJSON)
	}
	if err := json.Unmarshal(body, &sent); err != nil || sent == nil {
		return nil, malformed(body, err)
	}
	return sent, nil
}

// decodeMembers decodes the members that in has, and returns the first error.
func decodeMembers(sent map[string]json.RawMessage, in any) (first error) {
	target := reflect.ValueOf(in).Elem()
	writable := members(target.Type())
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		index, ok := writable[name]
		if !ok {
			continue
		}
		member := target.FieldByIndex(index)
		if err := json.Unmarshal(sent[name], member.Addr().Interface()); err != nil {
			member.SetZero()
			reason := apierr.From(err)
			if reason == apierr.Internal {
				reason = apierr.WrongType.Because("has the wrong type")
			}
			first = cmp.Or[error](first, reason.Because("%s %s", name, reason.Reason))
		}
	}
	return first
}

// notJSON is the message for the end user of a program that does not send a JSON object.
const notJSON = "The request cannot be read. Please tell the support of the application."

// malformed returns apierr.Format with the position of a syntax error, or for JSON that is no object.
func malformed(body []byte, err error) error {
	wrong, isOther := errors.AsType[*json.UnmarshalTypeError](err)
	if isOther || err == nil {
		kind := "null"
		if wrong != nil {
			kind = "of the type " + wrong.Value
		}
		return apierr.Format.Because("the body is not a JSON object; it is %s", kind).Saying(notJSON)
	}
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return apierr.Format.Because("the body is not a JSON object").Saying(notJSON)
	}
	before := string(body[:min(max(syntax.Offset-1, 0), int64(len(body)))]) // the offset is behind the character
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return apierr.Format.Because("the body is not well-formed JSON: line %d, column %d: %s", line, column,
		syntax.Error()).
		Saying(notJSON)
}

// Nested is Decode for an object inside of a body. It returns apierr.WrongType for any other value.
func Nested(data []byte, in, view any) error {
	if data[0] != '{' {
		return apierr.WrongType.Because("must be an object")
	}
	return Decode(data, in, view)
}

// Head has the members that every representation begins with. It is a view for Decode and Nested, or
// embedded in one: a client may send these members back.
type Head struct {
	Href       any `json:"href"`
	CreatedAt  any `json:"createdAt"`
	ModifiedAt any `json:"modifiedAt"`
}

var memberCache sync.Map // reflect.Type → map[string][]int

// members returns the indexes of the fields of a struct, and of its embedded structs, by JSON name.
func members(t reflect.Type) map[string][]int {
	if known, ok := memberCache.Load(t); ok {
		return known.(map[string][]int)
	}
	names := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names[name] = f.Index
		}
	}
	memberCache.Store(t, names)
	return names
}

// Suffixes of the reason "x is required", where one member is missing; First (errors.go) trims them
// where a reason names several members.
const (
	notNull  = "; it cannot be null"
	notBlank = notNull + ", empty or blank"
)

// Required returns a text that must have a value, without the white space around it. It returns
// apierr.Required (2000) if it is absent, null, empty or blank, and apierr.TooLong (2008) for more than
// most characters.
func Required(f Text, name string, most int) (string, error) {
	text := strings.TrimSpace(f.Or(""))
	if text == "" {
		return "", apierr.Required.Because("%s is required"+notBlank, name)
	}
	return text, checkLength(text, name, most)
}

// Verbatim is Required for a text whose white space at its ends is kept, because another system
// compares it.
func Verbatim(f Text, name string, most int) (string, error) {
	if _, err := Required(f, name, most); err != nil {
		return "", err
	}
	return f.Value, checkLength(f.Value, name, most)
}

// Optional returns a text that may be absent or null: then nil. It returns apierr.TooLong (2008) for
// more than most characters.
func Optional(f Text, name string, most int) (*string, error) {
	if !f.Given() {
		return nil, nil
	}
	return &f.Value, checkLength(f.Value, name, most)
}

// Nonempty is Optional for a text that must not be empty if it is present. It returns apierr.TooShort
// (2007) for an empty text.
func Nonempty(f Text, name string, most int) (*string, error) {
	if f.Given() && f.Value == "" {
		return nil, apierr.TooShort.Because("%s is empty; leave it out or send null instead", name)
	}
	return Optional(f, name, most)
}

func checkLength(text, name string, most int) error {
	if n := utf8.RuneCountInString(text); n > most {
		return apierr.TooLong.Because("%s has %d characters; at most %d are allowed", name, n, most)
	}
	return nil
}

// Enum returns one of the allowed values, which is compared in any letter case, or fallback if it is
// absent. It returns apierr.Required (2000) for null, and apierr.Unsupported (2003) for another value.
func Enum[E ~string](f Text, name string, fallback E, allowed ...E) (E, error) {
	if !f.Present {
		return fallback, nil
	}
	if f.Null || strings.TrimSpace(f.Value) == "" {
		return fallback, apierr.Required.Because("%s cannot be null or empty", name)
	}
	for _, value := range allowed {
		if strings.EqualFold(string(value), f.Value) {
			return value, nil
		}
	}
	return fallback, apierr.Unsupported.Because("%s must be %s", name, Or(allowed))
}

// Or joins names for a text: "ENABLED or DISABLED", "a, b or c".
func Or[E ~string](names []E) string { return join(names, " or ") }

// And joins names for a text: "a, b and c".
func And(names []string) string { return join(names, " and ") }

func join[E ~string](names []E, last string) string {
	var text strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			text.WriteString(last)
		case i > 0:
			text.WriteString(", ")
		}
		text.WriteString(string(name))
	}
	return text.String()
}

// Whole returns a whole number from least to most, or fallback if it is absent. It returns
// apierr.Required (2000) for null, and apierr.BelowMinimum or AboveMaximum (2009, 2010) for a number
// outside of the range.
func Whole(f Int, name string, fallback, least, most int) (int, error) {
	switch {
	case !f.Present:
		return fallback, nil
	case f.Null:
		return fallback, apierr.Required.Because("%s cannot be null", name)
	case f.Value < least:
		return fallback, apierr.BelowMinimum.Because("%s is %d; it must be at least %d", name, f.Value, least)
	case f.Value > most:
		return fallback, apierr.AboveMaximum.Because("%s is %d; it must be at most %d", name, f.Value, most)
	}
	return f.Value, nil
}
