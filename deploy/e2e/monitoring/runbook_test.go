package monitoring_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/pg/private"
)

// statement is a query that a runbook has in its text.
var statement = regexp.MustCompile("`(SELECT [^`]+)`")

// runRunbooks runs the commands of all runbooks, as their pages have them, on the
// running product. Left out are those of kubectl, whose names deploy/grafana compares
// with the chart, and of dead letters, which need a broker outside of standalone;
// pkg/events/outbox tests what they do.
func runRunbooks(t *testing.T, root, bin, prometheus string, deployment *harness.Standalone) {
	t.Helper()
	database, err := private.Running(filepath.Join(deployment.DataDir(), "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "DOORWARD_") // doctor refuses those of the tests
	})
	environment = append(environment, "DOORWARD_DATA_DIR="+deployment.DataDir(), // where doorward finds a standalone
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	pages, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, page := range pages {
		if filepath.Base(page) == "README.md" {
			continue // whose commands need a cluster
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var commands []string
		if _, block, has := strings.Cut(string(text), "```\n"); has {
			block, _, _ = strings.Cut(block, "\n```")
			commands = strings.Split(block, "\n")
		}
		for _, found := range statement.FindAllStringSubmatch(string(text), -1) {
			commands = append(commands, `psql "$DATABASE_URL" --command "`+strings.ReplaceAll(found[1], "PID", "0")+`"`)
		}
		for _, command := range commands {
			program, _, _ := strings.Cut(command, " ")
			if counts[program]++; program == "kubectl" || strings.HasPrefix(command, "doorward deadletters") {
				continue
			}
			run := exec.CommandContext(t.Context(), "bash", "-euc", strings.ReplaceAll(command, "http://prometheus:9090", prometheus))
			run.Env, run.Dir = slices.Clone(environment), t.TempDir()
			if program == "psql" {
				run.Env = append(run.Env, "DATABASE_URL="+database)
			}
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", filepath.Base(page), command, err, out)
			}
		}
	}
	t.Logf("commands of runbooks: %v", counts)
	for _, program := range []string{"promtool", "psql", "doorward", "kubectl"} {
		if counts[program] == 0 {
			t.Errorf("no runbook has a command of %s", program)
		}
	}
}
