// Package applicationfake is a fake of the application service in memory, for the tests of services
// that call it. A test can make its calls fail (fault.Injector). Failed logins are limited only
// for requests with a client address. It calls a directory service, as the real service does,
// and passes the contract's suite.
package applicationfake

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
)

// Suffix is the domain of the applications' own origins.
const Suffix = "apps.localhost"

// Service keeps applications and organizations in memory.
type Service struct {
	fault.Injector
	applicationapi.SAML // nil: the fake has no SAML

	directories directoryapi.API
	base        href.Base
	now         func() time.Time

	Changes *changefeed.Log // of applications and organizations

	mu            sync.Mutex
	applications  map[directoryapi.Ref]*application
	organizations map[directoryapi.Ref]*organization
	failures      map[attempt]int // logins that failed
	signUps       []applicationapi.SignUp
}

type application struct {
	applicationapi.Application
	stores       []directoryapi.Store // in the order of login
	defaultStore directoryapi.Store
	followsLinks bool
	social       map[string]id.ID // directories by their providers
	data         customdata.Document
}

type organization struct {
	nameKey string
	status  string
	stores  []directoryapi.Store
}

var _ applicationapi.Contract = (*Service)(nil)

// New returns a fake without applications, which calls a directory service. The hrefs of account
// stores begin with base.
func New(directories directoryapi.API, base href.Base, now func() time.Time) *Service {
	return &Service{
		directories: directories, base: base, now: now, Changes: changefeed.NewLog(),
		applications: map[directoryapi.Ref]*application{}, organizations: map[directoryapi.Ref]*organization{}, failures: map[attempt]int{},
	}
}

// call runs a method under the lock, unless a test makes it fail.
func call[T any](s *Service, method string, do func() (T, error)) (T, error) {
	return fault.Call(&s.Injector, &s.mu, method, do)
}

// find returns an application, or apierr.NotFound.
func (s *Service) find(at directoryapi.Ref) (*application, error) {
	a, ok := s.applications[at]
	if !ok {
		return nil, apierr.NotFound
	}
	return a, nil
}

// insert adds an enabled application without account stores.
func (s *Service) insert(at directoryapi.Ref, name string, builtin bool) *application {
	now := s.now()
	a := &application{Application: applicationapi.Application{
		TenantID: at.Tenant, ID: at.ID, Name: name, Status: directoryapi.Enabled, Builtin: builtin,
		AuthorizedCallbackURIs: []string{}, AuthorizedOriginURIs: []string{},
		SAMLPolicyID: id.New(now), WebConfigID: id.New(now), AccountLinkingPolicyID: id.New(now), CreatedAt: now, ModifiedAt: now,
	}}
	if !builtin {
		a.DNSLabel = strings.ToLower(at.ID.String())
		a.AuthorizedOriginURIs = []string{"https://" + a.DomainName(Suffix)}
	}
	s.applications[at] = a
	return a
}

// SignUp creates the first applications of a tenant.
func (s *Service) SignUp(ctx context.Context, in applicationapi.SignUp) (applicationapi.SignedUp, error) {
	return call(s, "SignUp", func() (out applicationapi.SignedUp, err error) {
		console, first := directoryapi.Ref{Tenant: in.Tenant, ID: in.Console}, directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}
		if _, done := s.applications[console]; !done {
			const name = "My Application"
			create := directoryapi.CreateDirectory{Tenant: in.Tenant, ID: in.Directory, Name: name + " Directory"}
			if _, err := s.directories.CreateDirectory(ctx, create); err != nil {
				return out, err
			}
			s.insert(console, in.ConsoleName, true).mapFirstDirectory(in.ConsoleMapping, in.Administrators)
			s.insert(first, name, false).mapFirstDirectory(in.ApplicationMapping, in.Directory)
			s.signUps = append(s.signUps, in)
		}
		out.Console = s.applications[console].Application
		if a, ok := s.applications[first]; ok {
			out.Application = a.Application
		}
		return out, nil
	})
}

// mapFirstDirectory maps the first directory of an application, as its default account store.
func (a *application) mapFirstDirectory(mapping, directory id.ID) {
	a.DefaultAccountStore, a.DefaultGroupStore = mapping, mapping
	a.defaultStore = directoryapi.Store{Kind: directoryapi.Directories, ID: directory}
	a.stores = []directoryapi.Store{a.defaultStore}
}

// Application returns an application.
func (s *Service) Application(_ context.Context, in directoryapi.Ref) (applicationapi.Application, error) {
	return call(s, "Application", func() (applicationapi.Application, error) { return s.read(in) })
}

func (s *Service) read(at directoryapi.Ref) (applicationapi.Application, error) {
	a, err := s.find(at)
	if err != nil {
		return applicationapi.Application{}, err
	}
	return a.Application, nil
}

// ApplicationOfWebConfig returns the application of a web config.
func (s *Service) ApplicationOfWebConfig(_ context.Context, in directoryapi.Ref) (applicationapi.Application, error) {
	return call(s, "ApplicationOfWebConfig", func() (applicationapi.Application, error) {
		for _, a := range s.applications {
			if a.TenantID == in.Tenant && a.WebConfigID == in.ID {
				return a.Application, nil
			}
		}
		return applicationapi.Application{}, apierr.NotFound
	})
}

// SetDNSLabel changes the DNS label of an application.
func (s *Service) SetDNSLabel(_ context.Context, in applicationapi.SetDNSLabel) (applicationapi.Application, error) {
	return call(s, "SetDNSLabel", func() (applicationapi.Application, error) {
		a, err := s.find(directoryapi.Ref{Tenant: in.Tenant, ID: in.Application})
		switch {
		case err != nil:
			return applicationapi.Application{}, err
		case a.Builtin:
			return applicationapi.Application{}, apierr.BadRequest
		}
		label, err := readLabel(in.Label)
		if err != nil {
			return applicationapi.Application{}, err
		}
		for _, other := range s.applications {
			if other.DNSLabel == label && other != a {
				return applicationapi.Application{}, apierr.Exists
			}
		}
		own := slices.Index(a.AuthorizedOriginURIs, "https://"+a.DomainName(Suffix))
		a.DNSLabel = label
		if own >= 0 {
			a.AuthorizedOriginURIs = slices.Clone(a.AuthorizedOriginURIs)
			a.AuthorizedOriginURIs[own] = "https://" + a.DomainName(Suffix)
		}
		return a.Application, nil
	})
}

func readLabel(text string) (string, error) {
	label, err := field.Required(field.Some(text), "dnsLabel", 63)
	if err != nil {
		return "", err
	}
	label = strings.ToLower(label)
	isOutside := func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if strings.Trim(label, "-") != label || strings.ContainsFunc(label, isOutside) {
		return "", apierr.Format
	}
	return label, nil
}

// ApplicationData returns values of an application's customData.
func (s *Service) ApplicationData(_ context.Context, in applicationapi.CustomDataRequest) (applicationapi.CustomDataValues, error) {
	return call(s, "ApplicationData", func() (applicationapi.CustomDataValues, error) {
		a, err := s.find(in.Ref)
		if err != nil {
			return applicationapi.CustomDataValues{}, err
		}
		return applicationapi.CustomDataValues{Values: a.data.Printed(in.Keys)}, nil
	})
}
