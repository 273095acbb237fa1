package cells

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	cellTimeout = 2 * time.Second // of one request to a cell
	maxAnswer   = 1 << 20         // bytes of its answer
	eventsPage  = 100             // events of one answer
	// lostAfter is how many polls in a row fail until a cell counts as lost.
	lostAfter = 2
)

// cell is one deployment, at its interface for operators.
type cell struct {
	CellConfig
	client   *http.Client
	failures atomic.Int32 // polls that have failed since one succeeded

	after string // id of the newest event that is known; the poll alone uses it
}

func newCell(config CellConfig) *cell {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.MaxIdleConnsPerHost = maxLookups
	transport.TLSClientConfig = &tls.Config{RootCAs: config.roots, MinVersion: tls.VersionTLS12}
	return &cell{CellConfig: config, client: &http.Client{
		Transport: transport, Timeout: cellTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// lost reports whether the cell does not answer.
func (c *cell) lost() bool { return c.failures.Load() >= lostAfter }

// tenant is the answer of a look-up.
type tenant struct {
	ID     string `json:"tenant"`
	Key    string `json:"key"`
	Status string `json:"status"`
}

// get reads a resource of /operator/v1. found is false where the cell answers 404, or 400 to a name that it cannot
// read.
func (c *cell) get(ctx context.Context, path string, query url.Values, into any) (found bool, err error) {
	address := c.Operator + "/operator/v1/" + path + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	request.SetBasicAuth(c.keyName, c.keySecret)
	answer, err := c.client.Do(request)
	if err != nil {
		return false, fmt.Errorf("%s does not answer: %w", path, withoutURL(err))
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return false, fmt.Errorf("%s does not answer: %w", path, err)
	case answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusBadRequest:
		return false, nil
	case answer.StatusCode != http.StatusOK:
		return false, fmt.Errorf("%s answers %d", path, answer.StatusCode)
	}
	return true, json.Unmarshal(body, into)
}

// withoutURL returns the cause of an error of a client. The URL may have the token of a mailed link.
func withoutURL(err error) error {
	if failed, ok := err.(*url.Error); ok { //nolint:errorlint // the client returns exactly this type
		return failed.Err
	}
	return err
}

// lookUp returns the tenant that a cell has of a name.
func (c *cell) lookUp(ctx context.Context, n name) (t tenant, found bool, err error) {
	found, err = c.get(ctx, "lookup", url.Values{string(n.kind): {n.value}}, &t)
	return t, found, err
}

// event is a command of an operator; tenant is null in one that is about none.
type event struct {
	ID     string  `json:"id"`
	Tenant *string `json:"tenant"`
}

// noEvent is the id of no event: all events are after it.
const noEvent = "0000000000000000000001"

// events returns what operators have done since the call before, the oldest first. The first call returns nothing.
func (c *cell) events(ctx context.Context) ([]event, error) {
	if c.after == "" {
		newest, err := c.page(ctx, url.Values{"limit": {"1"}})
		if err != nil {
			return nil, err
		}
		c.after = noEvent
		if len(newest) > 0 {
			c.after = newest[0].ID
		}
		return nil, nil
	}
	var all []event
	for {
		next, err := c.page(ctx, url.Values{"after": {c.after}, "limit": {fmt.Sprint(eventsPage)}})
		if err != nil {
			return all, err
		}
		all = append(all, next...)
		if len(next) == 0 || next[len(next)-1].ID == "" {
			return all, nil
		}
		c.after = next[len(next)-1].ID
		if len(next) < eventsPage {
			return all, nil
		}
	}
}

// page returns one page of events.
func (c *cell) page(ctx context.Context, query url.Values) ([]event, error) {
	var events struct {
		Items []event `json:"items"`
	}
	found, err := c.get(ctx, "events", query, &events)
	if err == nil && !found {
		err = errors.New("events is not there")
	}
	return events.Items, err
}

// poll reads the events since the last poll, and counts polls that fail.
func (c *cell) poll(ctx context.Context) []event {
	events, err := c.events(ctx)
	switch {
	case ctx.Err() != nil: // this process ends
	case err != nil:
		if c.failures.Add(1) == lostAfter {
			slog.ErrorContext(ctx, "a cell is lost: its tenants get 503", "cell", c.Name, "error", err)
		}
	case c.failures.Swap(0) >= lostAfter:
		slog.WarnContext(ctx, "a cell answers again", "cell", c.Name)
	}
	return events
}
