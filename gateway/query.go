package gateway

import (
	"bytes"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
)

// gatewayParameters are the query parameters that the gateway itself uses; they are not
// forwarded to the service.
type gatewayParameters struct {
	method    string // value of _method: the method that a POST stands for
	expand    string // value of expand, decoded; parsed by parseExpand (expand.go)
	rawExpand []byte // expand=value, as the client sent it
}

// splitQuery splits a query into the parameters of the gateway and those of the service, which it
// appends to dst. A parameter that is repeated with the same value counts once
// (docs/interface/search.md#filters).
func splitQuery(dst, query []byte) ([]byte, gatewayParameters, error) {
	var own gatewayParameters
	if !bytes.Contains(query, []byte("expand")) && !bytes.Contains(query, []byte("_method")) &&
		bytes.IndexByte(query, '%') < 0 {
		return append(dst, query...), own, nil
	}
	start := len(dst)
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		name, value, _ := bytes.Cut(pair, []byte{'='})
		which := gatewayParameterIndex(name)
		if which < 0 {
			if len(dst) > start {
				dst = append(dst, '&')
			}
			dst = append(dst, pair...)
			continue
		}
		text, err := url.QueryUnescape(string(value))
		if err != nil {
			return dst, own, apierr.MalformedQuery.Because("the value of %s has a broken escape",
				gatewayParameterNames[which])
		}
		if text = strings.TrimSpace(text); text == "" {
			return dst, own, apierr.ParameterEmpty.Because("%s needs a value", gatewayParameterNames[which])
		}
		into := &own.method
		if which == 0 {
			into, own.rawExpand = &own.expand, pair
		}
		if *into != "" && *into != text {
			return dst, own, apierr.ParameterRepeated.Because("%s is repeated with different values",
				gatewayParameterNames[which])
		}
		*into = text
	}
	return dst, own, nil
}

// gatewayParameterNames are the names of the gatewayParameters: expand is for expand.go, _method for
// method.go.
var gatewayParameterNames = [2]string{"expand", "_method"}

// gatewayParameterIndex returns the index of a parameter's name in gatewayParameterNames, or -1.
func gatewayParameterIndex(name []byte) int {
	if bytes.IndexByte(name, '%') >= 0 {
		if plain, err := url.QueryUnescape(string(name)); err == nil {
			name = []byte(plain)
		}
	}
	for i := range gatewayParameterNames {
		if string(name) == gatewayParameterNames[i] {
			return i
		}
	}
	return -1
}

// encryptionParameterNames are the parameters by which a client has the secrets of API keys encrypted
// (docs/interface/authentication.md#encrypted-secrets). An expansion passes them on (expand.go).
var encryptionParameterNames = []string{"encryptSecret", "encryptionKeySalt", "encryptionKeySize",
	"encryptionKeyIterations"}

// encryptionParameters returns these parameters of a query, as the client sent them.
func encryptionParameters(query []byte) string {
	var found []string
	for pair := range strings.SplitSeq(string(query), "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil && slices.Contains(encryptionParameterNames, plain) {
			found = append(found, pair)
		}
	}
	return strings.Join(found, "&")
}
