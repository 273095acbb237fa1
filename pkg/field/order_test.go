package field

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestOfSeveralRefusalsTheRequiredIsFirst(t *testing.T) {
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
