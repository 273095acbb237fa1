package idsiteapi

import (
	"regexp"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

const (
	maxName  = 255 // characters of the name of a tenant
	maxKey   = 60  // characters of the key of a tenant, which is a label of a host name
	maxEmail = 255
	// secretLength is the length of the secret of an API key, in characters of base62.
	secretLength = 43
)

// keyPattern is that of the key of a tenant.
var keyPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// NewTenant is what an operator says of a new tenant.
type NewTenant struct {
	Name       field.Text `json:"name"`
	OwnerEmail field.Text `json:"ownerEmail"`
	Key        field.Text `json:"key"` // absent: two words that are free
}

// Request checks what was said, and returns the request to create the tenant with a new API key. It returns
// apierr.Required, apierr.Format and the like.
func (n NewTenant) Request(now time.Time) (in CreateTenant, err error) {
	in = CreateTenant{ID: id.New(now), KeyID: secure.KeyID(), KeySecret: secure.Token(secretLength)}
	if in.Name, err = field.Required(n.Name, "name", maxName); err != nil {
		return in, err
	}
	if in.OwnerEmail, err = field.Required(n.OwnerEmail, "ownerEmail", maxEmail); err != nil {
		return in, err
	}
	if err := field.Email("ownerEmail", in.OwnerEmail); err != nil {
		return in, err
	}
	if !n.Key.Given() {
		return in, nil
	}
	if in.Key, err = field.Required(n.Key, "key", maxKey); err == nil && !keyPattern.MatchString(in.Key) {
		err = apierr.Format.Because("key has lower-case letters, digits, and single hyphens between them; it is %q",
			in.Key)
	}
	return in, err
}
