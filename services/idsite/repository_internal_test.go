package idsite

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/clocktest"
)

// dripping is the body of a server that sends rate bytes in each second of a clock.
type dripping struct {
	clock *clocktest.Clock
	rate  int
	left  int
}

func (d *dripping) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	d.clock.Move(time.Second)
	n := min(d.rate, d.left, len(p))
	d.left -= n
	return n, nil
}

func (*dripping) Close() error { return nil }

// RoundTrip makes dripping the transport to its server.
func (d *dripping) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: d}, nil
}

// A body has a least rate, after some seconds in which the server may prepare it.
func TestASlowBodyIsNotReadToItsEnd(t *testing.T) {
	for _, c := range []struct {
		what        string
		rate, bytes int
		want        error
		most        int // bytes that are read at most
	}{
		{"a byte in a second", 1, 100, errTooSlow, 6},
		{"just too slow", minRate - 1, 100 * minRate, errTooSlow, 6 * minRate},
		{"just fast enough", minRate, 100 * minRate, io.EOF, 100 * minRate},
		{"a small body within the first seconds", 1, 5, io.EOF, 5},
	} {
		t.Run(c.what, func(t *testing.T) {
			clock := &clocktest.Clock{}
			transport := limitedTransport{&dripping{clock: clock, rate: c.rate, left: c.bytes}, clock.Now}
			answer, err := transport.RoundTrip(&http.Request{Method: http.MethodPost})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			read, p := 0, make([]byte, minRate)
			for err == nil {
				var n int
				n, err = answer.Body.Read(p)
				read += n
			}
			if !errors.Is(err, c.want) || read > c.most || errors.Is(err, io.EOF) && read != c.bytes {
				t.Errorf("%d of %d bytes were read, %v, want %v", read, c.bytes, err, c.want)
			}
		})
	}
}
