package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	podsecurity "k8s.io/pod-security-admission/api"
	podpolicy "k8s.io/pod-security-admission/policy"
)

var processes = []string{"application", "directory", "gateway", "idsite", "mfa", "notification", "oauth"}

// each runs a test for every set of values.
func each(t *testing.T, test func(t *testing.T, objects []Object)) {
	t.Helper()
	files, err := filepath.Glob(Values)
	if err != nil || len(files) != 6 {
		t.Fatalf("%d sets of values, %v; want six", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			objects, err := Render(file)
			if err != nil {
				t.Fatal(err)
			}
			test(t, objects)
		})
	}
}

// of returns the objects of a type by their names.
func of[O Object](objects []Object) map[string]O {
	found := map[string]O{}
	for _, object := range objects {
		if o, ok := object.(O); ok {
			found[strings.TrimPrefix(o.GetName(), Release+"-")] = o
		}
	}
	return found
}

func names[O Object](objects []Object) []string { return slices.Sorted(maps.Keys(of[O](objects))) }

// pods returns the templates of all Pods by component, and those of the Jobs.
func pods(objects []Object) map[string]core.PodTemplateSpec {
	found := map[string]core.PodTemplateSpec{}
	for name, deployment := range of[*apps.Deployment](objects) {
		found[name] = deployment.Spec.Template
	}
	for name, job := range of[*batch.Job](objects) {
		found[name] = job.Spec.Template
	}
	for _, pod := range of[*core.Pod](objects) {
		found[pod.Labels[component]] = core.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	}
	return found
}

func TestHelmLintFindsNothing(t *testing.T) {
	files, err := filepath.Glob(Values)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range lint.All(Dir, values, "identity", true).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %s", file, message)
			}
		}
	}
}

func TestEveryObjectHasANameOfItsOwn(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		seen := map[string]bool{}
		for _, object := range objects {
			name := fmt.Sprintf("%T %s", object, object.GetName())
			if seen[name] || len(validation.IsDNS1035Label(object.GetName())) > 0 {
				t.Errorf("%s is there twice, or is no name", name)
			}
			seen[name] = true
			if object.GetLabels()["app.kubernetes.io/instance"] != Release {
				t.Errorf("%s has not the label of its release", name)
			}
		}
		if got := names[*apps.Deployment](objects); !slices.Equal(got, processes) {
			t.Errorf("deployments of %v, want %v", got, processes)
		}
	})
}

func TestWhatSelectsPodsSelectsThoseOfItsProcess(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		templates := pods(objects)
		selected := func(selector map[string]string) (found []string) {
			for name, template := range templates {
				if labels.SelectorFromSet(selector).Matches(labels.Set(template.Labels)) {
					found = append(found, name)
				}
			}
			return found
		}
		selectors := map[string]map[string]string{}
		for name, o := range of[*apps.Deployment](objects) {
			selectors["Deployment "+name] = o.Spec.Selector.MatchLabels
			for i, constraint := range o.Spec.Template.Spec.TopologySpreadConstraints {
				selectors[fmt.Sprintf("constraint%d %s", i, name)] = constraint.LabelSelector.MatchLabels
			}
		}
		for name, o := range of[*core.Service](objects) {
			if name != "ops" {
				selectors["Service "+name] = o.Spec.Selector
			}
		}
		for name, o := range of[*policy.PodDisruptionBudget](objects) {
			selectors["PodDisruptionBudget "+name] = o.Spec.Selector.MatchLabels
		}
		for of, selector := range selectors {
			_, process, _ := strings.Cut(of, " ")
			if got := selected(selector); !slices.Equal(got, []string{process}) {
				t.Errorf("%s selects %v", of, got)
			}
		}
	})
}

func TestPodsMeetTheRestrictedLevel(t *testing.T) {
	evaluator, err := podpolicy.NewEvaluator(podpolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	each(t, func(t *testing.T, objects []Object) {
		for name, pod := range pods(objects) {
			result := podpolicy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
			if !result.Allowed {
				t.Errorf("%s: %s", name, result.ForbiddenDetail())
			}
			if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
				t.Errorf("%s mounts a token of the Kubernetes API", name)
			}
			for _, container := range pod.Spec.Containers {
				if root := container.SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
					t.Errorf("%s can write to its root file system", name)
				}
				if len(container.SecurityContext.Capabilities.Add) > 0 {
					t.Errorf("%s has capabilities", name)
				}
				if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s lacks requests or a limit: %v", name, container.Resources)
				}
			}
		}
	})
}

func TestAnUpdateTakesNoPodBeforeAnotherIsReady(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		for name, deployment := range of[*apps.Deployment](objects) {
			update := deployment.Spec.Strategy.RollingUpdate
			if update.MaxUnavailable.IntValue() != 0 || update.MaxSurge.IntValue() < 1 {
				t.Errorf("%s: %+v", name, update)
			}
			container := deployment.Spec.Template.Spec.Containers[0]
			if probe := container.ReadinessProbe; probe == nil || probe.HTTPGet.Path != "/readyz" || probe.HTTPGet.Port.String() != "ops" {
				t.Errorf("%s: %+v", name, probe)
			}
			// Those restart a process, which waits for PostgreSQL: /readyz fails meanwhile.
			for _, probe := range []*core.Probe{container.StartupProbe, container.LivenessProbe} {
				if probe == nil || probe.HTTPGet.Path != "/healthz" || probe.HTTPGet.Port.String() != "ops" {
					t.Errorf("%s: %+v", name, probe)
				}
			}
			seconds := func(variable string) (n int64) {
				for _, v := range container.Env {
					if v.Name == variable {
						if _, err := fmt.Sscanf(v.Value, "%ds", &n); err != nil {
							t.Errorf("%s: %s is %q", name, variable, v.Value)
						}
					}
				}
				return n
			}
			drain, stop := seconds("DOORWARD_DRAIN"), seconds("DOORWARD_STOP_TIMEOUT")
			if drain < 10 || *deployment.Spec.Template.Spec.TerminationGracePeriodSeconds <= drain+stop {
				t.Errorf("%s drains for %d s, stops within %d s and is killed after %d s", name, drain, stop,
					*deployment.Spec.Template.Spec.TerminationGracePeriodSeconds)
			}
		}
	})
}

func TestReplicasScaleSpreadAndHaveABudget(t *testing.T) {
	objects, err := Render("testdata/production.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := names[*policy.PodDisruptionBudget](objects); !slices.Equal(got, processes) {
		t.Errorf("budgets for %v", got)
	}
	scalers := of[*autoscaling.HorizontalPodAutoscaler](objects)
	for name, deployment := range of[*apps.Deployment](objects) {
		var keys []string
		for _, constraint := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
			keys = append(keys, constraint.TopologyKey)
		}
		if !slices.Equal(keys, []string{core.LabelTopologyZone, core.LabelHostname}) {
			t.Errorf("%s is spread over %v", name, keys)
		}
		scaler := scalers[name]
		if scaler == nil || deployment.Spec.Replicas == nil || *deployment.Spec.Replicas != *scaler.Spec.MinReplicas {
			t.Errorf("%s has no autoscaler, or not its least number of replicas", name)
			continue
		}
		metric := "cpu"
		if pods := scaler.Spec.Metrics[0].Pods; pods != nil {
			metric = pods.Metric.Name
		}
		want := map[string]string{"gateway": "doorward_gateway_requests_in_flight", "notification": "doorward_events_lag"}[name]
		if metric != want && (want != "" || metric != "cpu") || *scaler.Spec.MinReplicas < 2 {
			t.Errorf("%s follows %s from %d replicas on", name, metric, *scaler.Spec.MinReplicas)
		}
	}
}

func TestMigrationsAreAHookBeforeTheRelease(t *testing.T) {
	objects, err := Render("testdata/production.yaml")
	if err != nil {
		t.Fatal(err)
	}
	job := of[*batch.Job](objects)["migrate"]
	if job == nil || job.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" {
		t.Fatalf("%+v", job)
	}
	container := job.Spec.Template.Spec.Containers[0]
	if !slices.Equal(container.Args, []string{"migrate"}) || !strings.Contains(container.Image, "/doorward:") {
		t.Errorf("%s %v", container.Image, container.Args)
	}
	account := of[*core.ServiceAccount](objects)[strings.TrimPrefix(job.Spec.Template.Spec.ServiceAccountName, Release+"-")]
	if account == nil || account.Annotations["helm.sh/hook-weight"] != "-10" {
		t.Errorf("the hook runs under %q, which is not there before it", job.Spec.Template.Spec.ServiceAccountName)
	}
}

func TestTheToolboxIsAJobOnlyWhereItHasArguments(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		job := of[*batch.Job](objects)["toolbox"]
		if !strings.HasSuffix(t.Name(), "production") {
			if job != nil {
				t.Error("a release has a toolbox by default")
			}
			return
		}
		if job == nil || len(job.Annotations) > 0 {
			t.Fatalf("%+v", job)
		}
		container := job.Spec.Template.Spec.Containers[0]
		if want := []string{"deadletters", "retry", "--group", "doorward.notification"}; !slices.Equal(container.Args, want) ||
			!strings.Contains(container.Image, "/doorward:") {
			t.Errorf("%s %v", container.Image, container.Args)
		}
		if !slices.Contains(container.Env, core.EnvVar{Name: "DOORWARD_OPERATOR", Value: "jo"}) {
			t.Errorf("the toolbox does not know its operator: %+v", container.Env)
		}
		if of[*core.ServiceAccount](objects)["toolbox"] == nil || job.Spec.Template.Spec.ServiceAccountName != Release+"-toolbox" {
			t.Errorf("the toolbox runs under %q", job.Spec.Template.Spec.ServiceAccountName)
		}
		volumes := job.Spec.Template.Spec.Volumes
		if work := volumes[len(volumes)-1]; work.Name != "work" || work.PersistentVolumeClaim == nil || work.PersistentVolumeClaim.ClaimName != "exports" {
			t.Errorf("the volume of the toolbox is %+v", work)
		}
	})
	page, err := os.ReadFile("../../docs/runbooks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--show-only templates/toolbox.yaml", `--set-string "toolbox.args={`, `--set-string "toolbox.operator=$USER"`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page of the runbooks does not say %s", want)
		}
	}
}

// An installer reads what a cluster and PostgreSQL must have.
func TestTheReadmeSaysWhatTheDefaultsTake(t *testing.T) {
	objects, err := Render("testdata/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cpu, memory resource.Quantity
	for _, deployment := range of[*apps.Deployment](objects) {
		requests := deployment.Spec.Template.Spec.Containers[0].Resources.Requests
		for range *deployment.Spec.Replicas {
			cpu.Add(*requests.Cpu())
			memory.Add(*requests.Memory())
		}
	}
	page, err := os.ReadFile(Dir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("request %.1f processors and %.1f GiB", cpu.AsApproximateFloat64(), memory.AsApproximateFloat64()/(1<<30))
	if !strings.Contains(string(page), want) {
		t.Errorf("README.md does not say %q", want)
	}
	values, err := chartutil.ReadValues([]byte("baseUrl: https://id.example.com/v1\nkafka: { brokers: [\"kafka:9092\"] }\ndatabase: { maxConnections: 1 }"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = render(values)
	most := regexp.MustCompile(`up to (\d+) connections`).FindStringSubmatch(fmt.Sprint(err))
	if most == nil || !strings.Contains(string(page), "by default "+most[1]) {
		t.Errorf("README.md does not say how many connections the defaults take: %v", err)
	}
}

func TestImagesAreOfAReleaseOrADigest(t *testing.T) {
	digests := 0
	each(t, func(t *testing.T, objects []Object) {
		for name, deployment := range of[*apps.Deployment](objects) {
			image := deployment.Spec.Template.Spec.Containers[0].Image
			_, tag, _ := strings.Cut(path.Base(image), ":")
			if tag == "" || tag == "latest" {
				t.Errorf("%s runs %s", name, image)
			}
			if strings.HasSuffix(image, "/gateway@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef") {
				digests++
			}
		}
	})
	if digests != 1 {
		t.Errorf("%d gateways run by their digest, want that of one set of values", digests)
	}
}

func TestSecretsAreReferencesOnly(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		for name, pod := range pods(objects) {
			mounted := map[string]bool{}
			for _, volume := range pod.Spec.Volumes {
				if volume.Projected == nil {
					continue
				}
				for _, source := range volume.Projected.Sources {
					for _, item := range source.Secret.Items {
						mounted["/run/secrets/doorward/"+item.Path] = true
					}
				}
			}
			for _, variable := range pod.Spec.Containers[0].Env {
				if strings.HasSuffix(variable.Name, "_FILE") != mounted[variable.Value] {
					t.Errorf("%s: %s=%s is no mounted secret, or no file", name, variable.Name, variable.Value)
				}
			}
			if len(mounted) == 0 {
				t.Errorf("%s has no secret", name)
			}
		}
	})
}

func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	good := "baseUrl: https://id.example.com/v1\nkafka: { brokers: [\"kafka:9092\"] }\n"
	for bad, says := range map[string]string{
		"kafka: { brokers: [\"kafka:9092\"] }":                                                           "baseUrl",
		"baseUrl: https://id.example.com/v1":                                                             "kafka.brokers is empty",
		"baseUrl: http://id.example.com/v1":                                                              "baseUrl",
		good + "replicas: 3":                                                                             "replicas",
		good + "tls: { mode: proxy }":                                                                    "trustedHops",
		good + "tls: { mode: none }":                                                                     "mode",
		good + "sms: { provider: twilio }":                                                               "accountSid",
		good + "secrets: { masterKey: { name: \"\" } }":                                                  "masterKey",
		good + "processes: { billing: { replicas: 2 } }":                                                 "billing",
		good + "processes: { gateway: { env: { lower: x } } }":                                           "lower",
		good + "processes: { oauth: { env: { DOORWARD_SMTP_HELO: x } } }":                                "processes.oauth.env.DOORWARD_SMTP_HELO",
		good + "database: { maxConnections: 589 }":                                                       "up to 590 connections to PostgreSQL, more than database.maxConnections, 589: application 11 x 10",
		good + "database: { maxConnections: 590 }\nprocesses: { oauth: { poolSize: 9 } }":                "oauth 11 x 11",
		good + "processes: { oauth: { poolSize: 3 } }":                                                   "poolSize",
		good + "processes: { oauth: { poolSize: null } }":                                                "poolSize",
		good + "processes: { gateway: { poolSize: 8 } }":                                                 "gateway",
		good + "processes: { oauth: { env: { DOORWARD_DATABASE_POOL_SIZE: 20 } } }":                      "set processes.oauth.poolSize",
		good + "ingress: { enabled: true }":                                                              "set tls.mode to proxy",
		good + "httpRoute: { enabled: true }":                                                            "parentRefs",
		good + "processes: { oauth: { replicas: 20 } }":                                                  "less than its 20 replicas",
		good + "processes: { notification: { autoscaling: { max: 7 } } }":                                "more than kafka.partitions",
		good + "processes: { mfa: { resources: { limits: { memory: lots } } } }":                         "memory",
		good + "database: { services: { gateway: { name: a, key: b } } }":                                "gateway",
		good + "redis: { networks: [everywhere] }":                                                       "networks",
		good + "networkPolicy: { dns: { to: [] } }":                                                      "dns",
		good + "networkPolicy: { dns: { ports: [domain] } }":                                             "dns",
		good + "toolbox: { args: doctor }":                                                               "toolbox",
		good + "monitoring: { tracesEndpoint: collector }":                                               "tracesEndpoint",
		good + "image: { digests: { oauth: latest } }":                                                   "digests",
		good + "image: { pullPolicy: Sometimes }":                                                        "pullPolicy",
		good + "service: { type: ExternalName }":                                                         "type",
		"baseUrl: https://id.example.com/v1\nkafka: { brokers: [\"kafka:9092\"], mechanism: GSSAPI }":    "mechanism",
		"baseUrl: https://id.example.com/v1\nkafka: { brokers: [\"kafka:9092\"], passwords: \"plain\" }": "passwords",
	} {
		values, err := chartutil.ReadValues([]byte(bad))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\nis refused with %v, which does not say %q", bad, err, says)
		}
	}
}
