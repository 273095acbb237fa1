package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	strict "sigs.k8s.io/yaml"
)

// alerts reads the file that make alerts tests.
func alerts(t *testing.T) (content string, rules monitoring.PrometheusRuleSpec) {
	t.Helper()
	file, err := os.ReadFile(Dir + "/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := strict.UnmarshalStrict(file, &rules); err != nil {
		t.Fatal(err)
	}
	return string(file), rules
}

func TestTheRulesAreThoseOfTheFileOfAlerts(t *testing.T) {
	_, want := alerts(t)
	found := 0
	each(t, func(t *testing.T, objects []Object) {
		for name, rule := range of[*monitoring.PrometheusRule](objects) {
			found++
			monitor := of[*monitoring.ServiceMonitor](objects)[name]
			if !reflect.DeepEqual(rule.Spec, want) || monitor == nil || !reflect.DeepEqual(rule.Labels, monitor.Labels) {
				t.Errorf("%s has other rules, or other labels than its ServiceMonitor: %v", name, rule.Labels)
			}
		}
	})
	if found != 3 {
		t.Errorf("%d sets of values have rules, want the three that turn them on", found)
	}
}

func TestAPackagedChartHasTheAlerts(t *testing.T) {
	directory, err := loader.Load(Dir)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := chartutil.Save(directory, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := loader.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	content, _ := alerts(t)
	for _, file := range packaged.Files {
		if file.Name == "alerts.yml" && string(file.Data) == content {
			return
		}
	}
	t.Error("it does not")
}

// Alerts and dashboards tell releases apart by this label.
func TestSeriesHaveTheLabelOfTheirRelease(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		for name, monitor := range of[*monitoring.ServiceMonitor](objects) {
			relabelings := monitor.Spec.Endpoints[0].RelabelConfigs
			if !slices.ContainsFunc(relabelings, func(c monitoring.RelabelConfig) bool {
				return c.TargetLabel == "release" && slices.Equal(c.SourceLabels, []monitoring.LabelName{"__meta_kubernetes_pod_label_app_kubernetes_io_instance"})
			}) {
				t.Errorf("%s makes no label of the release: %+v", name, relabelings)
			}
		}
	})
	content, _ := alerts(t)
	for _, by := range regexp.MustCompile(`\b(?:sum|max|min|count|group)(?: by \(([^)]*)\) )?\(`).FindAllStringSubmatch(content, -1) {
		if !strings.HasPrefix(by[1], "namespace, ") {
			t.Errorf("a rule of alerts.yml mixes releases: %s", by[0])
		}
	}
}

// The Prometheus Operator names a job after the Service, which has the name of the
// release in it; alerts select by the job.
func TestTheJobIsWhatAlertsSelect(t *testing.T) {
	content, _ := alerts(t)
	selected := regexp.MustCompile(`up\{job=~"([^"]+)"\}`).FindStringSubmatch(content)
	if selected == nil {
		t.Fatal("no alert selects a job")
	}
	objects, err := Render("testdata/production.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, monitor := range of[*monitoring.ServiceMonitor](objects) {
		relabelings := monitor.Spec.Endpoints[0].RelabelConfigs
		i := slices.IndexFunc(relabelings, func(c monitoring.RelabelConfig) bool { return c.TargetLabel == "job" })
		if i < 0 || len(relabelings[i].SourceLabels) > 0 || relabelings[i].Replacement == nil ||
			!regexp.MustCompile("^(?:"+selected[1]+")$").MatchString(*relabelings[i].Replacement) {
			t.Errorf("the ServiceMonitor makes no job that matches %q: %+v", selected[1], relabelings)
		}
		return
	}
	t.Error("there is no ServiceMonitor")
}
