package pkg_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/doorward/doorward/"

// The libraries that belong to one layer each.
var (
	web    = []string{"github.com/gofiber/fiber/v2", "github.com/valyala/fasthttp"}
	sql    = []string{"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgxpool", "github.com/pressly/goose/v3", "database/sql"}
	broker = []string{"github.com/segmentio/kafka-go", "github.com/redis/go-redis/v9"}
)

// parts are the packages of rules that a service has above its core, services/<name>, each with the parts
// that it may import. The core imports no part.
var parts = map[string][]string{
	module + "services/directory/agentconfig": {},
	module + "services/directory/agent":       {module + "services/directory/agentconfig"},
	module + "services/directory/provider":    {module + "services/directory/agentconfig"},
	module + "services/application/saml":      {},
}

// imports returns the packages of the services, of the gateway and of pkg, and all
// that they import: each with its own imports and, in Deps, those through others.
func imports(t *testing.T) map[string]listed {
	t.Helper()
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps", module+"services/...", module+"gateway/...", module+"pkg/...")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	found := map[string]listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		found[p.ImportPath] = p
	}
}

type listed struct {
	ImportPath    string
	Imports, Deps []string
}

// The layers of a service are cmd, app, rest, the rules and store, of which each
// imports those behind it alone.
func TestEachLayerImportsWhatIsItsOwn(t *testing.T) {
	seen := map[string]int{}
	for path, p := range imports(t) {
		layer, forbidden := layerOf(path)
		seen[layer]++
		for _, imported := range p.Imports {
			if forbidden(imported) {
				t.Errorf("%s (%s) imports %s", path, layer, imported)
			}
		}
	}
	for layer, least := range map[string]int{"rules": 10, "store": 6, "rest": 6, "service": 12, "contracts": 4, "gateway": 1} {
		if seen[layer] < least {
			t.Errorf("%d packages of the layer %s were looked at; there are at least %d", seen[layer], layer, least)
		}
	}
}

// layerOf returns the layer of a package, and which imports it may not have.
func layerOf(path string) (layer string, forbidden func(string) bool) {
	is := func(libraries ...[]string) func(string) bool {
		all := slices.Concat(libraries...)
		return func(imported string) bool { return slices.Contains(all, imported) }
	}
	service, inService := strings.CutPrefix(path, module+"services/")
	name, _, _ := strings.Cut(service, "/")
	switch {
	case isOfTests(path): // it may run other services
		return "tests", func(string) bool { return false }
	case inService && (service == name || parts[path] != nil):
		rules := is(web, sql, broker)
		return "rules", func(imported string) bool {
			isOtherPart := parts[imported] != nil && !slices.Contains(parts[path], imported)
			return rules(imported) || imported == module+"pkg/rest" || isOther(name, imported) || isOtherPart
		}
	case inService && strings.HasSuffix(service, "/store"):
		of, store := strings.TrimSuffix(service, "/store"), is(web, broker)
		return "store", func(imported string) bool {
			return store(imported) || imported == module+"pkg/rest" || imported == module+"services/"+of || isOther(of, imported)
		}
	case inService && strings.HasSuffix(service, "/rest"):
		of, rest := strings.TrimSuffix(service, "/rest"), is(sql, broker)
		return "rest", func(imported string) bool { return rest(imported) || isOther(of, imported) }
	case inService: // it calls the contract of another service, in pkg/api
		return "service", func(imported string) bool { return isOther(name, imported) }
	case strings.HasPrefix(path, module+"pkg/api/") && strings.HasSuffix(path, "api"):
		contracts := is(sql, broker)
		return "contracts", func(imported string) bool {
			return contracts(imported) || imported == module+"pkg/rest" || strings.HasPrefix(imported, module+"pkg/pg")
		}
	case strings.HasPrefix(path, module+"gateway"):
		gateway := is(sql)
		return "gateway", func(imported string) bool {
			return gateway(imported) || strings.HasPrefix(imported, module+"services/")
		}
	}
	return "other", func(string) bool { return false }
}

// No layer reaches a library of another one through whatever it imports.
func TestNoLayerReachesALibraryOfAnother(t *testing.T) {
	all := imports(t)
	fiber, drivers := web[:1], []string{"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgtype", "github.com/pressly/goose/v3"}
	for path, p := range all {
		var forbidden, reached []string
		switch layer, _ := layerOf(path); layer {
		case "contracts":
			forbidden, reached = slices.Concat(fiber, drivers), p.Deps
		case "gateway":
			forbidden, reached = drivers, p.Deps
		case "rules":
			service, _, _ := strings.Cut(strings.TrimPrefix(path, module+"services/"), "/")
			forbidden = slices.Concat(fiber, drivers)
			reached = reach(all, path, module+"services/"+service+"/store", path+"/store")
		case "store":
			forbidden, reached = fiber, p.Deps
		}
		for _, library := range forbidden {
			if slices.Contains(reached, library) {
				t.Errorf("%s reaches %s", path, library)
			}
		}
	}
}

// reach returns what a package imports, itself and through others, but not through
// the exceptions.
func reach(all map[string]listed, path string, exceptions ...string) []string {
	reached := []string{path}
	seen := map[string]bool{path: true}
	for _, exception := range exceptions {
		seen[exception] = true
	}
	for i := 0; i < len(reached); i++ {
		for _, imported := range all[reached[i]].Imports {
			if !seen[imported] {
				seen[imported] = true
				reached = append(reached, imported)
			}
		}
	}
	return reached
}

// isOfTests reports whether a package is for tests alone, such as directorytest.
func isOfTests(path string) bool {
	return strings.HasPrefix(path, module) && strings.HasSuffix(path, "test")
}

// A module of a service requires other services for its tests. What runs in a deployment reaches none of
// them, nor a package of tests.
func TestTheProductReachesNoPackageOfTests(t *testing.T) {
	for path, p := range imports(t) {
		for _, imported := range p.Imports {
			if strings.HasPrefix(path, module) && !isOfTests(path) && isOfTests(imported) {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}

// isOther reports whether a package belongs to another service.
func isOther(service, imported string) bool {
	return strings.HasPrefix(imported, module+"services/") && !strings.HasPrefix(imported+"/", module+"services/"+service+"/")
}

// The least packages reach no server and no database, so that everything else can
// use them.
func TestTheLeastPackagesReachNoServerAndNoDatabase(t *testing.T) {
	all := imports(t)
	for _, name := range []string{"apierr", "caller", "customdata", "field", "href", "id", "list", "macro", "mappingrule", "saml", "secure", "words"} {
		p, ok := all[module+"pkg/"+name]
		if !ok {
			t.Errorf("there is no pkg/%s", name)
		}
		for _, library := range slices.Concat(web, sql[:3], broker) {
			if slices.Contains(p.Deps, library) {
				t.Errorf("pkg/%s reaches %s", name, library)
			}
		}
	}
}

// mostLines is the number of lines, without tests and generated files, that one package may have: beyond it, it
// usually holds two nouns.
const mostLines = 3500

func TestNoPackageIsTooLarge(t *testing.T) {
	lines := map[string]int{}
	walk(t, func(path, text string) {
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".gen.go") {
			lines[filepath.Dir(path)] += strings.Count(text, "\n")
		}
	}, ".go")
	for folder, n := range lines {
		if n > mostLines {
			t.Errorf("the package %s has %d lines; move a noun out of it, %d are the most", folder, n, mostLines)
		}
	}
}
