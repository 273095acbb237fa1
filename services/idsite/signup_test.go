package idsite_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	"github.com/doorward/doorward/services/idsite/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var in = idsite.Bootstrap{KeyID: "2EXAMPLE0KEY0ID00000000000", KeySecret: "0123456789abcdef0123456789abcdef",
	OwnerEmail: "owner@example.test"}

func newService(t *testing.T, d *idsitetest.Deployment) (svc *idsite.Service, url string) {
	t.Helper()
	db := pgtest.Open(t, store.Config)
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	peers := d.Peers()
	peers.OAuth = ownCalls{d.OAuth, t}
	return idsite.New(store.New(db, (&clocktest.Clock{}).Now), peers, ring, (&clocktest.Clock{}).Now, idsite.Config{
			AliasTitle: "Service", Product: "Doorward", Suffix: "example.test", SignUp: true, LookupTXT: d.DNS.LookupTXT,
		}),
		pgtest.URL(db)
}

// complete checks that the deployment holds one tenant with all that belongs to
// it, and returns the tenant.
func complete(t *testing.T, svc *idsite.Service, d *idsitetest.Deployment) id.ID {
	t.Helper()
	tenants := slices.DeleteFunc(d.Directories.Tenants(t), func(other directoryapi.SignedUp) bool { return other.Owner.Email != in.OwnerEmail })
	if len(tenants) != 1 {
		t.Fatalf("there are %d tenants, want 1", len(tenants))
	}
	made := tenants[0]
	if made.Directory.Name != "Service Administrators" || made.Owner.Email != in.OwnerEmail {
		t.Errorf("the tenant has %+v", made)
	}
	if len(d.SignUps()) != 1 {
		t.Fatalf("the applications are %+v", d.SignUps())
	}
	applications := d.SignUps()[0]
	if applications.Tenant != made.Tenant.ID || applications.ConsoleName != "Service" || applications.Administrators != made.Directory.ID {
		t.Errorf("the applications are %+v", applications)
	}
	ids := map[id.ID]bool{}
	for _, v := range []id.ID{
		made.Tenant.ID, made.Directory.ID, made.Owner.ID, applications.Console, applications.ConsoleMapping,
		applications.Application, applications.ApplicationMapping, applications.Directory,
	} {
		ids[v] = true
	}
	if len(ids) != 8 || ids[id.ID{}] {
		t.Errorf("the ids are not all different: %v", ids)
	}
	if key := d.OAuth.Keys()[in.KeyID]; len(d.OAuth.Keys()) != 1 || key.TenantID != made.Tenant.ID || key.AccountID != made.Owner.ID ||
		key.Secret != in.KeySecret {
		t.Errorf("the API keys are %v", d.OAuth.Keys())
	}
	page, err := svc.ListSites(t.Context(), id.Ref{Tenant: made.Tenant.ID, ID: made.Tenant.ID}, list.First())
	if err != nil || page.Size != 1 || page.Items[0].DomainName != made.Tenant.Key+".id.example.test" {
		t.Errorf("the sites are %+v, %v", page, err)
	}
	return made.Tenant.ID
}

func TestASignUpIsIdempotent(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	svc, _ := newService(t, d)
	var first id.ID
	for range 3 {
		tenant, err := svc.SignUpFirstTenant(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if complete(t, svc, d); first.IsZero() {
			first = tenant.ID
		}
		if tenant.ID != first {
			t.Errorf("the tenant is %s and was %s", tenant.ID, first)
		}
	}
	other := in
	other.KeyID = "another"
	if tenant, err := svc.SignUpFirstTenant(t.Context(), other); err != nil || tenant.ID == first || len(d.Directories.Tenants(t)) != 2 {
		t.Errorf("another key returns the tenant %s, %v", tenant.ID, err)
	}
}

// partsOf returns the ids of the parts of the only tenant in the order of lists.
func partsOf(t *testing.T, d *idsitetest.Deployment) []id.ID {
	t.Helper()
	made, applications := d.Directories.Tenants(t)[0], d.SignUps()[0]
	return []id.ID{made.Directory.ID, applications.Directory, applications.Console, applications.Application, id.New(time.UnixMilli(1))}
}

// Lists sort by id where they are to sort by time, so that the first parts of a tenant must have the
// lowest ids.
func TestThePartsOfATenantSortBeforeAllLaterResources(t *testing.T) {
	sorted := func(t *testing.T, d *idsitetest.Deployment) {
		t.Helper()
		if ids := partsOf(t, d); !slices.IsSortedFunc(ids, func(a, b id.ID) int { return bytes.Compare(a[:], b[:]) }) {
			t.Errorf("the ids are not in order: %s", ids)
		}
	}
	t.Run("the first tenant", func(t *testing.T) {
		d := idsitetest.New(t, &clocktest.Clock{})
		svc, _ := newService(t, d)
		if _, err := svc.SignUpFirstTenant(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		sorted(t, d)
		if owner := d.Directories.Tenants(t)[0].Owner.ID; !owner.Time().Equal(time.UnixMilli(0)) {
			t.Errorf("the owner has the id %s", owner)
		}
	})
	t.Run("a tenant that was signed up", func(t *testing.T) {
		d := idsitetest.New(t, &clocktest.Clock{})
		svc, _ := newService(t, d)
		if err := svc.RequestSignUp(t.Context(), newOwner("jo@example.test")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := svc.CompleteSignUp(t.Context(), d.Directories.SignUpTokens(t)["jo@example.test"]); err != nil {
			t.Fatal(err)
		}
		sorted(t, d)
	})
}

// In earlier releases all ids of the parts were hashes. Such a tenant keeps them, also where its
// sign-up broke off after the first call.
func TestATenantOfAnEarlierReleaseKeepsItsIDs(t *testing.T) {
	hashed := func(seed, what string) id.ID {
		sum := sha256.Sum256([]byte("doorward/bootstrap/" + seed + "/" + what))
		v := id.ID(sum[:16])
		v[6], v[8] = v[6]&0x0f|0x80, v[8]&0x3f|0x80
		return v
	}
	check := func(t *testing.T, d *idsitetest.Deployment, seed string) {
		t.Helper()
		want := []id.ID{hashed(seed, "administrators"), hashed(seed, "application directory"), hashed(seed, "console"),
			hashed(seed, "application")}
		if got := partsOf(t, d)[:4]; !slices.Equal(got, want) || len(d.Directories.Tenants(t)) != 1 {
			t.Errorf("the ids are %s\nwant %s", got, want)
		}
	}
	t.Run("the first tenant", func(t *testing.T) {
		d := idsitetest.New(t, &clocktest.Clock{})
		svc, _ := newService(t, d)
		if _, err := d.Directories.SignUp(t.Context(), directoryapi.SignUp{Tenant: hashed(in.KeyID, "tenant"), Key: "some-key",
			Directory: hashed(in.KeyID, "administrators"), DirectoryName: "Service Administrators", Owner: hashed(in.KeyID, "owner"),
			Email: in.OwnerEmail}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := svc.SignUpFirstTenant(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			complete(t, svc, d)
			check(t, d, in.KeyID)
		}
	})
	t.Run("a tenant that was signed up", func(t *testing.T) {
		d := idsitetest.New(t, &clocktest.Clock{})
		svc, _ := newService(t, d)
		if err := svc.RequestSignUp(t.Context(), newOwner("jo@example.test")); err != nil {
			t.Fatal(err)
		}
		token := d.Directories.SignUpTokens(t)["jo@example.test"]
		pending, err := svc.PendingSignUp(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		seed := pending.Tenant.String()
		if _, err := d.Directories.SignUp(t.Context(), directoryapi.SignUp{Tenant: pending.Tenant, Key: "some-key", Owner: pending.Account,
			Directory: hashed(seed, "administrators"), DirectoryName: "Service Administrators", Pending: true}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := svc.CompleteSignUp(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		check(t, d, seed)
	})
}

// The configuration of a deployment keeps the key: whoever has it from there must not have
// it back at the next start.
func TestAFirstKeyThatWasDeletedIsNotMadeAgain(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	svc, _ := newService(t, d)
	for range 2 {
		if _, err := svc.SignUpFirstTenant(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	other := in
	other.KeySecret = "another0another0another0another0"
	if _, err := svc.SignUpFirstTenant(t.Context(), other); !errors.Is(err, apierr.Exists) {
		t.Errorf("another secret: %v", err)
	}
	if err := d.OAuth.Rules.DeleteAPIKey(t.Context(), d.OAuth.Keys()[in.KeyID].TenantID, in.KeyID); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.SignUpFirstTenant(t.Context(), in); err != nil || len(d.OAuth.Keys()) != 0 {
		t.Errorf("the keys are %v, %v", d.OAuth.Keys(), err)
	}
}

func TestASignUpThatFailedIsCompletedByTheNext(t *testing.T) {
	for step := 1; step <= 3; step++ {
		t.Run(fmt.Sprintf("at call %d", step), func(t *testing.T) {
			d := idsitetest.New(t, &clocktest.Clock{})
			svc, _ := newService(t, d)
			d.FailSignUp(func(call int) error {
				if call == step {
					return apierr.Unavailable
				}
				return nil
			})
			if _, err := svc.SignUpFirstTenant(t.Context(), in); !errors.Is(err, apierr.Unavailable) {
				t.Fatalf("the sign-up ends with %v", err)
			}
			if step < 3 && len(d.OAuth.Keys()) != 0 {
				t.Error("there is a key to half a tenant")
			}
			if _, err := svc.SignUpFirstTenant(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			complete(t, svc, d)
		})
	}
	t.Run("at its own database", func(t *testing.T) {
		d := idsitetest.New(t, &clocktest.Clock{})
		svc, url := newService(t, d)
		end := pgtest.Outage(t, url)
		if _, err := svc.SignUpFirstTenant(t.Context(), in); !errors.Is(err, apierr.Unavailable) {
			t.Errorf("the sign-up ends with %v", err)
		}
		end()
		if len(d.OAuth.Keys()) != 0 {
			t.Error("there is a key to half a tenant")
		}
		if _, err := svc.SignUpFirstTenant(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		complete(t, svc, d)
	})
}

func TestReplicasMakeOneTenant(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	svc, _ := newService(t, d)
	var replicas sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		replicas.Go(func() { _, errs[i] = svc.SignUpFirstTenant(t.Context(), in) })
	}
	replicas.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	complete(t, svc, d)
}

func TestATakenTenantKeyIsSkipped(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	svc, _ := newService(t, d)
	first, err := svc.SignUpFirstTenant(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	d = idsitetest.New(t, &clocktest.Clock{})
	if _, err := d.Directories.SignUp(t.Context(), directoryapi.SignUp{
		Tenant: id.ID{1}, Directory: id.ID{2}, Owner: id.ID{3}, Key: first.Key, Email: "other@example.test", DirectoryName: "Service Administrators",
	}); err != nil {
		t.Fatal(err)
	}
	svc, _ = newService(t, d)
	second, err := svc.SignUpFirstTenant(t.Context(), in)
	if err != nil || second.Key == first.Key || second.ID != first.ID {
		t.Errorf("the tenant is %+v, %v; was %+v", second, err, first)
	}
	complete(t, svc, d)
	if again, err := svc.SignUpFirstTenant(t.Context(), in); err != nil || again.Key != second.Key {
		t.Errorf("the tenant is %+v, %v", again, err)
	}
}

// ownCalls are calls for a tenant, which come on behalf of that tenant.
type ownCalls struct {
	oauthapi.Contract
	t *testing.T
}

func (o ownCalls) EnsureKey(ctx context.Context, in oauthapi.EnsureKey) (oauthapi.Key, error) {
	if caller.From(ctx).Tenant != in.Tenant {
		o.t.Errorf("the key of %s is made on behalf of %s", in.Tenant, caller.From(ctx).Tenant)
	}
	return o.Contract.EnsureKey(ctx, in)
}

func TestTheFirstTenantWaitsForTheOtherServices(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	svc, _ := newService(t, d)
	d.FailSignUp(func(call int) error {
		if call <= 3 {
			return apierr.Unavailable
		}
		return nil
	})
	if err := svc.EnsureFirstTenant(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	complete(t, svc, d)

	d.FailSignUp(func(int) error { return apierr.Unavailable })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := svc.EnsureFirstTenant(ctx, in); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without them it ends with %v", err)
	}
}

func TestARefusedConfigurationIsReported(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	svc, _ := newService(t, d)
	if err := svc.EnsureFirstTenant(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	other := in
	other.KeySecret = "another secret of at least 32 characters"
	err := svc.EnsureFirstTenant(t.Context(), other)
	if err == nil || !strings.Contains(err.Error(), "DOORWARD_BOOTSTRAP_KEY_SECRET") || strings.Contains(err.Error(), "another secret of") {
		t.Errorf("another secret ends with %v", err)
	}
	d.FailSignUp(func(int) error { return apierr.Format.Because("email is not an email address") })
	if err := svc.EnsureFirstTenant(t.Context(), in); err == nil || !strings.Contains(err.Error(), "DOORWARD_BOOTSTRAP_OWNER_EMAIL") {
		t.Errorf("a refused email ends with %v", err)
	}
}

func TestTenantKeysAreTwoWords(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]{2,}-[a-z]{2,}$`)
	seen := map[string]bool{}
	d := idsitetest.New(t, &clocktest.Clock{})
	svc, _ := newService(t, d)
	const tenants = 50
	for i := range tenants {
		each := in
		each.KeyID = fmt.Sprintf("key-%d", i)
		tenant, err := svc.SignUpFirstTenant(t.Context(), each)
		if err != nil || !form.MatchString(tenant.Key) || len(tenant.Key) > 63 {
			t.Fatalf("the tenant key is %q, %v", tenant.Key, err)
		}
		seen[tenant.Key] = true
	}
	if len(seen) != tenants {
		t.Errorf("%d tenants have %d keys", tenants, len(seen))
	}
}

func newOwner(email string) directoryapi.NewAccount {
	return directoryapi.NewAccount{Email: field.Some(email), GivenName: field.Some("Jo"), Surname: field.Some("Doe"),
		Password: field.Some("Changeme1")}
}

// A sign-up that broke off at any call is completed by the next try, with the same
// key; of parallel tries one shows it.
func TestTheMailOfASignUpMakesTheTenantOnce(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	svc, _ := newService(t, d)
	if err := svc.RequestSignUp(t.Context(), newOwner("jo@example.test")); err != nil {
		t.Fatal(err)
	}
	if len(d.Directories.Tenants(t)) != 0 {
		t.Fatal("there is a tenant before the mail is answered")
	}
	token := d.Directories.SignUpTokens(t)["jo@example.test"]
	var made directoryapi.Tenant
	for step := 1; step <= 3; step++ {
		d.FailSignUp(func(call int) error {
			if call == step {
				return apierr.Unavailable
			}
			return nil
		})
		if _, _, err := svc.CompleteSignUp(t.Context(), token); !errors.Is(err, apierr.Unavailable) {
			t.Fatalf("the sign-up that breaks off at call %d ends with %v", step, err)
		}
	}
	d.FailSignUp(func(int) error { return nil })
	var good atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			tenant, key, err := svc.CompleteSignUp(t.Context(), token)
			if errors.Is(err, apierr.NotFound) {
				return
			}
			good.Add(1)
			if err != nil || d.OAuth.Keys()[key.ID].Secret != key.Secret || d.OAuth.Keys()[key.ID].TenantID != tenant.ID || len(key.ID) != 26 ||
				len(key.Secret) != 43 {
				t.Errorf("the key is %s, %v", key.ID, err)
			}
			made = tenant
		})
	}
	all.Wait()
	if good.Load() != 1 || len(d.Directories.Tenants(t)) != 1 || len(d.OAuth.Keys()) != 1 || d.Directories.Tenants(t)[0].Owner.Email != "jo@example.test" {
		t.Errorf("%d of 50 tries succeeded; there are %d tenants and %d keys", good.Load(), len(d.Directories.Tenants(t)), len(d.OAuth.Keys()))
	}
	if page, err := svc.ListSites(t.Context(), id.Ref{Tenant: made.ID, ID: made.ID}, list.First()); err != nil || page.Size != 1 {
		t.Errorf("the sites are %+v, %v", page, err)
	}
	if _, _, err := svc.CompleteSignUp(t.Context(), d.Directories.Invite(t, made.ID, "new@example.test")); !errors.Is(err, apierr.NotFound) {
		t.Errorf("an invitation makes a tenant: %v", err)
	}
}
