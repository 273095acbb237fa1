package main

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "write variables.yaml of the chart")

// cluster is one with some objects, in which templates look them up.
type cluster struct{ client dynamic.Interface }

func newCluster(objects ...runtime.Object) cluster {
	return cluster{fake.NewSimpleDynamicClient(scheme.Scheme, objects...)}
}

// GetClientFor returns the client for a kind.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	return c.client.Resource(version.WithResource(strings.ToLower(kind) + "s")), true, err
}

// in renders a file of values in a cluster.
func in(t *testing.T, c cluster, file string) []Object {
	t.Helper()
	values, err := chartutil.ReadValuesFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files, err := renderFiles(Release, values, c)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decodeAll(files)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func named(name string) meta.ObjectMeta { return meta.ObjectMeta{Name: name, Namespace: "identity"} }

// The patch of an upgrade, or of a rollback, that turns autoscaling on would else set one replica.
func TestAutoscalingKeepsTheReplicasThatRun(t *testing.T) {
	seven, one := int32(7), int32(1)
	c := newCluster(&apps.Deployment{ObjectMeta: named("doorward-oauth"), Spec: apps.DeploymentSpec{Replicas: &seven}},
		&apps.Deployment{ObjectMeta: named("doorward-mfa"), Spec: apps.DeploymentSpec{Replicas: &one}})
	for file, want := range map[string]map[string]int32{
		"testdata/production.yaml": {"oauth": 7, "mfa": 2, "idsite": 2},
		"testdata/small.yaml":      {"oauth": 1, "mfa": 1},
	} {
		deployments := of[*apps.Deployment](in(t, c, file))
		for process, replicas := range want {
			if got := deployments[process].Spec.Replicas; got == nil || *got != replicas {
				t.Errorf("%s: %s has %v replicas, want %d", file, process, got, replicas)
			}
		}
	}
}

func TestAChangedSecretRestartsTheProcessesThatReadIt(t *testing.T) {
	checksums := func(change func(secrets map[string][]byte)) map[string]string {
		data := map[string][]byte{"internal-secret": []byte("i"), "master-key": []byte("m"), "database-url": []byte("d"), "redis-url": []byte("r"), "smtp-url": []byte("s")}
		change(data)
		certificate := &core.Secret{ObjectMeta: named("doorward-tls"), Data: map[string][]byte{"tls.crt": data["certificate"]}}
		c := newCluster(&core.Secret{ObjectMeta: named("doorward"), Data: data}, certificate)
		found := map[string]string{}
		for name, deployment := range of[*apps.Deployment](in(t, c, "testdata/minimal.yaml")) {
			found[name] = deployment.Spec.Template.Annotations["doorward/secrets"]
		}
		return found
	}
	before := checksums(func(map[string][]byte) {})
	services := slices.DeleteFunc(slices.Clone(processes), func(p string) bool { return p == "gateway" })
	for key, want := range map[string][]string{
		"internal-secret": processes, "master-key": services, "database-url": services,
		"redis-url": {"gateway"}, "smtp-url": {"notification"}, "certificate": nil,
	} {
		var restarted []string
		for process, checksum := range checksums(func(data map[string][]byte) { data[key] = []byte("changed") }) {
			if checksum != before[process] {
				restarted = append(restarted, process)
			}
		}
		slices.Sort(restarted)
		if !slices.Equal(restarted, want) {
			t.Errorf("a change of %s restarts %v, want %v", key, restarted, want)
		}
	}
}

func TestAnUninstallLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		for _, object := range objects {
			annotations := object.GetAnnotations()
			if annotations["helm.sh/hook"] != "" && !strings.Contains(annotations["helm.sh/hook-delete-policy"], "hook-succeeded") {
				t.Errorf("the hook %T %s stays", object, object.GetName())
			}
		}
		for name, job := range of[*batch.Job](objects) {
			if job.Spec.TTLSecondsAfterFinished == nil {
				t.Errorf("the Job %s stays where it has failed", name)
			}
		}
	})
}

func TestNamesOfReleasesAreRefusedBeforeTheMigration(t *testing.T) {
	values, err := chartutil.ReadValuesFile("testdata/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, good := range map[string]bool{
		"doorward": true, "a" + strings.Repeat("b", 49): true, "a" + strings.Repeat("b", 50): false, "1identity": false, "id.entity": false,
	} {
		_, err := renderFiles(name, values, noCluster{})
		if good != (err == nil) || !good && !strings.Contains(err.Error(), "at most 50 characters") {
			t.Errorf("the release %s: %v", name, err)
		}
	}
}

// Callers choose among the Pods of a service (pkg/rpc), and DNS has no ports.
func TestServicesOfCallersAreHeadlessAtThePortOfTheContainer(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		templates := pods(objects)
		for name, service := range of[*core.Service](objects) {
			if name == "ops" || name == "gateway" {
				continue
			}
			port := templates[name].Spec.Containers[0].Ports[0]
			if service.Spec.ClusterIP != core.ClusterIPNone || service.Spec.PublishNotReadyAddresses || service.Spec.Ports[0].Port != port.ContainerPort {
				t.Errorf("%s: %+v", name, service.Spec)
			}
		}
	})
}

func TestTheVariablesThatValuesAreCheckedAgainstAreThoseOfHelp(t *testing.T) {
	text := "# The variables of each process's --help, with which templates check processes.*.env.\n# Written by: .ci/chart/check -update\n"
	for _, process := range processes {
		var found []string
		for _, v := range help(t, process) {
			found = append(found, v.names...)
		}
		slices.Sort(found)
		text += process + ":\n  - " + strings.Join(slices.Compact(found), "\n  - ") + "\n"
	}
	file := filepath.Join(Dir, "variables.yaml")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("%s is not what the processes know, %v; run: .ci/chart/check -update", file, err)
	}
}

func TestWhatAPlainClusterLacksIsOff(t *testing.T) {
	objects, err := Render("testdata/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		kind := object.(runtime.Object).GetObjectKind().GroupVersionKind()
		if strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") || kind.Group == "gateway.networking.k8s.io" {
			t.Errorf("%s %s needs a custom resource definition", kind, object.GetName())
		}
	}
	for name, scaler := range of[*autoscaling.HorizontalPodAutoscaler](objects) {
		if scaler.Spec.Metrics[0].Resource == nil {
			t.Errorf("%s follows a custom metric", name)
		}
	}
}

func TestTheHostsOfAnIngressARouteAndACertificate(t *testing.T) {
	objects, err := Render("testdata/ingress.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"id.example.com", "*.id.example-pages.com", "*.apps.example.com"}
	ingress, route, certificate := of[*networking.Ingress](objects)[Release], of[*HTTPRoute](objects)[Release], of[*Certificate](objects)[Release]
	if ingress == nil || route == nil || certificate == nil {
		t.Fatalf("%v, %v, %v", ingress, route, certificate)
	}
	var hosts []string
	for _, rule := range ingress.Spec.Rules {
		hosts = append(hosts, rule.Host)
		if backend := rule.HTTP.Paths[0].Backend.Service; backend.Name != "doorward-gateway" || backend.Port.Name != "http" {
			t.Errorf("%s goes to %+v", rule.Host, backend)
		}
	}
	for what, got := range map[string][]string{
		"rules": hosts, "TLS": ingress.Spec.TLS[0].Hosts, "route": route.Spec.Hostnames, "certificate": certificate.Spec.DNSNames,
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if ingress.Spec.TLS[0].SecretName != certificate.Spec.SecretName || certificate.Spec.IssuerRef.Name != "letsencrypt" {
		t.Errorf("%+v, %+v", ingress.Spec.TLS, certificate.Spec)
	}
	if backend := route.Spec.Rules[0].BackendRefs[0]; backend.Name != "doorward-gateway" || backend.Port != 8080 {
		t.Errorf("the route goes to %+v", backend)
	}
}

func TestWhatAClusterAddsIsInEachPod(t *testing.T) {
	objects, err := Render("testdata/ingress.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetLabels()["team"] != "identity" {
			t.Errorf("%T %s lacks the label", object, object.GetName())
		}
	}
	for name, pod := range pods(objects) { // of Jobs and the test too
		container := pod.Spec.Containers[0]
		env := slices.ContainsFunc(container.Env, func(v core.EnvVar) bool { return v.ValueFrom != nil && v.Name == "NODE" })
		mount := slices.ContainsFunc(container.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == "/extra" })
		volume := slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == "extra" })
		if !env || !mount || !volume || pod.Spec.Affinity == nil || pod.Labels["mesh"] != "no" || pod.Annotations["log"] != "yes" {
			t.Errorf("%s lacks something: %t %t %t %v %v %v", name, env, mount, volume, pod.Spec.Affinity, pod.Labels, pod.Annotations)
		}
	}
	dashboards := of[*core.ConfigMap](objects)
	if got := slices.Sorted(maps.Keys(dashboards)); !slices.Equal(got, []string{"dashboard-data", "dashboard-logins", "dashboard-overview", "dashboard-tenant"}) {
		t.Errorf("dashboards %v", got)
	}
	for name, dashboard := range dashboards {
		if dashboard.Labels["grafana_dashboard"] != "1" || len(dashboard.Data) != 1 {
			t.Errorf("%s: %v", name, dashboard.Labels)
		}
	}
}

func TestTheTestOfAReleaseIsTheDoctor(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		pod := of[*core.Pod](objects)["test"]
		if pod == nil || pod.Annotations["helm.sh/hook"] != "test" || !slices.Equal(pod.Spec.Containers[0].Args, []string{"doctor"}) {
			t.Errorf("%+v", pod)
			return
		}
		// Helm reads logs for --logs after it has deleted the Pod, and those of this policy before.
		if output := pod.Annotations["helm.sh/hook-output-log-policy"]; output != "hook-succeeded,hook-failed" ||
			!strings.Contains(pod.Annotations["helm.sh/hook-delete-policy"], output) {
			t.Errorf("the test leaves its Pod, or prints nothing: %v", pod.Annotations)
		}
	})
	for _, file := range []string{"README.md", "templates/NOTES.txt"} {
		if text, err := os.ReadFile(filepath.Join(Dir, file)); err != nil || strings.Contains(string(text), "--logs") {
			t.Errorf("%s shows helm test with --logs, which finds no Pod: %v", file, err)
		}
	}
}

func TestTheNotesSayTheFirstRequest(t *testing.T) {
	for file, says := range map[string]string{
		"testdata/production.yaml": `curl --user "$ID:$SECRET" --location https://id.example.com/v1/tenants/current`,
		"testdata/minimal.yaml":    "There is no tenant, and no way to make one",
	} {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files, err := renderFiles(Release, values, noCluster{})
		if err != nil {
			t.Fatal(err)
		}
		if notes := files["doorward/templates/NOTES.txt"]; !strings.Contains(notes, says) {
			t.Errorf("%s: the notes do not say %q:\n%s", file, says, notes)
		}
	}
}
