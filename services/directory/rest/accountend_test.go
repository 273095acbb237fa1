package rest_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// waysToEnd are all ways in which accounts end. function is the one of the service that deletes
// them; prepare makes accounts and returns what ends some of them, and how many.
var waysToEnd = []struct {
	name, function string
	prepare        func(b *bench) (end func(), n int)
}{
	{"DELETE of the account", "DeleteAccount", func(b *bench) (func(), int) {
		account := b.member(b.directory("Cloud"), "al@example.test")
		return func() { b.Delete(account).Want(204) }, 1
	}},
	{"DELETE of its directory", "deleteRemainingAccounts", func(b *bench) (func(), int) {
		cloud := b.directory("Cloud")
		b.member(cloud, "al@example.test")
		b.member(cloud, "bo@example.test")
		return func() { b.Delete(cloud).Want(204) }, 2
	}},
	{"the purge after a thousand accounts of a directory", "deleteRemainingAccounts", func(b *bench) (func(), int) {
		agent := b.agent("L", ldapProvider(``))
		b.complete(agent, 0, 1001)
		b.Delete(b.Get(agent).Href("directory")).Want(204)
		return b.purge, 1
	}},
	{"a sync that no longer holds it, without a retention", "endVanished", func(b *bench) (func(), int) {
		agent := b.agent("L", ldapProvider(``))
		b.Post(agent, `{"config":{"absentRetention":"PT0S"}}`).Want(200)
		b.complete(agent, 0, 4)
		return func() { b.complete(agent, 1, 3) }, 1
	}},
	{"a sync that names it as deleted, without a retention", "endVanished", func(b *bench) (func(), int) {
		agent := b.agent("L", ldapProvider(``))
		b.Post(agent, `{"config":{"absentRetention":"PT0S"}}`).Want(200)
		b.complete(agent, 0, 4)
		return func() { b.sync(agent, `{"deletedAccounts":["p001","p003"]}`) }, 2
	}},
	{"the end of its retention, when it is absent", "purgeAbsent", func(b *bench) (func(), int) {
		agent := b.agent("L", ldapProvider(``))
		b.complete(agent, 0, 4)
		b.complete(agent, 1, 3)
		b.clock.Move(31 * 24 * time.Hour)
		return func() {
			if err := b.svc.Purge(b.Context()); err != nil {
				b.Fatal(err)
			}
		}, 1
	}},
}

// Of each account that ends, in whatever way, an event tells the other services.
func TestEveryWayInWhichAnAccountEndsTellsTheOtherServices(t *testing.T) {
	t.Parallel()
	walked := map[string]bool{}
	for _, way := range waysToEnd {
		walked[way.function] = true
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			end, n := way.prepare(b)
			before, told := b.accountIDs(), b.endedAccounts()
			end()
			after := b.accountIDs()
			gone := slices.DeleteFunc(before, func(account id.ID) bool { return slices.Contains(after, account) })
			if len(gone) != n {
				t.Fatalf("%d accounts have ended, want %d", len(gone), n)
			}
			named := b.endedAccounts()[len(told):]
			slices.SortFunc(named, func(a, b id.ID) int { return bytes.Compare(a[:], b[:]) })
			if !slices.Equal(named, gone) {
				t.Errorf("the events name the accounts %v, and %v have ended", named, gone)
			}
		})
	}
	if got, want := slices.Sorted(maps.Keys(walked)), functionsThatEndAccounts(t); !slices.Equal(got, want) {
		t.Errorf("accounts end in the functions %v, and the ways of this test are through %v", want, got)
	}
}

// accountIDs returns the ids of all accounts, sorted.
func (b *bench) accountIDs() []id.ID {
	b.Helper()
	found, err := pg.Values[id.ID](b.Context(), b.db, `SELECT id FROM accounts ORDER BY id`)
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// endedAccounts returns the accounts whose end an event in the outbox tells.
func (b *bench) endedAccounts() []id.ID {
	b.Helper()
	envelopes, err := pg.Values[[]byte](b.Context(), b.db, `SELECT envelope FROM outbox ORDER BY seq`)
	if err != nil {
		b.Fatal(err)
	}
	var ended []id.ID
	for _, text := range envelopes {
		var e events.Envelope
		var one events.AccountDeleted
		var many events.AccountsDeleted
		err := json.Unmarshal(text, &e)
		switch e.Type {
		case "AccountDeleted":
			err = json.Unmarshal(e.Data, &one)
			ended = append(ended, one.Account)
		case "AccountsDeleted":
			err = json.Unmarshal(e.Data, &many)
			ended = append(ended, many.Accounts...)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	return ended
}

// functionsThatEndAccounts reads the source: the functions of the service that call one of the store
// which, itself or by another, deletes accounts.
func functionsThatEndAccounts(t *testing.T) []string {
	t.Helper()
	ending := regexp.MustCompile(`DELETE FROM accounts\b|delete\w*\(ctx, "accounts"`)
	var inStore []string
	for found := 0; ; found = len(inStore) {
		inStore = functionsWith(t, "../store", ending)
		if len(inStore) == found {
			break
		}
		ending = regexp.MustCompile(ending.String() + `|\btx\.(` + strings.Join(inStore, "|") + `)\(`)
	}
	calls := regexp.MustCompile(`\btx\.(` + strings.Join(inStore, "|") + `)\(`)
	var names []string
	for _, folder := range rules {
		names = append(names, functionsWith(t, folder, calls)...)
	}
	slices.Sort(names)
	return names
}

// functionsWith returns the names of the functions of a package whose source matches, sorted.
func functionsWith(t *testing.T, folder string, pattern *regexp.Regexp) []string {
	t.Helper()
	sources, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			f, isFunction := declaration.(*ast.FuncDecl)
			if isFunction && pattern.Match(text[f.Pos()-file.FileStart:f.End()-file.FileStart]) {
				names = append(names, f.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
