// Package attribute has the attributes of an account that the claims of OpenID providers may have the value of
// (docs/interface/openid.md#tokens). services/oauth/openid reads what they need.
package attribute

import (
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
)

// Person is an account with what claims may say of it. What is not asked for is not read.
type Person struct {
	directoryapi.Account
	Place      applicationapi.LoginContext
	Directory  *directoryapi.Directory
	CustomData map[string]any
	Phone      string // the number of a verified phone
}

// sources are the attributes that a claim may have the value of. Those of customData are named by their members,
// customData.address.city.
var sources = map[string]func(Person) any{
	"username":   func(p Person) any { return p.Username },
	"email":      func(p Person) any { return p.Email },
	"givenName":  func(p Person) any { return optional(p.GivenName) },
	"middleName": func(p Person) any { return optional(p.MiddleName) },
	"surname":    func(p Person) any { return optional(p.Surname) },
	"fullName":   func(p Person) any { return p.FullName() },
	"locale":     func(p Person) any { return optional(p.Locale) },
	"status":     func(p Person) any { return p.Status },
	"createdAt":  func(p Person) any { return p.CreatedAt.Unix() },
	"modifiedAt": func(p Person) any { return p.ModifiedAt.Unix() },

	Groups:           func(p Person) any { return p.Place.Groups },
	"directory.id":   func(p Person) any { return p.DirectoryID.String() },
	"directory.name": func(p Person) any { return p.Directory.Name },
	"organization.id": ofOrganization(func(o applicationapi.LoginOrganization) any {
		return o.ID.String()
	}),
	"organization.name":    ofOrganization(func(o applicationapi.LoginOrganization) any { return o.Name }),
	"organization.nameKey": ofOrganization(func(o applicationapi.LoginOrganization) any { return o.NameKey }),
	"organization":         ofOrganization(func(o applicationapi.LoginOrganization) any { return o }),
}

// The attributes that are read only where a claim has their value.
const (
	Groups     = "groups.name"
	Phone      = "phone"
	CustomData = "customData." // and the path of a member

	maxLength = 255 // characters
)

func ofOrganization(value func(applicationapi.LoginOrganization) any) func(Person) any {
	return func(p Person) any {
		if p.Place.Organization == nil {
			return nil
		}
		return value(*p.Place.Organization)
	}
}

func optional(text *string) any {
	if text == nil {
		return nil
	}
	return *text
}

// Is reports whether a mapping may name an attribute.
func Is(name string) bool {
	path, isCustom := strings.CutPrefix(name, CustomData)
	return sources[name] != nil || isCustom && len(name) <= maxLength && !slices.Contains(strings.Split(path, "."), "")
}

// Value returns an attribute of a person; nil: there is none.
func (p Person) Value(source string) any {
	switch source {
	case "emailVerified":
		return p.EmailVerificationStatus == directoryapi.Verified && !p.EmailAssumed
	case Phone:
		return p.Phone
	case "phoneVerified":
		if p.Phone == "" {
			return nil
		}
		return true
	}
	path, isCustom := strings.CutPrefix(source, CustomData)
	if !isCustom {
		return sources[source](p)
	}
	var at any = p.CustomData
	for member := range strings.SplitSeq(path, ".") {
		object, _ := at.(map[string]any)
		at = object[member]
	}
	return at
}
