package field

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestURL(t *testing.T) {
	web, free := URL("https", "http"), URL()
	for _, c := range []struct {
		value     string
		web, free bool
	}{
		{"https://a.test", true, true},
		{"https://a.test:65535/b?c=d", true, true},
		{"http://[::1]:8080/", true, true},
		{"HTTPS://a.test/", true, true},
		{"myapp://callback", false, true},
		{"myapp:/callback", false, true},
		{"/callback", false, false},
		{"a.test", false, false},
		{"https://", false, false},
		{"http:///path", false, false},
		{"https:a.test", false, false},
		{"https://:443/", false, false},
		{"https://a.test:0/", false, false},
		{"https://a.test:65536/", false, false},
		{"myapp://callback:99999/", false, false},
		{"https://jo@a.test/", false, false},
		{"https://a.test/#f", false, false},
		{"https://a.test/ b", false, false},
	} {
		for _, check := range []struct {
			of   func(name, value string) (string, error)
			good bool
		}{{web, c.web}, {free, c.free}} {
			value, err := check.of("link", c.value)
			if good := err == nil && value == c.value; good != check.good || err != nil && !errors.Is(err, apierr.Format) {
				t.Errorf("%s: %q, %v", c.value, value, err)
			}
		}
	}
}
