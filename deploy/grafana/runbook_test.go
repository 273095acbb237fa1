package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	greped       = regexp.MustCompile(`grep (-i )?'?([^'|]+?)'? *(?:\||$)`)
	either       = regexp.MustCompile(` -e '([^']+)'`)
	deployed     = regexp.MustCompile(`(?:deployment/doorward-|/component=)(\w+)`)
	selected     = regexp.MustCompile(`--selector ([^= ]+)=(\S+)`)
	doorward     = regexp.MustCompile(`^doorward (\w+)(?: (\w+))?(.*)$`)
	flagged      = regexp.MustCompile(`--([a-z-]+)`)
	commandNames = []string{"promtool query instant http://prometheus:9090 ", "kubectl --namespace identity ", "psql \"$DATABASE_URL\" --command ", "doorward "}
)

// Each command of a runbook is one of a few programs, and the processes, subcommands,
// flags and log messages that it names exist. That the queries find data is a test
// of deploy/e2e/monitoring.
func TestTheCommandsOfRunbooksNameWhatExists(t *testing.T) {
	values := text(t, "../helm/doorward/values.yaml")
	labels := text(t, "../helm/doorward/templates/_process.tpl")
	program := text(t, "../standalone/cmd/doorward/main.go")
	var messages strings.Builder
	for _, dir := range []string{"../../gateway", "../../pkg", "../../services"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				messages.WriteString(text(t, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The message about a delivery is put together from its kind and its result.
	if !strings.Contains(messages.String(), `c.name+" "+string(result)`) {
		t.Error("the messages about deliveries are other ones")
	}
	for _, kind := range []string{"mail", "SMS"} {
		if !strings.Contains(messages.String(), `name: "`+kind+`"`) {
			t.Errorf("no delivery is of the kind %s", kind)
		}
		messages.WriteString("\n" + kind + " failed\n" + kind + " postponed\n")
	}
	for page, commands := range commandsOfRunbooks(t) {
		for _, command := range commands {
			known := false
			for _, name := range commandNames {
				known = known || strings.HasPrefix(command, name)
			}
			if !known {
				t.Errorf("%s: unknown program: %s", page, command)
			}
			for _, name := range deployed.FindAllStringSubmatch(command, -1) {
				if !strings.Contains(values, "\n  "+name[1]+":\n    replicas:") {
					t.Errorf("%s: the chart has no process %s", page, name[1])
				}
			}
			for _, label := range selected.FindAllStringSubmatch(command, -1) {
				value := label[2]
				if strings.HasSuffix(label[1], "/component") {
					value = "{{ .process }}"
				}
				if !strings.Contains(labels, label[1]+": "+value+"\n") {
					t.Errorf("%s: the chart's objects have no label %s=%s", page, label[1], label[2])
				}
			}
			// kubectl shows ten lines of each pod that a selector finds, by default.
			if strings.Contains(command, " logs --selector ") && !strings.Contains(command, " --tail -1 ") {
				t.Errorf("%s: shows ten lines of each pod only: %s", page, command)
			}
			if found := greped.FindStringSubmatch(command); len(found) > 2 && !strings.HasPrefix(found[2], `"level":`) {
				in, what := messages.String(), found[2]
				if found[1] != "" {
					in, what = strings.ToLower(in), strings.ToLower(what)
				}
				if !strings.Contains(in, what) {
					t.Errorf("%s: no log message has %q", page, what)
				}
			}
			for _, what := range either.FindAllStringSubmatch(command, -1) {
				if !strings.Contains(messages.String(), what[1]) {
					t.Errorf("%s: no log message has %q", page, what[1])
				}
			}
			if found := doorward.FindStringSubmatch(command); found != nil {
				for _, verb := range found[1:3] {
					if verb != "" && !strings.Contains(program, `Use: "`+verb+`"`) && !strings.Contains(program, `add("`+verb+`"`) {
						t.Errorf("%s: doorward has no %s", page, verb)
					}
				}
				for _, flag := range flagged.FindAllStringSubmatch(found[3], -1) {
					if !strings.Contains(program, `"`+flag[1]+`"`) {
						t.Errorf("%s: doorward has no flag --%s", page, flag[1])
					}
				}
			}
		}
	}
}

// commandsOfRunbooks returns the commands of each page.
func commandsOfRunbooks(t *testing.T) map[string][]string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d runbooks, %v", len(pages), err)
	}
	found := map[string][]string{}
	for _, page := range pages {
		if filepath.Base(page) == "README.md" {
			continue // whose commands prepare those of the others
		}
		_, commands, has := strings.Cut(text(t, page), "```\n")
		if commands, _, _ = strings.Cut(commands, "\n```"); has {
			found[filepath.Base(page)] = strings.Split(commands, "\n")
		}
	}
	return found
}

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
