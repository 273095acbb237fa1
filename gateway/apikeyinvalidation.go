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
	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// keyChannel is the Redis channel where the gateways of a deployment publish invalidations:
	// changes that can revoke an API key, disable it, enable it or make it valid.
	keyChannel = "doorward:gateway:keys"
	// maxUnpublished bounds the invalidations that wait to be published in Redis.
	maxUnpublished = 1 << 10
	// staleRead is how long after a change a service may still answer from a cache filled
	// before the change.
	staleRead = 50 * time.Millisecond
	// changedHeaderDuration is how long after a change the requests of its tenant have the
	// header caller.ChangedHeader: longer than the TTL of the caches of a service.
	changedHeaderDuration = 100 * time.Millisecond
)

// invalidation names the cached answers that a change invalidates. One of its fields is set.
type invalidation struct {
	key             string // the API key that was changed or deleted
	accountOrTenant id.ID  // the account or the tenant, all of whose API keys may be revoked or enabled
	accessTenant    id.ID  // the tenant, any of whose accounts may have lost its access or its tokens
	mayEnable       bool   // revokes no API key, but may make a rejected key valid
}

// mayEnableKeys invalidates all rejections: any rejected API key may be valid now.
var mayEnableKeys = invalidation{mayEnable: true}

// invalidationsByRoute has the routes by which an API key can be revoked (disabled, deleted) or
// enabled, or can become the key of an administrator, with the function that returns what a
// request other than a GET invalidates. An API key is valid while the key, its account and the
// account store are enabled and the account store is mapped to the built-in application
// (docs/interface/authentication.md#what-a-key-may-do). Keys are created, disabled and deleted by
// services/oauth/apikey.go.
//
// The same routes, the route that resets a password and the routes that revoke tokens may end
// the access of accounts or revoke their tokens.
var invalidationsByRoute = map[string]func(rc *requestContext, name string) invalidation{
	"/v1/applications/:id/passwordResetTokens/:token": invalidateAccessOnly,
	"/v1/applications/:id/oauth/revoke":               invalidateAccessOnly,
	"/v1/accessTokens/:id":                            invalidateAccessOnly,
	"/v1/refreshTokens/:id":                           invalidateAccessOnly,

	"/v1/apiKeys/:id":                          invalidateKey,
	"/v1/agents/:id/keys/:key":                 invalidateKey,
	"/v1/accounts/:id":                         invalidateAccount,
	"/v1/directories/:id":                      invalidateTenant,
	"/v1/groups/:id":                           invalidateTenant,
	"/v1/groupMemberships/:id":                 invalidateTenant,
	"/v1/organizations/:id":                    invalidateTenant,
	"/v1/applications/:id":                     invalidateTenant,
	"/v1/accountStoreMappings/:id":             invalidateTenant,
	"/v1/organizationAccountStoreMappings/:id": invalidateTenant,

	"/v1/accounts/emailVerificationTokens/:token": invalidateRejectedKeys,
	"/v1/groupMemberships":                        invalidateRejectedKeys,
	"/v1/accountStoreMappings":                    invalidateRejectedKeys,
	"/v1/organizationAccountStoreMappings":        invalidateRejectedKeys,
}

// invalidateAccessOnly is for routes that change no API key.
func invalidateAccessOnly(*requestContext, string) invalidation { return invalidation{} }

// invalidateRejectedKeys is for routes that only add access. The accepted API keys stay cached,
// so that a client that adds many memberships is not authenticated again for each.
func invalidateRejectedKeys(*requestContext, string) invalidation { return mayEnableKeys }

func invalidateKey(_ *requestContext, name string) invalidation { return invalidation{key: name} }

func invalidateAccount(_ *requestContext, name string) invalidation {
	account, err := id.Parse(name)
	if err != nil {
		return invalidation{}
	}
	return invalidation{accountOrTenant: account}
}

func invalidateTenant(rc *requestContext, _ string) invalidation {
	return invalidation{accountOrTenant: rc.caller.Tenant}
}

// invalidateAPIKeys invalidates the cached answers about API keys that a forwarded request may
// have revoked, disabled or enabled, in this gateway and, through Redis, in the other gateways.
// Requests of the tenant have the header caller.ChangedHeader for changedHeaderDuration after a
// request that may have revoked access. The request does not wait for Redis.
func (g *Gateway) invalidateAPIKeys(rc *requestContext) {
	invalidationOf := invalidationsByRoute[rc.route.pattern]
	if invalidationOf == nil || rc.method == fiber.MethodGet {
		return
	}
	path := rc.target[:rc.pathLength]
	name, err := url.PathUnescape(string(path[bytes.LastIndexByte(path, '/')+1:]))
	if err != nil {
		return // no resource has such a name
	}
	invalidations := []invalidation{invalidationOf(rc, name)}
	if invalidations[0] != mayEnableKeys {
		if revokesNothing(rc) {
			return
		}
		invalidations = append(invalidations, invalidation{accessTenant: rc.caller.Tenant})
	}
	for _, i := range invalidations {
		if i == (invalidation{}) {
			continue
		}
		g.apiKeys.invalidate(i)
		select {
		case g.apiKeys.unpublished <- i:
		default: // the channel is full: the entries of the other gateways expire after keyTTL
		}
	}
}

// revokesNothing reports whether a request sets only members of a resource that do not revoke
// access: neither status nor password. It is false for a body with a backslash, in which those
// names may be written with escapes.
func revokesNothing(rc *requestContext) bool {
	body := rc.Request().Body()
	return rc.method == fiber.MethodPost && bytes.HasPrefix(rc.Request().Header.ContentType(), []byte(fiber.MIMEApplicationJSON)) &&
		len(body) > 0 && !bytes.Contains(body, []byte(`"status"`)) && !bytes.Contains(body, []byte(`"password"`)) &&
		bytes.IndexByte(body, '\\') < 0
}

// accessRevokedRecently reports whether access in a tenant may have been revoked so recently
// that a service may still answer from its cache.
func (k *apiKeyCache) accessRevokedRecently(tenant id.ID) bool {
	last, ok := k.invalidatedAt.Peek(invalidation{accessTenant: tenant})
	return ok && time.Since(last) < changedHeaderDuration
}

// invalidate makes the answers that the OAuth service gave before a change out of date.
func (k *apiKeyCache) invalidate(i invalidation) {
	now := time.Now()
	k.invalidatedAt.Add(i, now)
	if i.accessTenant.IsZero() { // a change that may revoke a key may also enable it
		k.invalidatedAt.Add(mayEnableKeys, now)
	}
	k.generation.Add(1)
}

// isCurrent reports whether an answer that was asked for at a time is newer than the last change
// of each kind.
func (k *apiKeyCache) isCurrent(asked time.Time, changes ...invalidation) bool {
	for _, i := range changes {
		if last, ok := k.invalidatedAt.Peek(i); ok && asked.Before(last.Add(staleRead)) {
			return false
		}
	}
	return true
}

// sync publishes the invalidations of this gateway in Redis and applies those of the other
// gateways, until ctx ends. While Redis is unavailable, an API key that was revoked through
// another gateway is accepted until its cache entry expires (keyTTL).
func (k *apiKeyCache) sync(ctx context.Context, redis redisclient.Client) error {
	subscription := redis.Subscribe(ctx, keyChannel)
	defer func() { _ = subscription.Close() }()
	messages, quiet, failed := subscription.Channel(), telemetry.Untraced(ctx), false
	for {
		select {
		case <-ctx.Done():
			return nil
		case i := <-k.unpublished:
			err := redis.Publish(quiet, keyChannel, i.String()).Err()
			if err != nil && !failed {
				slog.Warn("publishing the change of an API key failed: other gateways accept it until their cache expires", "error", err)
			}
			failed = err != nil
		case message, open := <-messages:
			if !open {
				return nil
			}
			if i, ok := parseInvalidation(message.Payload); ok {
				k.invalidate(i)
			}
		}
	}
}

// String returns the text of an invalidation for keyChannel. Gateways of the release before read
// the same texts.
func (i invalidation) String() string {
	if i.key != "" {
		return "key " + i.key
	}
	if !i.accessTenant.IsZero() {
		return "access " + i.accessTenant.String()
	}
	if i.mayEnable {
		return "grant" // the name of mayEnableKeys in Redis, which gateways of the release before read
	}
	return "id " + i.accountOrTenant.String()
}

// parseInvalidation parses a text of keyChannel.
func parseInvalidation(text string) (i invalidation, ok bool) {
	kind, name, _ := strings.Cut(text, " ")
	switch kind {
	case "key":
		return invalidation{key: name}, name != ""
	case "grant":
		return mayEnableKeys, name == ""
	}
	of, err := id.Parse(name)
	if kind == "access" {
		i.accessTenant = of
	} else {
		i.accountOrTenant = of
	}
	return i, (kind == "id" || kind == "access") && err == nil && !of.IsZero()
}
