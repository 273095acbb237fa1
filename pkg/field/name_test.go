package field

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestNamesShowEveryCharacter(t *testing.T) {
	for _, name := range []string{"Staff", "José Ñandú", "漢字", "a b", "a\u00a0b", "👍", "e\u0301"} {
		if got, err := Name(Some(name), "name", 255); err != nil || got != name {
			t.Errorf("%q becomes %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"a\u200bb", "a\u202eb", "a\x07b", "a\nb", "a\u2028b", "a\u00adb", "a\u3164b", "a\ufe0fb", "a\U000e0041b", "\ufeffa"} {
		if _, err := Name(Some(name), "name", 255); !errors.Is(err, apierr.Format) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Name(Some(" "), "name", 255); !errors.Is(err, apierr.Required) {
		t.Errorf("a blank name: %v", err)
	}
}

func TestOfSeveralRefusalsTheRequiredIsToldFirst(t *testing.T) {
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
