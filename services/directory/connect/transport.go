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
	// callTimeout bounds one call of a provider, including its answer.
	callTimeout = 10 * time.Second
	// maxAnswer bounds the body of an answer, in bytes.
	maxAnswer = 1 << 20
	// maxCalls is how many calls of one host may be in flight (bulkhead). maxQueued more wait for
	// queueTimeout, and further calls fail at once: logins at a provider that hangs must not use up
	// the 100 requests that a tenant may have in flight.
	maxCalls     = 32
	maxQueued    = 32
	queueTimeout = time.Second
	// maxReason bounds the text of a provider in an error, in bytes.
	maxReason = 300
)

var (
	errAnswerTooLarge = fmt.Errorf("it answered with more than %d bytes", maxAnswer)
	errBusy           = errors.New("too many logins wait for its answers")
)

// newHTTP makes the HTTP client of all calls. It does not follow redirects, which would send
// secrets elsewhere.
func newHTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: &limitedTransport{next: transport, hosts: map[string]*host{}}, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limitedTransport limits the size of answers, and the calls of each host in flight. It reads
// answers completely, and sets the content type of JSON objects, as some providers send another.
type limitedTransport struct {
	next http.RoundTripper

	mu    sync.Mutex
	hosts map[string]*host // hosts with calls in flight or queued
}

type host struct {
	calls   chan struct{}
	callers int // calls in flight or queued
}

// RoundTrip implements http.RoundTripper.
func (l *limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	release, err := l.acquire(request.Context(), request.URL.Host)
	if err != nil {
		return nil, err
	}
	defer release()
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

// acquire waits for a slot among the calls of a host.
func (l *limitedTransport) acquire(ctx context.Context, name string) (release func(), err error) {
	l.mu.Lock()
	h := l.hosts[name]
	if h == nil {
		h = &host{calls: make(chan struct{}, maxCalls)}
		l.hosts[name] = h
	}
	if h.callers == maxCalls+maxQueued {
		l.mu.Unlock()
		return nil, errBusy
	}
	h.callers++
	l.mu.Unlock()
	remove := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.callers--; h.callers == 0 {
			delete(l.hosts, name)
		}
	}
	queue := time.NewTimer(queueTimeout)
	defer queue.Stop()
	select {
	case h.calls <- struct{}{}:
		return func() { <-h.calls; remove() }, nil
	case <-queue.C:
		err = errBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	remove()
	return nil, err
}

// get fetches a JSON object, with the headers that header sets. raw is the object as it was sent.
func (s *providerLogin) get(
	ctx context.Context, address string, header func(http.Header),
) (object map[string]any, raw json.RawMessage, err error) {
	answer, body, err := s.call(ctx, address, header)
	if err != nil {
		return nil, nil, s.callError(err)
	}
	object, err = decode(body)
	if answer.StatusCode/100 != 2 {
		return nil, nil, s.answerError(answer.StatusCode, object)
	}
	if err != nil {
		return nil, nil, s.providerError("it did not answer with a JSON object")
	}
	return object, body, nil
}

// call sends a GET request and reads the answer.
func (c *Client) call(ctx context.Context, address string, header func(http.Header)) (*http.Response, []byte, error) {
	return c.send(ctx, http.MethodGet, address, nil, header)
}

// send sends a request and reads the answer.
func (c *Client) send(
	ctx context.Context, method, address string, in []byte, header func(http.Header),
) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(in))
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

// failureText tells the developer why a call failed. It contains no URL, which may have a token in
// it.
func failureText(err error) string {
	var refused *oauth2.RetrieveError
	var network net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		text := ""
		if refused.Response != nil && refused.Response.StatusCode/100 != 2 {
			text = statusText(refused.Response.StatusCode)
		}
		said := []string{refused.ErrorCode, refused.ErrorDescription}
		if refused.ErrorCode == "" && refused.ErrorDescription == "" {
			said = []string{ownText(refused.Body)}
		}
		for _, part := range said {
			if part = printable(part); part != "" {
				text = strings.TrimPrefix(text+": "+part, ": ")
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

// ownText returns what a provider says of an error in the body of its answer, if it is a JSON
// object that says something.
func ownText(body []byte) string {
	object, _ := decode(body)
	return textOfError(object)
}

// textOfError returns what a provider says of an error: by the names of RFC 6749, of RFC 9457, and
// of GitHub, LinkedIn, Google, Facebook and Twitter.
func textOfError(object map[string]any) string {
	inner, _ := object["error"].(map[string]any)
	if list, _ := object["errors"].([]any); len(list) > 0 {
		inner, _ = list[0].(map[string]any)
	}
	said := firstText(object, "error_description", "message", "detail")
	if said == "" {
		said = firstText(inner, "message", "error_description")
	}
	if said == "" {
		said = firstText(object, "error", "title")
	}
	return printable(said)
}

// printable returns a text of a provider on one line, shortened to maxReason.
func printable(text string) string {
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
