package field

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestOfSeveralErrorsTheRequiredIsFirst(t *testing.T) {
	format, value, required := apierr.Format.Because("f"), apierr.Unsupported.Because("v"), apierr.Required.Because("r")
	for _, c := range []struct {
		all  []error
		want error
	}{
		{nil, nil},
		{[]error{nil, nil}, nil},
		{[]error{format, nil, value, required}, required},
		{[]error{format, value}, value},
		{[]error{apierr.TooLong, format}, apierr.TooLong},
	} {
		if got := First(c.all...); !errors.Is(got, c.want) {
			t.Errorf("First(%v) = %v, want %v", c.all, got, c.want)
		}
	}
}

func TestWhatIsRequiredIsNamedAtOnce(t *testing.T) {
	read := func(name string) error {
		_, err := Required(Text{}, name, 10)
		return err
	}
	for want, all := range map[string][]error{
		"email is required; it cannot be null, empty or blank":      {nil, read("email"), apierr.Format},
		"email is required; password is required":                   {read("email"), apierr.Unsupported, read("password"), read("email")},
		"email is required; surname is required; color is required": {First(read("email"), read("surname")), read("color")},
	} {
		if got := apierr.From(First(all...)); !errors.Is(got, apierr.Required) || got.Reason != want {
			t.Errorf("First(%v) = %v, want %q", all, got, want)
		}
	}
}
