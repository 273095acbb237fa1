package app

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/notification"
	"github.com/doorward/doorward/services/oauth"
)

// handlersOf are the event handlers of the services that have some.
var handlersOf = map[string][]events.Handler{
	"application": new(application.Service).Handlers(), "idsite": new(idsite.Service).Handlers(), "mfa": new(mfa.Service).Handlers(),
	"notification": new(notification.Service).Handlers(), "oauth": new(oauth.Service).Handlers(),
}

// endsWithoutEvent are the columns that name a resource of another service, and whose rows end
// otherwise than by an event, with the reason why that is enough.
var endsWithoutEvent = map[string]string{
	"application.applications.web_config_id":   "the id is made with the application, whose web config it names",
	"directory.password_resets.application_id": "a reset token is found through its application alone, and expires",
	"idsite.login_flows.account_id":            "a flow ends within half an hour, and each of its steps asks for the account",
	"idsite.login_flows.application_id":        "a flow ends within half an hour, and each of its steps asks for the application",
	"idsite.login_flows.organization_id":       "a flow ends within half an hour, and each of its steps asks for the organization",
	"idsite.provider_logins.application_id":    "a login at a provider ends within half an hour, and its callback asks for the application",
	"idsite.provider_logins.directory_id":      "a login at a provider ends within half an hour, and its callback asks for the directory",
	"notification.deliveries.application_id":   "a mail asks for the application when it is composed, and the row is purged by its age",
	"notification.deliveries.challenge_id":     "a text message is done when its code expires, and the row is purged by its age",
	"oauth.access_tokens.organization_id":      "a token of a deleted organization is refused at its use, and is purged when it expires",
	"oauth.refresh_tokens.organization_id":     "a token of a deleted organization is refused at its use, and is purged when it expires",
}

// kindsOfColumn are the kinds of resources that columns name which are not called after one.
var kindsOfColumn = map[string][]string{"store_id": {"directory", "group"}}

// Each event that ends a resource is handled by every service that stores something of such a
// resource. Events, owners and columns are read from the source and from the migrated schemas, so
// that a new event or a new table without its handler fails here.
func TestEveryServiceHearsOfTheEndOfWhatItStores(t *testing.T) {
	t.Parallel()
	ending, owners := endingEvents(t)
	url := pgtest.New(t, migrated)
	tables, columns := map[string][]string{}, map[string][]string{} // of each schema
	for _, schema := range allInOneDatabase(url).Configs() {
		db, err := pg.OpenWithoutMigrating(t.Context(), schema)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		tables[schema.Schema] = textsOf(t, db, `SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()`)
		columns[schema.Schema] = textsOf(t, db, `SELECT table_name || '.' || column_name FROM information_schema.columns
			WHERE table_schema = current_schema() AND data_type = 'uuid' AND column_name LIKE '%\_id'`)
	}
	unused, checked := maps.Clone(endsWithoutEvent), 0
	for service, all := range columns {
		for _, column := range all {
			_, name, _ := strings.Cut(column, ".")
			kinds := kindsOfColumn[name]
			if kinds == nil {
				kinds = []string{strings.TrimSuffix(name, "_id")}
			}
			for _, kind := range kinds {
				if owner := ownerOf(kind, owners, tables); owner == "" || owner == service {
					continue
				}
				if kind == "tenant" && len(ending[kind]) == 0 {
					continue // no tenant ends: this is checked from the day on which an event says so
				}
				checked++
				full := service + "." + column
				if _, excepted := endsWithoutEvent[full]; excepted {
					delete(unused, full)
					continue
				}
				if len(ending[kind]) == 0 {
					t.Errorf("%s names a %s of another service, and no event says that one has ended", full, kind)
				}
				for _, event := range ending[kind] {
					if !slices.ContainsFunc(handlersOf[service], func(h events.Handler) bool { return h.Event == event }) {
						t.Errorf("%s names an ended %s, and the service %s does not handle %s", full, kind, service, event)
					}
				}
			}
		}
	}
	if checked < 20 || len(unused) > 0 {
		t.Errorf("%d columns were checked, and of the exceptions not %v", checked, slices.Sorted(maps.Keys(unused)))
	}
}

// endingEvents reads pkg/events/types.go: the events that end a resource, by its kind, and the
// service that emits them, to which the resource belongs.
func endingEvents(t *testing.T) (ending map[string][]string, owners map[string]string) {
	t.Helper()
	const root = "../../../"
	file, err := parser.ParseFile(token.NewFileSet(), root+"pkg/events/types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ending, owners = map[string][]string{}, map[string]string{}
	for name, object := range file.Scope.Objects {
		noun, ends := strings.CutSuffix(name, "Deleted")
		if !ends || object.Kind != ast.Typ {
			continue
		}
		kind := singular(strings.ToLower(noun))
		ending[kind] = append(ending[kind], name)
		owners[kind] = emitterOf(t, root+"services", name)
	}
	return ending, owners
}

// emitterOf returns the service whose source emits an event.
func emitterOf(t *testing.T, services, event string) string {
	t.Helper()
	sources, err := filepath.Glob(services + "/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(source, "_test.go") && strings.Contains(string(text), "Emit(ctx, events."+event+"{") {
			return filepath.Base(filepath.Dir(source))
		}
	}
	t.Errorf("no service emits %s", event)
	return ""
}

// ownerOf returns the service to which the resources of a kind belong: the one that emits their
// end or, where no event says it, the one that has a table of them. It is empty for a column that
// names no resource.
func ownerOf(kind string, owners map[string]string, tables map[string][]string) string {
	if owner := owners[kind]; owner != "" {
		return owner
	}
	for _, service := range slices.Sorted(maps.Keys(tables)) {
		if slices.ContainsFunc(tables[service], func(table string) bool { return singular(table) == kind }) {
			return service
		}
	}
	return ""
}

// singular returns the name of one of the resources that a plural names.
func singular(plural string) string {
	if stem, ok := strings.CutSuffix(plural, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(plural, "s")
}

func textsOf(t *testing.T, db *pg.DB, query string) []string {
	t.Helper()
	found, err := pg.Values[string](context.WithoutCancel(t.Context()), db, query)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
