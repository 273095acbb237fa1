package connect

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/oauth2"

	"github.com/doorward/doorward/pkg/outbound"
)

const (
	// callTimeout bounds one call of a provider, its answer included.
	callTimeout = 10 * time.Second
	// maxAnswer bounds the body of an answer, in bytes.
	maxAnswer = 1 << 20
	// maxCalls is how many calls of one host wait for its answer at the same time. As
	// many more are queued for queueTimeout, and the rest fails at once: logins at a
	// provider that hangs must leave room among the requests that a tenant may have in
	// flight, which are 100.
	maxCalls     = 32
	maxQueued    = 32
	queueTimeout = time.Second
	// maxReason bounds what an error repeats of an answer, in bytes.
	maxReason = 300
)

var (
	errAnswerTooLarge = fmt.Errorf("it answered with more than %d bytes", maxAnswer)
	errBusy           = errors.New("too many logins wait for its answers")
)

// newHTTP makes the HTTP client of all calls. A redirection is an answer like any
// other: no call follows it with its secrets.
func newHTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: &limited{next: transport, hosts: map[string]*host{}}, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limited bounds the size of answers, and the calls of one host that wait at the
// same time. It reads answers whole, and marks as JSON what is JSON, whatever the
// provider calls it.
type limited struct {
	next http.RoundTripper

	mu    sync.Mutex
	hosts map[string]*host // those that are called at present
}

type host struct {
	calls chan struct{}
	users int // that call it or are queued
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	leave, err := l.enter(request.Context(), request.URL.Host)
	if err != nil {
		return nil, err
	}
	defer leave()
	answer, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxAnswer {
		return nil, errAnswerTooLarge
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '{' {
		answer.Header.Set("Content-Type", "application/json")
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

func (l *limited) enter(ctx context.Context, name string) (leave func(), err error) {
	l.mu.Lock()
	h := l.hosts[name]
	if h == nil {
		h = &host{calls: make(chan struct{}, maxCalls)}
		l.hosts[name] = h
	}
	if h.users == maxCalls+maxQueued {
		l.mu.Unlock()
		return nil, errBusy
	}
	h.users++
	l.mu.Unlock()
	forget := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(l.hosts, name)
		}
	}
	queue := time.NewTimer(queueTimeout)
	defer queue.Stop()
	select {
	case h.calls <- struct{}{}:
		return func() { <-h.calls; forget() }, nil
	case <-queue.C:
		err = errBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	forget()
	return nil, err
}

// get asks for a JSON object, with the headers that header sets. kept is the
// object as it was sent.
func (s *session) get(
	ctx context.Context, address string, header func(http.Header),
) (object map[string]any, kept json.RawMessage, err error) {
	answer, body, err := s.call(ctx, address, header)
	if err != nil {
		return nil, nil, s.failed(err)
	}
	if answer.StatusCode/100 != 2 {
		return nil, nil, s.refuse(statusText(answer.StatusCode))
	}
	object, err = decode(body)
	if err != nil {
		return nil, nil, s.refuse("it did not answer with a JSON object")
	}
	return object, body, nil
}

func (c *Client) call(ctx context.Context, address string, header func(http.Header)) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "doorward")
	if header != nil {
		header(request.Header)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return answer, body, err
}

var errNoObject = errors.New("the answer is not one JSON object")

// decode reads one JSON object; numbers keep their digits.
func decode(body []byte) (object map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil || object == nil || decoder.More() {
		return nil, errNoObject
	}
	return object, nil
}

func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// reason says for the developer why a call failed. It does not repeat addresses,
// which may have a token in them.
func reason(err error) string {
	var refused *oauth2.RetrieveError
	var network net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		text := ""
		if refused.Response != nil && refused.Response.StatusCode/100 != 2 {
			text = statusText(refused.Response.StatusCode)
		}
		for _, said := range []string{refused.ErrorCode, refused.ErrorDescription} {
			if said = visible(said); said != "" {
				text = strings.TrimPrefix(text+": "+said, ": ")
			}
		}
		if text == "" {
			text = "it refused the authorization code"
		}
		return text
	case errors.Is(err, errAnswerTooLarge):
		return errAnswerTooLarge.Error()
	case errors.Is(err, errBusy):
		return errBusy.Error()
	case errors.Is(err, outbound.ErrForbidden):
		return "its address is not public; see DOORWARD_OUTBOUND_PRIVATE_NETWORKS"
	case errors.As(err, &certificate):
		return "its certificate is not trusted; see DOORWARD_OUTBOUND_CA_FILE"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "it did not answer in time"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it cannot be reached"
	}
	return "its answer makes no sense"
}

// visible is a text of a provider on one line.
func visible(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, ""))
}
