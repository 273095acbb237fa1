package application_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// Members that only an administrator may set have no effect on an account that a browser registers,
// in any account store.
func TestARegistrationCannotSetItsOwnStatus(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, directory := newApplication(t, d, tenant), d.Directory(t, tenant, "Cloud")
	followLinks(t, d, tenant, shop, directory)
	anywhere := applicationapi.LoginTarget{Tenant: tenant, Application: shop}
	named := anywhere
	named.AccountStore = applicationtest.Base.Link("directories", directory)
	for name, where := range map[string]applicationapi.LoginTarget{"anywhere": anywhere, "named": named} {
		t.Run(name, func(t *testing.T) {
			got, err := d.Service.Register(t.Context(),
				applicationapi.Register{LoginTarget: where, Account: directoryapi.NewAccount{
					Email: field.Some(name + "@example.test"), Password: field.Some(applicationtest.Password),
					Status: field.Some(directoryapi.Disabled), EmailVerificationStatus: field.Some(directoryapi.Verified),
				}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != directoryapi.Enabled || got.EmailVerificationStatus != directoryapi.Unverified {
				t.Errorf("the account is %s and %s", got.Status, got.EmailVerificationStatus)
			}
		})
	}
}

func TestLoginStoresLeaveOutTheDefaultOfABriefRequest(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, directory := newApplication(t, d, tenant), d.Directory(t, tenant, "Cloud")
	followLinks(t, d, tenant, shop, directory)
	where := applicationapi.LoginTarget{Tenant: tenant, Application: shop}
	full, err := d.Service.LoginDirectories(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	if full.Default != directory || !slices.Equal(full.Directories, []id.ID{directory}) {
		t.Errorf("the stores are %+v, want the directory %s alone, as the default", full, directory)
	}
	where.Brief = true
	brief, err := d.Service.LoginDirectories(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	if !brief.Default.IsZero() || !slices.Equal(brief.Directories, full.Directories) {
		t.Errorf("the stores of a brief request are %+v, want the same directories and no default", brief)
	}
}

func TestLoginDirectoriesOfOrganizationsCanBeLeftOut(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, bank := newApplication(t, d, tenant), newOrganization(t, d, tenant)
	own, both, ofBank := d.Directory(t, tenant, "Own"), d.Directory(t, tenant, "Both"),
		d.Directory(t, tenant, "Of the bank")
	mapToOrganization(t, d, tenant, bank, ofBank)
	mapToOrganization(t, d, tenant, bank, both)
	mapOrganization(t, d, tenant, shop, bank)
	newMapping(t, d, tenant, shop, own)
	newMapping(t, d, tenant, shop, both)
	toBank := link("organizations", bank).Value
	for what, c := range map[string]struct {
		in   applicationapi.LoginTarget
		want []id.ID
	}{
		"all":                 {applicationapi.LoginTarget{}, []id.ID{ofBank, both, own}},
		"direct":              {applicationapi.LoginTarget{DirectOnly: true}, []id.ID{own, both}},
		"of the organization": {applicationapi.LoginTarget{DirectOnly: true, AccountStore: toBank}, []id.ID{ofBank, both}},
	} {
		c.in.Tenant, c.in.Application = tenant, shop
		got, err := d.Service.LoginDirectories(t.Context(), c.in)
		if err != nil || !slices.Equal(got.Directories, c.want) {
			t.Errorf("%s: the directories are %v, %v, want %v", what, got.Directories, err, c.want)
		}
	}
}

// Requests of a browser for mails are anonymous; those of an administrator are not.
func TestOnlyABrowserAsksForMailsAnonymously(t *testing.T) {
	t.Parallel()
	d := applicationtest.Open(t)
	tenant, _ := d.Tenant(t)
	shop, at := newApplication(t, d, tenant), d.Directory(t, tenant, "Cloud")
	newMapping(t, d, tenant, shop, at)
	d.Directories.EnableVerification(t, directoryapi.Ref{Tenant: tenant, ID: at})
	made, err := d.Directories.CreateAccount(t.Context(), directoryapi.CreateAccount{
		Tenant: tenant, ID: d.NewID(), Directory: at, Workflow: true,
		Account: directoryapi.NewAccount{Email: field.Some("jo@example.test"),
			Password: field.Some(applicationtest.Password)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ref := id.Ref{Tenant: tenant, ID: shop}
	login := applicationapi.LoginName{LoginTarget: applicationapi.LoginTarget{Tenant: tenant, Application: shop},
		Login: made.Email}
	mails := func() int { return d.Directories.VerificationMails(t, id.Ref{Tenant: tenant, ID: made.ID}) }
	asked := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * directoryapi.MaxAnonymousMails {
		_, err := d.Service.RequestVerification(t.Context(), login)
		asked(err)
		_, err = d.Service.RequestReset(t.Context(), login)
		asked(err)
	}
	if mails() != directoryapi.MaxAnonymousMails {
		t.Errorf("a browser sends %d verification mails, want %d", mails(), directoryapi.MaxAnonymousMails)
	}
	for i := range 2 * directoryapi.MaxAnonymousMails {
		asked(d.Service.SendVerificationMail(t.Context(), ref, application.NewVerification{Login: field.Some(made.Email)}))
		if mails() != directoryapi.MaxAnonymousMails+i+1 {
			t.Fatalf("an administrator's request %d sends no verification mail", i)
		}
		reset, err := d.Service.CreatePasswordReset(t.Context(), ref,
			application.NewPasswordReset{Email: field.Some(made.Email)})
		if err != nil || reset.Token == "" {
			t.Fatalf("an administrator's reset %d is %+v, %v", i, reset, err)
		}
	}
}
