// Package apierr has the error type of all errors that a client can get. Rules return a value of
// catalog.go, or one with texts of its own: Because sets the reason, which is the developerMessage of
// the answer, and Saying sets the message, which a client may show to its end user:
//
//	return apierr.Exists.Because("an account with the email %q exists in the directory", email).
//		Saying("An account with that email exists.")
//
// errors.Is compares codes, so that an error keeps its identity when it is wrapped, and when it is
// sent between services. pkg/rest/errors.go turns it into an HTTP answer; any other error
// becomes a 500, whose text is only in the log.
package apierr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Error is an error of the interface: docs/interface/errors.md#body.
type Error struct {
	Status  int    `json:"status"`  // HTTP status
	Code    int    `json:"code"`    // stable number that clients compare
	Message string `json:"message"` // may be shown to an end user

	// Reason says to the developer of the client what to change.
	Reason string `json:"reason,omitempty"`
	// RetryAfter, where not zero, is sent as the header Retry-After.
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	// Allow, where set, is sent as the header Allow of a 405.
	Allow string `json:"allow,omitempty"`
	// Location, where set, is sent as the header Location: the URL of the resource
	// with which the request conflicts.
	Location string `json:"location,omitempty"`
	// Fields are further members of the error body, such as "error" on the
	// token endpoint (RFC 6749, section 5.2).
	Fields map[string]any `json:"fields,omitempty"`
}

// Error returns the text for a log.
func (e *Error) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("%d/%d: %s", e.Status, e.Code, e.Message)
	}
	return fmt.Sprintf("%d/%d: %s", e.Status, e.Code, e.Reason)
}

// DeveloperMessage returns the literal that clients compare for every error of the code, else the
// reason; without a reason the literal that stands for it, or the explanation of the code.
func (e *Error) DeveloperMessage() string {
	return cmp.Or(fixedMessages[e.Code], e.Reason, comparedMessages[e.Code], defaultReason(e.Code))
}

// Description returns the DeveloperMessage as error_description may have it (RFC 6749, section 5.2).
func (e *Error) Description() string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < ' ' || r > '~' || r == '\\':
			return -1
		}
		return r
	}, e.DeveloperMessage())
}

// Is reports whether target is the same entry of the catalogue.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Status == e.Status
}

// Because returns the error with a reason for the developer.
func (e *Error) Because(format string, args ...any) *Error {
	c := *e
	c.Reason = fmt.Sprintf(format, args...)
	return &c
}

// Saying returns the error with another message for the end user.
func (e *Error) Saying(format string, args ...any) *Error {
	c := *e
	c.Message = fmt.Sprintf(format, args...)
	return &c
}

// With returns the error with one more member of its body.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Fields = maps.Clone(e.Fields)
	if c.Fields == nil {
		c.Fields = map[string]any{}
	}
	c.Fields[name] = value
	return &c
}

// WithRetryAfter returns the error with RetryAfter, the time that the client should wait.
func (e *Error) WithRetryAfter(wait time.Duration) *Error {
	c := *e
	c.RetryAfter = wait
	return &c
}

// WithLocation returns the error with Location, the URL of the resource with which the request conflicts.
func (e *Error) WithLocation(location string) *Error {
	c := *e
	c.Location = location
	return &c
}

// IsLoginRefusal reports whether err says that a login is refused for its login name, its password or
// the state of its account: 7100 to 7107.
func IsLoginRefusal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code >= WrongPassword.Code && e.Code <= OrganizationDisabled.Code
}

// IsRefusal reports whether err refuses a request for a reason of its client: a status below 500. It is
// false for nil, and for a failure of the server, which says nothing about the request.
func IsRefusal(err error) bool { return err != nil && From(err).Status < 500 }

// IsOneOf reports whether err is one of some refusals.
func IsOneOf(err error, refusals []error) bool {
	return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) })
}

// From returns the *Error that err wraps, Internal for any other error, and nil for nil. Work that has
// taken longer than its context allows is Unavailable, because the request can be repeated: the
// database or a peer hangs.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Unavailable.Because("the request took longer than it may; repeat it later").WithRetryAfter(time.Second)
	}
	return Internal
}

// Body renders the error as the interface's error body. moreInfo is the
// address of the page that explains the code.
func (e *Error) Body(moreInfo, requestID string) []byte {
	head, _ := json.Marshal(struct {
		Status           int    `json:"status"`
		Code             int    `json:"code"`
		Message          string `json:"message"`
		DeveloperMessage string `json:"developerMessage"`
		MoreInfo         string `json:"moreInfo"`
		RequestID        string `json:"requestId"`
	}{e.Status, e.Code, e.Message, e.DeveloperMessage(), moreInfo, requestID})
	if len(e.Fields) == 0 {
		return head
	}
	tail, err := json.Marshal(e.Fields)
	if err != nil {
		return head
	}
	return append(append(head[:len(head)-1], ','), tail[1:]...)
}
