package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func TestTheDashboardsAreCurrent(t *testing.T) {
	made := files()
	found, err := filepath.Glob("*.json")
	if err != nil || len(found) != len(made) {
		t.Fatalf("%v, %v; want %d files", found, err, len(made))
	}
	for name, want := range made {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not current, %v; run: go generate ./deploy/grafana", name, err)
		}
	}
}

// Each dashboard, its panels and their queries are what Grafana's own schema describes:
// nothing is missing, and nothing is unknown.
func TestTheDashboardsFitGrafanasSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for name, content := range files() {
		var read grafana.Dashboard //nolint:staticcheck // deprecated for the second schema, which only the newest Grafana reads
		err := read.UnmarshalJSONStrict(content)
		var faults cog.BuildErrors // also without any
		if !errors.As(err, &faults) || len(faults) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Latency is measured without the long polls of directory agents: whatever selects them
// names a route that there is.
func TestTheRouteOfLongPollsIsThatOfTheDirectory(t *testing.T) {
	route := regexp.MustCompile(`"(/v1/[^"]+)"`).FindStringSubmatch(withoutLongPolls)[1]
	routes := text(t, "../../services/directory/rest/routes.go")
	if !strings.Contains(routes, `v1.Get("`+strings.TrimPrefix(route, "/v1")+`", agentChecks(agents))`) {
		t.Errorf("the long poll is not at %s", route)
	}
	rules := text(t, "../helm/doorward/alerts.yml")
	if n := strings.Count(rules, `_bucket{le=~"1(\\.0)?",route!="`+route+`"}`); n != 4 {
		t.Errorf("%d rules of slow requests leave long polls out, want 4", n)
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	for _, d := range dashboards {
		taken := map[[2]int]int{}
		for _, p := range d.model()["panels"].([]object) {
			at := p["gridPos"].(object)
			for x := range at["w"].(int) {
				for y := range at["h"].(int) {
					cell := [2]int{at["x"].(int) + x, at["y"].(int) + y}
					if other, is := taken[cell]; is || cell[0] >= columns {
						t.Fatalf("%s: panel %v lies over panel %d, or outside", d.name, p["id"], other)
					}
					taken[cell] = p["id"].(int)
				}
			}
		}
	}
}

// A panel says what it means. One whose value an alert looks at shows where the alert fires, and links to its page.
func TestPanelsSayWhatTheyMeanAndLinkToTheRunbook(t *testing.T) {
	rules := text(t, "../helm/doorward/alerts.yml")
	linked := map[string]bool{}
	for _, d := range dashboards {
		for _, r := range d.rows {
			for _, p := range r.panels {
				if p.description == "" {
					t.Errorf("%s, %s has no description", d.name, p.title)
				}
				if p.runbook == "" {
					continue
				}
				linked[p.runbook] = true
				if p.threshold <= 0 || !strings.Contains(rules, runbooks+p.runbook+"\n") {
					t.Errorf("%s, %s: no threshold, or no alert has the page %s", d.name, p.title, p.runbook)
				}
				content := string(files()[d.name+".json"])
				if !strings.Contains(content, `"url": "`+runbooks+p.runbook+`"`) {
					t.Errorf("%s, %s does not link to %s", d.name, p.title, p.runbook)
				}
			}
		}
	}
	for _, alert := range regexp.MustCompile(`runbook_url: \S+/(\S+)\n`).FindAllStringSubmatch(rules, -1) {
		if !linked[alert[1]] {
			t.Errorf("no panel links to %s", alert[1])
		}
	}
}

// A cluster may have several releases: each series of a query is one of those that are chosen.
func TestQueriesAreOfTheChosenReleases(t *testing.T) {
	names := regexp.MustCompile(`\b(?:doorward|process|go|kube)_\w+|\bdoorward:\w+:\w+|\bup\b`)
	for _, d := range dashboards {
		for _, r := range d.rows {
			for _, p := range r.panels {
				for _, q := range p.queries {
					expression := scoped(q.expression)
					chosen := strings.Count(expression, `namespace=~"$namespace",`)
					// Of kube-state-metrics one of two that are divided selects.
					if series := names.FindAllString(expression, -1); p.kind != "logs" && chosen != len(series) &&
						!strings.Contains(expression, "kube_") {
						t.Errorf("%s, %s: %d of %d series are of the chosen releases: %s", d.name, p.title, chosen, len(series), expression)
					}
				}
			}
		}
		content := string(files()[d.name+".json"])
		for _, variable := range []string{"namespace", "release"} {
			if !strings.Contains(content, `"name": "`+variable+`"`) {
				t.Errorf("%s has no variable %s", d.name, variable)
			}
		}
	}
}

func TestEachAlertHasATestAndARunbook(t *testing.T) {
	rules, err := os.ReadFile("../helm/doorward/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../prometheus/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`(?s)- alert: (\w+)\n.*?runbook_url: \S+/docs/runbooks/(\S+)\n`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) != strings.Count(string(rules), "- alert: ") || len(alerts) == 0 {
		t.Fatalf("%d alerts have a runbook", len(alerts))
	}
	for _, alert := range alerts {
		if strings.Count(string(tests), "alertname: "+alert[1]+"\n") < 2 {
			t.Errorf("%s is not tried both ways", alert[1])
		}
		page, err := os.ReadFile("../../docs/runbooks/" + alert[2])
		if err != nil {
			t.Error(err)
			continue
		}
		for _, heading := range []string{"What it means", "Three commands", "What to do", "How to know that it is over"} {
			if !strings.Contains(string(page), "\n## "+heading+"\n") {
				t.Errorf("%s lacks %q", alert[2], heading)
			}
		}
		_, commands, _ := strings.Cut(string(page), "```\n")
		if commands, _, _ = strings.Cut(commands, "\n```"); strings.Count(commands, "\n") != 2 {
			t.Errorf("%s has not three commands:\n%s", alert[2], commands)
		}
	}
}
