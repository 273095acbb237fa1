package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// MailLimit bounds the wait for a mail when nothing is being killed.
const MailLimit = 30 * time.Second

// Message is one mail or text message in the deployment's mailbox.
type Message struct {
	Kind       string   `json:"kind"`
	From       string   `json:"from"`
	To         []string `json:"to"`
	Subject    string   `json:"subject"`
	Text       string   `json:"text"`
	HTML       string   `json:"html"`
	Raw        string   `json:"raw"`
	ReceivedAt string   `json:"receivedAt"`
}

// SentTo reports whether the address is among the recipients, ignoring case and
// a display name around it.
func (m Message) SentTo(address string) bool {
	return slices.ContainsFunc(m.To, func(to string) bool { return strings.EqualFold(withoutDisplayName(to), address) })
}

var sptoken = regexp.MustCompile(`[?&#]sptoken=([A-Za-z0-9._%-]+)`)

// Sptoken returns the token in the link of the mail. It looks at the text body
// first, then at the HTML body.
func (m Message) Sptoken() (string, error) {
	for _, body := range []string{m.Text, m.HTML} {
		if found := sptoken.FindStringSubmatch(body); found != nil {
			return url.QueryUnescape(found[1])
		}
	}
	return "", fmt.Errorf("the mail %q to %v holds no link with an sptoken:\n%s", m.Subject, m.To, m.Text)
}

// Mailbox reads messages, newest first. The query filters them (deploy/mailbox/README.md);
// nil means all. Only deployments whose mail goes to the mailbox
// page have one.
func (c *Client) Mailbox(ctx context.Context, query url.Values) ([]Message, error) {
	answer, err := c.Do(ctx, Request{
		Method: http.MethodGet,
		URL:    c.Key.HostURL() + "/_mailbox?" + query.Encode(),
		Header: http.Header{"Accept": {"application/json"}},

		Anonymous: true,
	})
	if err != nil {
		return nil, err
	}
	if answer.Status == http.StatusNotFound {
		return nil, Final(fmt.Errorf("this deployment has no mailbox page: %s", answer))
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("read the mailbox: %s", answer)
	}
	var box struct {
		Messages *[]Message `json:"messages"`
	}
	if err := json.Unmarshal(answer.Body, &box); err != nil {
		return nil, fmt.Errorf("read the mailbox: %w", err)
	}
	if box.Messages == nil {
		return nil, fmt.Errorf("read the mailbox: no messages in %s", answer)
	}
	return *box.Messages, nil
}

// AwaitMail waits until a message to this address is in the mailbox and
// returns the newest one.
func (c *Client) AwaitMail(t testing.TB, address string) Message {
	t.Helper()
	return c.AwaitMailWith(t, address, "")
}

// AwaitMailWith is AwaitMail for a message whose subject or text holds the words.
func (c *Client) AwaitMailWith(t testing.TB, address, words string) Message {
	t.Helper()
	var found Message
	err := AwaitFor(t.Context(), MailLimit, "a mail to "+address, func(ctx context.Context) error {
		messages, err := c.Mailbox(ctx, url.Values{"to": {address}})
		if err != nil {
			return err
		}
		for _, message := range messages {
			if message.SentTo(address) && strings.Contains(message.Subject+"\n"+message.Text, words) {
				found = message
				return nil
			}
		}
		return fmt.Errorf("%d messages in the mailbox, none to that address with %q", len(messages), words)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// MailCount waits until every one of the addresses has got at least one
// message and returns how many each has got, by the address as it was given.
func (c *Client) MailCount(ctx context.Context, limit time.Duration, addresses []string) (map[string]int, error) {
	var count map[string]int
	what := fmt.Sprintf("a mail to each of %d addresses", len(addresses))
	err := AwaitFor(ctx, limit, what, func(ctx context.Context) error {
		messages, err := c.Mailbox(ctx, url.Values{"summary": {"true"}})
		if err != nil {
			return err
		}
		got := map[string]int{}
		for _, message := range messages {
			for _, to := range message.To {
				got[strings.ToLower(withoutDisplayName(to))]++
			}
		}
		count = make(map[string]int, len(addresses))
		var missing []string
		for _, address := range addresses {
			count[address] = got[strings.ToLower(address)]
			if count[address] == 0 {
				missing = append(missing, address)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("%d of %d have no mail, the first is %s", len(missing), len(addresses), missing[0])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return count, nil
}

// withoutDisplayName returns the address alone, such as that of "Jo <jo@example.test>".
func withoutDisplayName(address string) string {
	if open := strings.LastIndex(address, "<"); open >= 0 {
		return strings.TrimSuffix(address[open+1:], ">")
	}
	return address
}
