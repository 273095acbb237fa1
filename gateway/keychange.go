package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/kv"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// keyChannel is where the gateways of a deployment publish changes that can
	// end an API key, or make one good.
	keyChannel = "doorward:gateway:keys"
	// maxOutgoing bounds the changes that wait for Redis.
	maxOutgoing = 1 << 10
	// staleRead is how long after a change a service may still answer with a
	// copy from before it.
	staleRead = 50 * time.Millisecond
	// changeSeen is how long after a change the requests of its tenant are marked
	// (caller.ChangedHeader): longer than a service keeps what it has asked another.
	changeSeen = 100 * time.Millisecond
)

// change names what has changed: one API key, or all keys of an account or of a
// tenant, or the access of any account of a tenant.
type change struct {
	key    string
	id     id.ID
	access id.ID // a tenant
	grant  bool  // ends no key, but may make one good
}

// grant stands for all changes after which a key may be good that was not.
var grant = change{grant: true}

// keyChanges says for the routes behind which an API key can end, or become that of an
// administrator, what a request that is no GET may have changed. A key works while the
// key, its account and the account's store are enabled and the built-in application
// reaches the account (docs/interface/authentication.md#what-a-key-may-do).
//
// The same routes, the one that sets a forgotten password and those that end tokens may
// end the access of accounts or their tokens.
var keyChanges = map[string]func(x *exchange, name string) change{
	"/v1/applications/:id/passwordResetTokens/:token": noKeyChange,
	"/v1/applications/:id/oauth/revoke":               noKeyChange,
	"/v1/accessTokens/:id":                            noKeyChange,
	"/v1/refreshTokens/:id":                           noKeyChange,

	"/v1/apiKeys/:id":                          keyChange,
	"/v1/agents/:id/keys/:key":                 keyChange,
	"/v1/accounts/:id":                         accountChange,
	"/v1/directories/:id":                      tenantChange,
	"/v1/groups/:id":                           tenantChange,
	"/v1/groupMemberships/:id":                 tenantChange,
	"/v1/organizations/:id":                    tenantChange,
	"/v1/applications/:id":                     tenantChange,
	"/v1/accountStoreMappings/:id":             tenantChange,
	"/v1/organizationAccountStoreMappings/:id": tenantChange,

	"/v1/accounts/emailVerificationTokens/:token": keyGrant,
	"/v1/groupMemberships":                        keyGrant,
	"/v1/accountStoreMappings":                    keyGrant,
	"/v1/organizationAccountStoreMappings":        keyGrant,
}

func noKeyChange(*exchange, string) change { return change{} }

// keyGrant is for what only adds access: the keys that are good stay cached, so that a
// client that adds many memberships is not authenticated again for each.
func keyGrant(*exchange, string) change { return grant }

func keyChange(_ *exchange, name string) change { return change{key: name} }

func accountChange(_ *exchange, name string) change {
	account, err := id.Parse(name)
	if err != nil {
		return change{}
	}
	return change{id: account}
}

func tenantChange(x *exchange, _ string) change { return change{id: x.caller.Tenant} }

// noteChange invalidates what is cached of the keys that a forwarded request may have
// ended or made good, and marks the requests of its tenant after it may have ended one,
// here and, through Redis, in the other gateways. The request does not wait for that.
func (g *Gateway) noteChange(x *exchange) {
	of := keyChanges[x.route.pattern]
	if of == nil || x.method == fiber.MethodGet {
		return
	}
	path := x.target[:x.path]
	name, err := url.PathUnescape(string(path[bytes.LastIndexByte(path, '/')+1:]))
	if err != nil {
		return // no resource has it
	}
	changed := []change{of(x, name)}
	if changed[0] != grant {
		if endsNothing(x) {
			return
		}
		changed = append(changed, change{access: x.caller.Tenant})
	}
	for _, c := range changed {
		if c == (change{}) {
			continue
		}
		g.keys.apply(c)
		select {
		case g.keys.outgoing <- c:
		default: // the others' entries expire
		}
	}
}

// endsNothing reports whether a request sets only such members of a resource as end no
// access: not its status, nor a password. A name may be spelled with escapes, so that a
// body with any is taken for one that does.
func endsNothing(x *exchange) bool {
	body := x.Request().Body()
	return x.method == fiber.MethodPost && bytes.HasPrefix(x.Request().Header.ContentType(), []byte(fiber.MIMEApplicationJSON)) &&
		len(body) > 0 && !bytes.Contains(body, []byte(`"status"`)) && !bytes.Contains(body, []byte(`"password"`)) &&
		bytes.IndexByte(body, '\\') < 0
}

// changedRecently reports whether access in a tenant may have ended so recently that
// a service may hold an answer of before.
func (k *keys) changedRecently(tenant id.ID) bool {
	last, ok := k.changed.Peek(change{access: tenant})
	return ok && time.Since(last) < changeSeen
}

// apply makes what was asked before a change out of date.
func (k *keys) apply(c change) {
	now := time.Now()
	k.changed.Add(c, now)
	if c.access.IsZero() { // each that ends keys may also be the opposite one
		k.changed.Add(grant, now)
	}
	k.generation.Add(1)
}

// current reports whether what was asked at a time is from after the last of
// the changes.
func (k *keys) current(asked time.Time, changes ...change) bool {
	for _, c := range changes {
		if last, ok := k.changed.Peek(c); ok && asked.Before(last.Add(staleRead)) {
			return false
		}
	}
	return true
}

// sync publishes the changes that pass through this gateway and applies those of
// the others, until ctx ends. While Redis is unavailable a key that ended elsewhere
// works until its entry expires.
func (k *keys) sync(ctx context.Context, redis kv.Client) error {
	subscription := redis.Subscribe(ctx, keyChannel)
	defer func() { _ = subscription.Close() }()
	messages, quiet, failed := subscription.Channel(), telemetry.Quiet(ctx), false
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-k.outgoing:
			err := redis.Publish(quiet, keyChannel, c.String()).Err()
			if err != nil && !failed {
				slog.Warn("publishing the change of an API key failed: other gateways accept it until their cache expires", "error", err)
			}
			failed = err != nil
		case message, open := <-messages:
			if !open {
				return nil
			}
			if c, ok := parseChange(message.Payload); ok {
				k.apply(c)
			}
		}
	}
}

// String writes a change for the channel; parseChange reads it.
func (c change) String() string {
	if c.key != "" {
		return "key " + c.key
	}
	if !c.access.IsZero() {
		return "access " + c.access.String()
	}
	if c.grant {
		return "grant"
	}
	return "id " + c.id.String()
}

func parseChange(text string) (c change, ok bool) {
	kind, name, _ := strings.Cut(text, " ")
	switch kind {
	case "key":
		return change{key: name}, name != ""
	case "grant":
		return grant, name == ""
	}
	of, err := id.Parse(name)
	if kind == "access" {
		c.access = of
	} else {
		c.id = of
	}
	return c, (kind == "id" || kind == "access") && err == nil && !of.IsZero()
}
