package oauthtest

import (
	"context"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// Change changes an application otherwise than its status and its directories.
func (w *World) Change(tenant, resource id.ID, change func(*applicationapi.Application)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := directoryapi.Ref{Tenant: tenant, ID: resource}
	a := w.applications[ref]
	change(&a.Application)
	w.applications[ref] = a
}

// WebConfigOf gives the id of the web config of an application.
func (w *World) WebConfigOf(tenant, resource id.ID) id.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applications[directoryapi.Ref{Tenant: tenant, ID: resource}].WebConfigID
}

// ApplicationOfWebConfig gives the application of a web config.
func (a applications) ApplicationOfWebConfig(_ context.Context, in directoryapi.Ref) (applicationapi.Application, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ref, found := range a.World.applications {
		if ref.Tenant == in.Tenant && found.WebConfigID == in.ID {
			return found.Application, a.failure
		}
	}
	return applicationapi.Application{}, apierr.NotFound
}

// SetDNSLabel names an application anew. A label with a blank stands for all
// that have not the form of one.
func (a applications) SetDNSLabel(_ context.Context, in applicationapi.SetDNSLabel) (applicationapi.Application, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}
	app, err := a.find(at)
	label := strings.ToLower(in.Label)
	switch {
	case err != nil:
		return app.Application, err
	case app.Builtin:
		return app.Application, apierr.BadRequest
	case label == "":
		return app.Application, apierr.Required
	case strings.Contains(label, " "):
		return app.Application, apierr.Format
	}
	for ref, other := range a.World.applications {
		if other.DNSLabel == label && ref != at {
			return app.Application, apierr.Exists
		}
	}
	app.DNSLabel = label
	a.World.applications[at] = app
	return app.Application, nil
}
