package saml

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"
)

// Limits of a message.
const (
	maxDepth      = 40
	maxElements   = 5000
	maxAttributes = 50 // of one element
)

// The namespaces of messages.
const (
	assertionNamespace  = "urn:oasis:names:tc:SAML:2.0:assertion"
	signatureNamespace  = "http://www.w3.org/2000/09/xmldsig#"
	encryptionNamespace = "http://www.w3.org/2001/04/xmlenc#"
)

// parseDocument parses the XML of a message. It refuses what no message needs and XML parsers
// treat differently: a document type, entities (XXE), processing instructions, comments, and
// duplicate ids.
func parseDocument(text []byte) (*etree.Element, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	if err := checkTokens(text); err != nil {
		return nil, err
	}
	document := etree.NewDocument()
	if err := document.ReadFromBytes(text); err != nil || document.Root() == nil {
		return nil, errors.New("it is not well-formed XML")
	}
	return document.Root(), checkElements(document.Root(), map[string]bool{})
}

func checkTokens(text []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	depth, elements, roots := 0, 0, 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			if depth != 0 || roots != 1 {
				return errors.New("it must be one element")
			}
			return nil
		}
		if err != nil {
			return errors.New("it is not well-formed XML")
		}
		switch token := token.(type) {
		case xml.Directive:
			return errors.New("it has a document type")
		case xml.Comment:
			return errors.New("it has a comment")
		case xml.ProcInst:
			if token.Target != "xml" {
				return errors.New("it has a processing instruction")
			}
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			depth++
			elements++
			if err := checkNames(token); err != nil {
				return err
			}
			if depth > maxDepth || elements > maxElements {
				return fmt.Errorf("it has more than %d elements, or more than %d within one another", maxElements,
					maxDepth)
			}
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(token)) > 0 {
				return errors.New("there is text around the element")
			}
		case xml.EndElement:
			depth--
		}
	}
}

// checkNames refuses duplicate attributes, and names that encoding/xml reads differently than other
// parsers: with more than one colon, or with an invalid first character of the local part. The names
// in messages are ASCII.
func checkNames(element xml.StartElement) error {
	isMalformed := func(name xml.Name) bool {
		return !isNameStart(name.Local) || strings.Contains(name.Local, ":")
	}
	if isMalformed(element.Name) {
		return errors.New("it is not well-formed XML")
	}
	if len(element.Attr) > maxAttributes {
		return fmt.Errorf("an element has more than %d attributes", maxAttributes)
	}
	for i, attribute := range element.Attr {
		if isMalformed(attribute.Name) {
			return errors.New("it is not well-formed XML")
		}
		if slices.ContainsFunc(element.Attr[:i], func(other xml.Attr) bool { return other.Name == attribute.Name }) {
			return errors.New("an element has an attribute twice")
		}
	}
	return nil
}

func isNameStart(text string) bool {
	return text != "" && (text[0] == '_' || 'a' <= text[0]|0x20 && text[0]|0x20 <= 'z')
}

// checkElements refuses an id that two elements have, because a signature refers to the signed element
// by its id, and a prefix that is not declared, which encoding/xml takes for a namespace (Namespaces
// in XML 1.0, section 5).
func checkElements(element *etree.Element, seen map[string]bool) error {
	if element.Space != "" && element.NamespaceURI() == "" {
		return errors.New("it is not well-formed XML")
	}
	for _, attribute := range element.Attr {
		if attribute.Space != "" && attribute.Space != "xmlns" && attribute.Space != "xml" &&
			attribute.NamespaceURI() == "" {
			return errors.New("it is not well-formed XML")
		}
		if !strings.EqualFold(attribute.Key, "ID") {
			continue
		}
		if seen[attribute.Value] {
			return errors.New("two elements have the same ID")
		}
		seen[attribute.Value] = true
	}
	for _, child := range element.ChildElements() {
		if err := checkElements(child, seen); err != nil {
			return err
		}
	}
	return nil
}

// hasName reports whether an element has a name in a namespace.
func hasName(element *etree.Element, namespace, name string) bool {
	return element.Tag == name && element.NamespaceURI() == namespace
}

// childrenOf returns the child elements with a name.
func childrenOf(element *etree.Element, namespace, name string) []*etree.Element {
	var found []*etree.Element
	for _, child := range element.ChildElements() {
		if hasName(child, namespace, name) {
			found = append(found, child)
		}
	}
	return found
}

// childOf returns the child element with a name, or nil if there is none or more than one.
func childOf(element *etree.Element, namespace, name string) *etree.Element {
	if found := childrenOf(element, namespace, name); len(found) == 1 {
		return found[0]
	}
	return nil
}

// textOf returns all of the text in an element without the white space around it.
func textOf(element *etree.Element) string {
	if element == nil {
		return ""
	}
	var text strings.Builder
	var walk func(*etree.Element)
	walk = func(e *etree.Element) {
		for _, child := range e.Child {
			switch child := child.(type) {
			case *etree.CharData:
				text.WriteString(child.Data)
			case *etree.Element:
				walk(child)
			}
		}
	}
	walk(element)
	return strings.TrimSpace(text.String())
}

// decodeBase64 decodes Base64 with or without line breaks.
func decodeBase64(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
}
