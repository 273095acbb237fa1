// Package claimsparameter reads the parameter claims of an authorization request (OpenID Connect Core, section 5.5).
package claimsparameter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// MaxLength bounds the parameter, in bytes.
const MaxLength = 8 << 10

// Claims is the parameter. A claim without members is nil.
type Claims struct {
	IDToken  map[string]*Claim `json:"id_token,omitempty"`
	UserInfo map[string]*Claim `json:"userinfo,omitempty"`
}

// Claim says how a claim is asked for.
type Claim struct {
	Essential bool  `json:"essential,omitempty"`
	Value     any   `json:"value,omitempty"`
	Values    []any `json:"values,omitempty"`
}

var errClaims = apierr.BadRequest.Because(
	"claims must be a JSON object with the members id_token and userinfo: at most %d claims each, "+
		"each null or an object with essential, value, values", relyingparty.MaxList).
	With("error", "invalid_request")

// Parse reads the parameter claims; an empty text asks for none. Members that are not known are ignored.
func Parse(text string) (in Claims, err error) {
	if text == "" {
		return in, nil
	}
	if len(text) > MaxLength || text[0] != '{' {
		return in, errClaims
	}
	reader := json.NewDecoder(bytes.NewReader([]byte(text)))
	if reader.Decode(&in) != nil {
		return Claims{}, errClaims
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		return Claims{}, errClaims
	}
	for _, claims := range []map[string]*Claim{in.IDToken, in.UserInfo} {
		if len(claims) > relyingparty.MaxList {
			return Claims{}, errClaims
		}
		for name := range claims {
			if name == "" || len(name) > relyingparty.MaxText || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
				return Claims{}, errClaims
			}
		}
	}
	return in, nil
}

// Names returns the claims of the parameter without their members, as an authorization has it from here to the code.
func (in Claims) Names() json.RawMessage {
	if len(in.IDToken) == 0 && len(in.UserInfo) == 0 {
		return nil
	}
	for _, claims := range []map[string]*Claim{in.IDToken, in.UserInfo} {
		for name := range claims {
			claims[name] = nil
		}
	}
	text, _ := json.Marshal(in) // maps of nil pointers
	return text
}

// Texts are the texts that the value of a claim is asked to be, in the order of preference.
func (c *Claim) Texts() []string {
	if c == nil {
		return nil
	}
	var texts []string
	for _, value := range append([]any{c.Value}, c.Values...) {
		text, ok := value.(string)
		if ok && text != "" && len(text) <= relyingparty.MaxText && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }) {
			texts = append(texts, text)
		}
	}
	return texts
}
