// Package operator is the interface of the operators of a deployment, /operator/v1, on a listener of its own
// (docs/operations.md#interface-of-operators). Its keys are those of the environment (key.go), the rules are those of the
// services.
package operator

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
)

// requestTimeout bounds the work on one request.
const requestTimeout = 18 * time.Second

// Config describes the interface.
type Config struct {
	Keys         []Key
	Now          func() time.Time
	Base         href.Base // of the deployment, which the errors name
	ClientSuffix string    // the domain of the Client APIs

	Directory   directoryapi.Contract
	Application applicationapi.Contract
	OAuth       oauthapi.Contract
	IDSite      idsiteapi.API
	Usage       []usageapi.API // of the services that count
	Sizes       []sizeapi.API  // of all services
}

// New makes the HTTP application of the interface.
func New(cfg Config) *fiber.App {
	h := handlers{cfg}
	app := rest.NewFiber(h.handleError)
	app.Use(identify, rest.ObserveEdge("operator", false))
	v1 := app.Group("/operator/v1", h.authenticate)
	v1.Get("/lookup", allow(lookup), h.lookup)
	v1.Get("/events", allow(lookup), h.events)
	v1.Get("/tenants", allow(read), h.tenants)
	v1.Post("/tenants", allow(admin), h.createTenant)
	v1.Get("/tenants/:id", allow(read), h.tenant)
	v1.Delete("/tenants/:id", allow(admin), h.deleteTenant)
	v1.Get("/tenants/:id/usage", allow(read), h.usageOfTenant)
	v1.Get("/usage", allow(read), h.usage)
	v1.Post("/tenants/:id/suspend", allow(admin), h.change(cfg.Directory.SuspendTenant))
	v1.Post("/tenants/:id/resume", allow(admin), h.change(cfg.Directory.ResumeTenant))
	return app
}

type handlers struct{ Config }

// identify makes the id of a request, which is in its logs and errors.
func identify(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), requestTimeout)
	defer cancel()
	c.SetUserContext(caller.Into(ctx, caller.Caller{RequestID: uuid.NewString()}))
	return c.Next()
}

func (h handlers) handleError(c *fiber.Ctx, err error) error {
	if errors.Is(err, apierr.Unauthorized) {
		c.Set(fiber.HeaderWWWAuthenticate, `Basic realm="operator"`)
	}
	return rest.Fail(c, h.Base, err)
}

type keyOfRequest struct{}

// authenticate is the middleware that finds the key of a request.
func (h handlers) authenticate(c *fiber.Ctx) error {
	scheme, encoded, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil || !strings.EqualFold(scheme, "Basic") {
		return apierr.Unauthorized.Because("send the name and the secret of an operator's key in the header Authorization, as Basic")
	}
	name, secret, _ := strings.Cut(string(plain), ":")
	found, ok := find(h.Keys, name, secret)
	if !ok {
		return apierr.Unauthorized.Because("no operator's key has this name and this secret")
	}
	c.Locals(keyOfRequest{}, found)
	return c.Next()
}

func keyOf(c *fiber.Ctx) Key { return c.Locals(keyOfRequest{}).(Key) }

// allow is the middleware that refuses the keys of a lesser role.
func allow(least role) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if keyOf(c).role < least {
			return apierr.Forbidden.Because("the role of the operator's key does not allow this request")
		}
		return c.Next()
	}
}

// found is the answer of a look-up.
type found struct {
	Tenant id.ID  `json:"tenant"`
	Key    string `json:"key"`
	Status string `json:"status"`
}

// lookup answers with the tenant of an API key, a host or a resource.
func (h handlers) lookup(c *fiber.Ctx) error {
	key, host, resource := c.Query("key"), c.Query("host"), c.Query("id")
	given := 0
	for _, value := range []string{key, host, resource} {
		if value != "" {
			given++
		}
	}
	if given != 1 {
		return apierr.ParameterInvalid.Because("send one of the parameters key, host and id")
	}
	var tenant directoryapi.Tenant
	var err error
	switch {
	case key != "":
		tenant, err = h.tenantOfKey(c.UserContext(), key)
	case host != "":
		tenant, err = h.tenantOfHost(c.UserContext(), host)
	default:
		tenant, err = h.tenantOfResource(c.UserContext(), resource)
	}
	if err != nil {
		return err
	}
	return rest.OK(c, found{tenant.ID, tenant.Key, tenant.Status})
}

// tenantOfKey returns the tenant of an API key by its id. The id of an agent's key names its tenant.
func (h handlers) tenantOfKey(ctx context.Context, key string) (directoryapi.Tenant, error) {
	if agent, ok := directoryapi.AgentOfKey(key); ok {
		return h.tenantByID(ctx, agent.Tenant)
	}
	found, err := h.OAuth.FindKey(ctx, oauthapi.ManagementKey{ID: key})
	if err != nil {
		return directoryapi.Tenant{}, err
	}
	return h.tenantByID(ctx, found.TenantID)
}

// tenantOfHost returns the tenant whose Client API or hosted pages have a host.
func (h handlers) tenantOfHost(ctx context.Context, host string) (directoryapi.Tenant, error) {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	label, parent, dotted := strings.Cut(host, ".")
	if parent == h.ClientSuffix || !dotted { // a label alone is that of a Client API at /client/{label}
		application, err := h.Application.ApplicationByDNSLabel(ctx, applicationapi.DNSLabel{Label: label})
		if err != nil {
			return directoryapi.Tenant{}, err
		}
		return h.tenantByID(ctx, application.TenantID)
	}
	tenant, err := h.IDSite.DomainTenant(ctx, idsiteapi.Domain{Name: host})
	if err != nil {
		return directoryapi.Tenant{}, err
	}
	return h.tenantByID(ctx, tenant.ID)
}

// tenantOfResource returns the tenant of an application, a directory, a group, an account or an agent, or the tenant
// that has the id itself.
func (h handlers) tenantOfResource(ctx context.Context, text string) (directoryapi.Tenant, error) {
	resource, err := id.Parse(text)
	if err != nil {
		return h.tenantOfMailedLink(ctx, text)
	}
	application, err := h.Application.FindApplication(ctx, applicationapi.FindApplication{ID: resource})
	if err == nil {
		return h.tenantByID(ctx, application.TenantID)
	}
	if !errors.Is(err, apierr.NotFound) {
		return directoryapi.Tenant{}, err
	}
	tenant, err := h.Directory.TenantOfResource(ctx, directoryapi.ResourceID{ID: resource})
	if errors.Is(err, apierr.NotFound) {
		return h.tenantOfMailedLink(ctx, text) // some tokens have the form of an id
	}
	return tenant, err
}

func (h handlers) tenantByID(ctx context.Context, tenant id.ID) (directoryapi.Tenant, error) {
	return h.Directory.FindTenant(ctx, directoryapi.TenantName{Name: tenant.String()})
}

// event is the representation of an event of the record.
type event struct {
	ID       id.ID     `json:"id"`
	At       rest.Time `json:"at"`
	Command  string    `json:"command"`
	Operator string    `json:"operator"`
	Reason   *string   `json:"reason"`
	Tenant   *id.ID    `json:"tenant"`
	Outcome  string    `json:"outcome"`
}

// events answers with the record of operators.
func (h handlers) events(c *fiber.Ctx) error {
	in := directoryapi.ListOperatorEvents{Tenant: c.Query("tenant")}
	if after := c.Query("after"); after != "" {
		var err error
		if in.After, err = id.Parse(after); err != nil {
			return apierr.ParameterInvalid.Because("after is no id of an event: %q", after)
		}
	}
	in.Query = queryWithout(c, "tenant", "after")
	page, err := h.Directory.OperatorEvents(c.UserContext(), in)
	if err != nil {
		return err
	}
	return answerPage(c, page, func(e directoryapi.OperatorEvent) any {
		return event{e.ID, rest.Time(e.At), e.Command, e.Operator, e.Reason, e.Tenant, e.Outcome}
	})
}

// queryWithout returns the query of a request without some of its parameters.
func queryWithout(c *fiber.Ctx, names ...string) string {
	args := c.Context().QueryArgs()
	for _, name := range names {
		args.Del(name)
	}
	return args.String()
}

// collection is the representation of a page. The collections of operators have no times of a parent.
type collection struct {
	Href   string `json:"href"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
	Size   int    `json:"size"`
	Items  []any  `json:"items"`
}

func answerPage[T any](c *fiber.Ctx, page list.Page[T], view func(T) any) error {
	out := collection{address(c), page.Offset, page.Limit, page.Size, make([]any, len(page.Items))}
	for i, item := range page.Items {
		out.Items[i] = view(item)
	}
	return rest.OK(c, out)
}

// address is the URL of the request at the listener of operators, without its query.
func address(c *fiber.Ctx) string { return origin(c) + string(c.Request().URI().PathOriginal()) }

// origin is the origin of the listener of operators, as the client names it.
func origin(c *fiber.Ctx) string {
	scheme := "http://"
	if c.Context().IsTLS() {
		scheme = "https://"
	}
	return scheme + string(c.Request().Host())
}
