package apierr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAnErrorKeepsItsIdentityThroughWrappingAndJSON(t *testing.T) {
	err := fmt.Errorf("load: %w", Exists.Because("the name %q is taken", "Staff").Saying("Taken.").With("accountLink", "x").WithRetryAfter(time.Second))
	if !errors.Is(err, Exists) || errors.Is(err, NotFound) {
		t.Fatalf("errors.Is fails on %v", err)
	}
	text, marshalErr := json.Marshal(From(err))
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	far := new(Error)
	if err := json.Unmarshal(text, far); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(far, Exists) || far.Reason != `the name "Staff" is taken` || far.RetryAfter != time.Second || far.Fields["accountLink"] != "x" {
		t.Fatalf("the far error is %+v", far)
	}
	if Exists.Reason != "" || Exists.Fields != nil || Exists.RetryAfter != 0 {
		t.Fatalf("the catalogue was changed: %+v", Exists)
	}
}

func TestAnythingElseIsInternal(t *testing.T) {
	if From(errors.New("a secret detail")) != Internal || From(nil) != nil {
		t.Fatal("From lets an unknown error out")
	}
}

// The database or a peer hangs: the client repeats the request.
func TestWorkThatTakesTooLongIsUnavailable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	if refusal := From(fmt.Errorf("read an account: %w", ctx.Err())); refusal.Status != 503 || refusal.RetryAfter == 0 {
		t.Fatalf("a deadline that has passed is %+v", refusal)
	}
	if own := From(errors.Join(NotFound, ctx.Err())); own.Status != 404 {
		t.Fatalf("an error of the catalogue becomes %+v", own)
	}
}

func TestEveryErrorIsListedOnce(t *testing.T) {
	seen := map[int]string{}
	for _, e := range All() {
		if other, twice := seen[e.Code]; twice {
			t.Errorf("code %d stands twice: %q, %q", e.Code, other, e.Message)
		}
		seen[e.Code] = e.Message
		if e.Status < 400 || e.Status > 599 || e.Message == "" {
			t.Errorf("%+v has no status or no text", e)
		}
	}
}

// docs/interface/errors.md#texts-that-clients-compare
func TestTextsThatClientsCompare(t *testing.T) {
	for e, want := range map[*Error]struct{ message, developerMessage string }{
		Unauthorized: {"Authentication required.", ""},
		NotFound.Because("no account has the id %q", "x"): {
			"The requested resource does not exist.", "The requested resource does not exist.",
		},
		TokenSignature.Because("the header stt is missing"): {
			"Token is invalid", "Token is invalid because verifying the signature of a JWT failed.",
		},
		ClientCredentials.Because("the key is disabled"): {
			"", "API Key Authentication failed because the API key or secret submitted is invalid.",
		},
		AlreadyLinked:  {"These accounts are already linked.", ""},
		WrongType:      {"is an invalid type.", ""},
		NoSuchResource: {"does not match a known resource", ""},
		WrongPassword: {
			"Invalid username or password.",
			"Login attempt failed because the specified password is incorrect.",
		},
		NoSuchAccount: {
			"Invalid username or password.",
			"Login attempt failed because there is no Account in the Application's associated Account Stores " +
				"with the specified username or email.",
		},
		PhoneNumberFixed:   {"", "Verified phone numbers cannot be modified."},
		PhoneNumberInvalid: {"", "The provided phone number is invalid."},
		PhoneNumberExists: {
			"An existing phone with that number already exists for this Account.",
			"An existing phone with that number already exists for this Account.",
		},
		MessagePlaceholder: {"${code}", "The challenge message must include '${code}'."},
	} {
		if !strings.Contains(e.Message, want.message) || !strings.Contains(e.DeveloperMessage(), want.developerMessage) {
			t.Errorf("the texts of %d are %q and %q, want %q", e.Code, e.Message, e.DeveloperMessage(), want)
		}
	}
}

func TestTheBodyHasItsSixMembersAndTheFields(t *testing.T) {
	var body map[string]any
	if err := json.Unmarshal(NotFound.With("error", "invalid_grant").Body("https://x/errors/404", "r1"), &body); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"status", "code", "message", "developerMessage", "moreInfo", "requestId", "error"} {
		if body[name] == nil || body[name] == "" {
			t.Errorf("the body has no %s: %v", name, body)
		}
	}
}

func TestARefusalIsNoFailureOfTheServer(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, NotFound: true, fmt.Errorf("wrapped: %w", TooMany): true, Unavailable: false, Internal: false,
		errors.New("any other"): false, context.DeadlineExceeded: false,
	} {
		if got := IsRefusal(err); got != want {
			t.Errorf("IsRefusal(%v) = %t, want %t", err, got, want)
		}
	}
}
