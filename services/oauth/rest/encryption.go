package rest

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/store"
)

// The query parameters by which a client asks for encrypted secrets, and their
// defaults (docs/interface/authentication.md#encrypted-secrets).
const (
	encryptSecret     = "encryptSecret"
	encryptionSalt    = "encryptionKeySalt"
	encryptionSize    = "encryptionKeySize"
	encryptionRounds  = "encryptionKeyIterations"
	saltLength        = 16 // bytes
	defaultSize       = "128"
	defaultIterations = "1024"
)

// apiKeyRenderer returns the function that renders API keys, with their secrets encrypted
// where the query of the request demands it.
func (h *handlers) apiKeyRenderer(c *fiber.Ctx) (func(store.APIKey) apiKeyView, error) {
	_, view, err := h.splitQuery(c)
	return view, err
}

// apiKeysQuery is apiKeyRenderer for a collection; it also parses the other parameters of the
// query.
func (h *handlers) apiKeysQuery(c *fiber.Ctx, spec list.Spec) (list.Query, func(store.APIKey) apiKeyView, error) {
	others, view, err := h.splitQuery(c)
	if err != nil {
		return list.Query{}, nil, err
	}
	query, err := list.Parse(others, spec)
	return query, view, err
}

// splitQuery returns the query of a request without the parameters of encryption, and the
// function that renders API keys.
func (h *handlers) splitQuery(c *fiber.Ctx) (string, func(store.APIKey) apiKeyView, error) {
	encryption, others, err := parseEncryption(string(c.Request().URI().QueryString()))
	if err != nil || encryption == nil {
		return others, h.apiKeyView, err
	}
	encrypt, err := h.svc.Encrypter(c.UserContext(), rest.Caller(c).Tenant, rest.Caller(c).Key, *encryption)
	return others, func(k store.APIKey) apiKeyView {
		k.Secret = encrypt(k.Secret)
		return h.apiKeyView(k)
	}, err
}

// parseEncryption reads the parameters of encryption of a query, and returns the query
// without them. The Encryption is nil where the client does not ask for encryption.
func parseEncryption(query string) (*oauth.Encryption, string, error) {
	given := map[string]string{encryptSecret: "false", encryptionSize: defaultSize, encryptionRounds: defaultIterations}
	seen := map[string]bool{}
	var others []string
	for part := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(rawName)
		switch name {
		case encryptSecret, encryptionSalt, encryptionSize, encryptionRounds:
		default:
			others = append(others, part)
			continue
		}
		value, err2 := url.QueryUnescape(rawValue)
		switch {
		case err != nil || err2 != nil:
			return nil, "", apierr.MalformedQuery.Because("the query part %q must have the form name=value", part)
		case value == "":
			return nil, "", apierr.ParameterEmpty.Because("the query parameter %q needs a value", name)
		case seen[name] && given[name] != value:
			return nil, "", apierr.ParameterRepeated.Because("the query parameter %q has two values", name)
		}
		given[name], seen[name] = value, true
	}
	encryption, err := readEncryption(given)
	return encryption, strings.Join(others, "&"), err
}

// readEncryption checks the values of the parameters of encryption.
func readEncryption(given map[string]string) (*oauth.Encryption, error) {
	switch {
	case strings.EqualFold(given[encryptSecret], "false"):
		return nil, nil
	case !strings.EqualFold(given[encryptSecret], "true"):
		return nil, apierr.ParameterInvalid.Because("%s must be true or false", encryptSecret)
	case given[encryptionSalt] == "":
		return nil, apierr.ParameterEmpty.Because("the query parameter %s is required: the URL-safe Base64 of %d bytes", encryptionSalt,
			saltLength)
	}
	salt, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(given[encryptionSalt], "="))
	if err != nil || len(salt) != saltLength {
		return nil, apierr.ParameterInvalid.Because("%s must be the URL-safe Base64 of %d bytes", encryptionSalt, saltLength)
	}
	bits, err := strconv.Atoi(given[encryptionSize])
	if err != nil || (bits != 128 && bits != 192 && bits != 256) {
		return nil, apierr.ParameterInvalid.Because("%s must be 128, 192 or 256", encryptionSize)
	}
	iterations, err := strconv.Atoi(given[encryptionRounds])
	if err != nil || iterations < 1 || iterations > oauth.MaxIterations {
		return nil, apierr.ParameterInvalid.Because("%s must be a whole number from 1 to %d", encryptionRounds, oauth.MaxIterations)
	}
	return &oauth.Encryption{Salt: salt, Bits: bits, Iterations: iterations}, nil
}
