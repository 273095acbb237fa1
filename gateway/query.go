package gateway

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// controls are the parameters of a query that the gateway acts on itself; the
// service does not see them.
type ownParameters struct {
	method string // of _method: the method that a POST stands for
	expand string // of expand, decoded
	raw    []byte // of expand, as sent with its name
}

// takeControls splits a query into what the gateway acts on and what the
// service gets, which it appends to dst.
func splitQuery(dst, query []byte) ([]byte, ownParameters, error) {
	var own ownParameters
	if !bytes.Contains(query, []byte("expand")) && !bytes.Contains(query, []byte("_method")) && bytes.IndexByte(query, '%') < 0 {
		return append(dst, query...), own, nil
	}
	var seen [2]bool
	start := len(dst)
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		name, value, _ := bytes.Cut(pair, []byte{'='})
		which := ownParameter(name)
		if which < 0 {
			if len(dst) > start {
				dst = append(dst, '&')
			}
			dst = append(dst, pair...)
			continue
		}
		if seen[which] {
			return dst, own, apierr.ParameterRepeated.Because("%s is given twice", ownNames[which])
		}
		seen[which] = true
		text, err := url.QueryUnescape(string(value))
		if err != nil {
			return dst, own, apierr.MalformedQuery.Because("the value of %s has a broken escape", ownNames[which])
		}
		if text = strings.TrimSpace(text); text == "" {
			return dst, own, apierr.ParameterEmpty.Because("%s needs a value", ownNames[which])
		}
		if which == 0 {
			own.expand, own.raw = text, pair
		} else {
			own.method = text
		}
	}
	return dst, own, nil
}

var ownNames = [2]string{"expand", "_method"}

// controlOf gives the place of a parameter's name in controlNames, or -1.
func ownParameter(name []byte) int {
	if bytes.IndexByte(name, '%') >= 0 {
		if plain, err := url.QueryUnescape(string(name)); err == nil {
			name = []byte(plain)
		}
	}
	for i := range ownNames {
		if string(name) == ownNames[i] {
			return i
		}
	}
	return -1
}

// standsFor gives the method that a request means. Only a POST can stand for
// another one, and PUT is how some clients spell an update.
func standsFor(method, override string) (string, error) {
	switch {
	case method == fiber.MethodHead:
		return fiber.MethodGet, nil
	case method != fiber.MethodPost || override == "" || strings.EqualFold(override, fiber.MethodPut):
		return method, nil
	case strings.EqualFold(override, fiber.MethodDelete):
		return fiber.MethodDelete, nil
	}
	return method, apierr.QueryUnsupported.Because("_method can be DELETE or PUT, not %q", override)
}
