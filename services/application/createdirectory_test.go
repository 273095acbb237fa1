package application_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/application/store"
)

// named returns the body of an application with a name.
func named(name string) application.NewApplication {
	return application.NewApplication{Name: field.Some(name)}
}

// createDirectory is what the query parameter asks for: a name, or "" for true.
func createDirectory(name string) application.DirectoryToCreate {
	return application.DirectoryToCreate{Wanted: true, Name: name}
}

func TestAnApplicationBeginsWithItsDirectory(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	a, err := d.Service.CreateApplication(t.Context(), tenant, named("Shop"), createDirectory("Customers"))
	if err != nil {
		t.Fatal(err)
	}
	read, err := d.Service.Application(t.Context(), directoryapi.Ref{Tenant: tenant, ID: a.ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []applicationapi.Application{a, read} {
		if got.DefaultAccountStore.IsZero() || got.DefaultAccountStore != got.DefaultGroupStore {
			t.Errorf("the default stores are %v and %v, want the same mapping", got.DefaultAccountStore, got.DefaultGroupStore)
		}
	}
	m, err := d.Service.MappingReader(store.ApplicationKind)(t.Context(),
		directoryapi.Ref{Tenant: tenant, ID: a.DefaultAccountStore})
	if err != nil {
		t.Fatal(err)
	}
	directory, err := d.Directories.Directory(t.Context(), directoryapi.Ref{Tenant: tenant, ID: m.StoreID})
	if err != nil || directory.Name != "Customers" || m.ListIndex != 0 {
		t.Errorf("the store at %d is %q, %v", m.ListIndex, directory.Name, err)
	}
}

func TestADirectoryIsNamedAfterItsApplication(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	known := d.Directories.Names(t, tenant)
	// create creates an application, deletes it, and returns the name of the directory, which stays.
	create := func(t *testing.T, name string) string {
		t.Helper()
		a, err := d.Service.CreateApplication(t.Context(), tenant, named(name), createDirectory(""))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Service.DeleteApplication(t.Context(), id.Ref{Tenant: tenant, ID: a.ID}); err != nil {
			t.Fatal(err)
		}
		for _, directory := range d.Directories.Names(t, tenant) {
			if !slices.Contains(known, directory) {
				known = append(known, directory)
				return directory
			}
		}
		t.Fatal("there is no new directory")
		return ""
	}

	t.Run("with a number when that is taken", func(t *testing.T) {
		for _, want := range []string{"Shop Directory", "Shop Directory (2)", "Shop Directory (3)"} {
			if got := create(t, "Shop"); got != want {
				t.Errorf("the directory is named %q, want %q", got, want)
			}
		}
	})
	t.Run("whatever number of them is taken", func(t *testing.T) {
		for range 20 {
			if got := create(t, "Shop"); !strings.HasPrefix(got, "Shop Directory (") {
				t.Errorf("the directory is named %q", got)
			}
		}
	})
	t.Run("cut to 255 characters", func(t *testing.T) {
		for _, suffix := range []string{" Directory", " Directory (2)"} {
			want := strings.Repeat("é", 255-len(suffix)) + suffix
			if got := create(t, strings.Repeat("é", 255)); got != want || utf8.RuneCountInString(got) != 255 {
				t.Errorf("the directory is named %q, want %q", got, want)
			}
		}
	})
}

func TestNothingIsLeftOfAnApplicationThatFailed(t *testing.T) {
	t.Parallel()
	away := func() error { return apierr.Unavailable.Because("the peer is away") }
	for _, c := range []struct {
		what    string
		prepare func(t *testing.T, d *applicationtest.Deployment, tenant id.ID) context.Context
		first   application.DirectoryToCreate
		want    error    // nil: any
		left    []string // applications
	}{
		{"its name is taken", func(t *testing.T, d *applicationtest.Deployment, tenant id.ID) context.Context {
			insert(t, d, tenant, "SHOP")
			return t.Context()
		}, createDirectory(""), apierr.Exists, []string{"SHOP"}},

		{"its name is taken while its directory is made",
			func(t *testing.T, d *applicationtest.Deployment, tenant id.ID) context.Context {
				d.Directories.Break("CreateDirectory", fault.After, func() error { insert(t, d, tenant, "SHOP"); return nil })
				return t.Context()
			}, createDirectory("Customers"), apierr.Exists, []string{"SHOP"}},

		{"the directory's name is taken", func(t *testing.T, d *applicationtest.Deployment, _ id.ID) context.Context {
			return t.Context()
		}, createDirectory("service ADMINISTRATORS"), apierr.DirectoryTaken, nil},

		{"the directory service is away", func(t *testing.T, d *applicationtest.Deployment, _ id.ID) context.Context {
			d.Directories.Break("CreateDirectory", fault.Before, away)
			return t.Context()
		}, createDirectory(""), apierr.Unavailable, nil},

		{"the directory service's answer is lost",
			func(t *testing.T, d *applicationtest.Deployment, _ id.ID) context.Context {
				d.Directories.Break("CreateDirectory", fault.After, away)
				return t.Context()
			}, createDirectory(""), apierr.Unavailable, nil},

		{"the database goes away", func(t *testing.T, d *applicationtest.Deployment, _ id.ID) context.Context {
			d.Directories.Break("CreateDirectory", fault.After, func() error {
				back := pgtest.Outage(t, pgtest.URL(d.DB))
				d.Directories.Break("DeleteDirectory", fault.After, func() error { back(); return nil })
				return nil
			})
			return t.Context()
		}, createDirectory(""), nil, nil},

		{"the request ends", func(t *testing.T, d *applicationtest.Deployment, _ id.ID) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			d.Directories.Break("CreateDirectory", fault.After, func() error { cancel(); return nil })
			return ctx
		}, createDirectory(""), context.Canceled, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := applicationtest.OpenApart(t)
			tenant, _ := d.Tenant(t)
			ctx := c.prepare(t, d, tenant)
			if _, err := d.Service.CreateApplication(ctx, tenant, named("Shop"), c.first); err == nil || c.want != nil &&
				!errors.Is(err, c.want) {
				t.Errorf("the error is %v, want %v", err, c.want)
			}
			if names := d.Directories.Names(t, tenant); !slices.Equal(names, []string{"Service Administrators"}) {
				t.Errorf("the directories are %q", names)
			}
			if names := applicationNames(t, d, tenant); !slices.Equal(names, c.left) {
				t.Errorf("the applications are %q, want %q", names, c.left)
			}
		})
	}
	t.Run("and its own error is returned when the directory cannot be removed either", func(t *testing.T) {
		d := applicationtest.OpenApart(t)
		tenant, _ := d.Tenant(t)
		d.Directories.Break("CreateDirectory", fault.After, away)
		d.Directories.Break("DeleteDirectory", fault.Before, func() error { return errors.New("still away") })
		if _, err := d.Service.CreateApplication(t.Context(), tenant, named("Shop"), createDirectory("")); !errors.Is(err,
			apierr.Unavailable) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestNothingIsLeftOfAnOrganizationThatFailed(t *testing.T) {
	t.Parallel()
	bank := application.NewOrganization{Name: field.Some("Bank"), NameKey: field.Some("bank")}
	for what, c := range map[string]struct {
		prepare func(t *testing.T, d *applicationtest.Deployment, tenant id.ID)
		want    error // nil: any
		left    int   // organizations
	}{
		"its key is taken while its directory is made": {func(t *testing.T, d *applicationtest.Deployment, tenant id.ID) {
			d.Directories.Break("CreateDirectory", fault.After, func() error {
				other := application.NewOrganization{Name: field.Some("Other"), NameKey: field.Some("BANK")}
				_, err := d.Service.CreateOrganization(t.Context(), tenant, other, application.DirectoryToCreate{})
				return err
			})
		}, apierr.Exists, 1},
		"the directory service's answer is lost": {func(_ *testing.T, d *applicationtest.Deployment, _ id.ID) {
			d.Directories.Break("CreateDirectory", fault.After, func() error { return apierr.Unavailable })
		}, apierr.Unavailable, 0},
		"the database goes away": {func(t *testing.T, d *applicationtest.Deployment, _ id.ID) {
			d.Directories.Break("CreateDirectory", fault.After, func() error {
				back := pgtest.Outage(t, pgtest.URL(d.DB))
				d.Directories.Break("DeleteDirectory", fault.After, func() error { back(); return nil })
				return nil
			})
		}, nil, 0},
	} {
		t.Run(what, func(t *testing.T) {
			d := applicationtest.OpenApart(t)
			tenant, _ := d.Tenant(t)
			c.prepare(t, d, tenant)
			if _, err := d.Service.CreateOrganization(t.Context(), tenant, bank, createDirectory("")); err == nil ||
				c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("the error is %v, want %v", err, c.want)
			}
			if names := d.Directories.Names(t, tenant); !slices.Equal(names, []string{"Service Administrators"}) {
				t.Errorf("the directories are %q", names)
			}
			page, err := d.Service.ListOrganizations(t.Context(), id.Ref{Tenant: tenant, ID: tenant}, list.First())
			if err != nil || page.Size != c.left {
				t.Errorf("there are %d organizations, %v", page.Size, err)
			}
		})
	}
}

func TestOfParallelApplicationsOfOneNameOneIsMade(t *testing.T) {
	t.Parallel()
	for what, first := range map[string]application.DirectoryToCreate{"without a directory": {},
		"with a directory": createDirectory("")} {
		t.Run(what, func(t *testing.T) {
			d := applicationtest.Open(t)
			tenant, _ := d.Tenant(t)
			var made, taken atomic.Int32
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					_, err := d.Service.CreateApplication(t.Context(), tenant, named([]string{"Shop", "SHOP"}[i%2]), first)
					switch {
					case err == nil:
						made.Add(1)
					case errors.Is(err, apierr.Exists):
						taken.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			if made.Load() != 1 || taken.Load() != 7 {
				t.Errorf("%d were made and %d refused, want 1 and 7", made.Load(), taken.Load())
			}
			want := 1 // the administrators'
			if first.Wanted {
				want = 2
			}
			if names := d.Directories.Names(t, tenant); len(names) != want {
				t.Errorf("the directories are %q", names)
			}
		})
	}
}

func TestASignUpThatFailedIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	for what, moment := range map[string]fault.Moment{"before its directory": fault.Before,
		"after its directory": fault.After} {
		t.Run(what, func(t *testing.T) {
			d := applicationtest.Open(t)
			tenant, administrators := d.Tenant(t)
			in := applicationapi.SignUp{
				Tenant: tenant, Console: d.NewID(), ConsoleName: "Service", Administrators: administrators,
				ConsoleMapping: d.NewID(),
				Application:    d.NewID(), ApplicationMapping: d.NewID(), Directory: d.NewID(),
			}
			d.Directories.Break("CreateDirectory", moment, once(func() error { return apierr.Unavailable }))
			if _, err := d.Service.SignUp(t.Context(), in); !errors.Is(err, apierr.Unavailable) {
				t.Fatalf("the first call returned %v", err)
			}
			made, err := d.Service.SignUp(t.Context(), in)
			if err != nil || made.Application.DefaultAccountStore != in.ApplicationMapping {
				t.Fatalf("the second call returned %v, %v", made.Application, err)
			}
			if names := d.Directories.Names(t, tenant); len(names) != 2 {
				t.Errorf("the directories are %q", names)
			}
		})
	}
}

// once returns the error of the first call and then none.
func once(cause func() error) func() error {
	var first sync.Once
	return func() (err error) {
		first.Do(func() { err = cause() })
		return err
	}
}

// insert inserts an application with a name.
func insert(t *testing.T, d *applicationtest.Deployment, tenant id.ID, name string) {
	t.Helper()
	if _, err := d.Service.CreateApplication(t.Context(), tenant, named(name),
		application.DirectoryToCreate{}); err != nil {
		t.Error(err)
	}
}

func applicationNames(t *testing.T, d *applicationtest.Deployment, tenant id.ID) (names []string) {
	t.Helper()
	page, err := d.Service.ListApplications(t.Context(), id.Ref{Tenant: tenant, ID: tenant}, list.First())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range page.Items {
		names = append(names, a.Name)
	}
	return names
}
