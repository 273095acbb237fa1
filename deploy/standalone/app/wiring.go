package app

import (
	"context"
	"fmt"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	gateway "github.com/doorward/doorward/gateway/app"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/rpc"
	application "github.com/doorward/doorward/services/application/app"
	directory "github.com/doorward/doorward/services/directory/app"
	idsite "github.com/doorward/doorward/services/idsite/app"
	mfa "github.com/doorward/doorward/services/mfa/app"
	notification "github.com/doorward/doorward/services/notification/app"
	oauth "github.com/doorward/doorward/services/oauth/app"
)

// openServices wires the services to each other (dependency injection): it opens them
// from the bottom up, and the gateway last. A service that calls another is given its Go
// value; the gateway hands each service, in memory, the requests that it would send over
// the network.
func (s *standalone) openServices(ctx context.Context) error {
	p := s.process
	directories, err := directory.Open(ctx, p, env.Load[directory.Config](s.source), directory.Peers{})
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	applications, err := application.Open(ctx, p, env.Load[application.Config](s.source), application.Peers{Directory: directories.API})
	if err != nil {
		return fmt.Errorf("application: %w", err)
	}
	factors, err := mfa.Open(ctx, p, env.Load[mfa.Config](s.source), mfa.Peers{Directory: directories.API})
	if err != nil {
		return fmt.Errorf("mfa: %w", err)
	}
	tokens, err := oauth.Open(ctx, p, env.Load[oauth.Config](s.source), oauth.Peers{
		Directory: directories.API, Application: applications.API, MFA: factors.API,
	})
	if err != nil {
		return fmt.Errorf("oauth: %w", err)
	}
	notifications, err := notification.Open(ctx, p, env.Load[notification.Config](s.source), notification.Peers{
		Directory: directories.API, Application: applications.API, OAuth: tokens.API,
	})
	if err != nil {
		return fmt.Errorf("notification: %w", err)
	}
	sites, err := idsite.Open(ctx, p, env.Load[idsite.Config](s.source), idsite.Peers{
		Directory: directories.API, Application: applications.API, OAuth: tokens.API, MFA: factors.API,
	})
	if err != nil {
		return fmt.Errorf("idsite: %w", err)
	}
	upstreams := gateway.Upstreams{}
	for name, handler := range map[string]fasthttp.RequestHandler{
		"directory": directories.HTTP.Handler(), "application": applications.HTTP.Handler(), "oauth": tokens.HTTP.Handler(),
		"mfa": factors.HTTP.Handler(), "notification": notifications.HTTP.Handler(), "idsite": sites.HTTP.Handler(),
	} {
		upstreams[name] = rpc.LocalUpstream(name, handler)
	}
	if s.mailbox != nil {
		upstreams["mailbox"] = rpc.LocalUpstream("mailbox", fasthttpadaptor.NewFastHTTPHandler(s.mailbox))
	}
	gatewayConfig := gateway.FromEnv(s.source)
	gatewayConfig.Data = s.folder.join("")
	publicGateway, err := gateway.Open(ctx, p, gatewayConfig, upstreams, tokens.API, directories.API,
		applications.API.AccessChanges, directories.API.AccessChanges)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if err := s.source.Err(); err != nil {
		return err
	}
	// Clients that connected early are answered once the key works.
	select {
	case err := <-sites.API:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	publicGateway.Serve(p, s.listener)
	return nil
}
