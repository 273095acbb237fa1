package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// binEnv names the folder of the compiled processes, which the script check makes.
const binEnv = "DOORWARD_CHART_BIN"

// variable is one of a process's --help.
type variable struct {
	names    []string // of which the first that is set holds
	required bool
}

var variableLine = regexp.MustCompile(`(?m)^  ([A-Z][A-Z0-9_]*(?:, else [A-Z][A-Z0-9_]*)*)\s.*$`)

// help returns the variables that a process knows.
func help(t *testing.T, process string) (variables []variable) {
	t.Helper()
	arguments := []string{"--help"}
	binary := process
	switch process {
	case "migrate":
		binary, arguments = "doorward", []string{"migrate", "--help"}
	case "toolbox": // doctor reads what the other commands read
		binary, arguments = "doorward", []string{"doctor", "--help"}
	}
	out, err := exec.Command(filepath.Join(os.Getenv(binEnv), binary), arguments...).Output()
	if err != nil {
		t.Fatalf("ask %s for its variables: %v (run make chart, which compiles it)", binary, err)
	}
	for _, match := range variableLine.FindAllStringSubmatch(string(out), -1) {
		if text := strings.TrimSpace(strings.TrimPrefix(match[0], "  "+match[1])); text == "" || text[0] == '(' {
			t.Errorf("%s --help says of %s only %q", binary, match[1], text)
		}
		variables = append(variables, variable{strings.Split(match[1], ", else "), strings.HasSuffix(match[0], "(required)")})
	}
	if len(variables) == 0 {
		t.Fatalf("%s --help lists no variable", binary)
	}
	return variables
}

func knows(variables []variable, name string) bool {
	return slices.ContainsFunc(variables, func(v variable) bool { return slices.Contains(v.names, name) })
}

// ofRuntime are variables of Go itself.
var ofRuntime = []string{"GOMEMLIMIT", "SSL_CERT_DIR"}

func TestEachProcessIsGivenWhatItRequiresAndNothingThatItDoesNotKnow(t *testing.T) {
	known := map[string][]variable{"migrate": help(t, "migrate"), "toolbox": help(t, "toolbox")}
	for _, process := range processes {
		known[process] = help(t, process)
	}
	each(t, func(t *testing.T, objects []Object) {
		for process, pod := range pods(objects) {
			given := map[string]bool{}
			for _, variable := range pod.Spec.Containers[0].Env {
				if variable.ValueFrom != nil { // extraEnv
					continue
				}
				name := strings.TrimSuffix(variable.Name, "_FILE")
				given[name] = true
				if !knows(known[process], name) && !slices.Contains(ofRuntime, name) {
					t.Errorf("%s is given %s, which it does not know", process, variable.Name)
				}
			}
			for _, v := range known[process] {
				if v.required && !slices.ContainsFunc(v.names, func(name string) bool { return given[name] }) {
					t.Errorf("%s lacks %v", process, v.names)
				}
				if _, address := strings.CutSuffix(v.names[0], "_URL"); address && peer(v.names[0]) != "" && !given[v.names[0]] {
					t.Errorf("%s lacks %s", process, v.names[0])
				}
			}
		}
	})
}

// poolSize is the variable that each process has a value of its own for.
const poolSize = "DOORWARD_DATABASE_POOL_SIZE"

func TestEachProcessThatKnowsAVariableIsGivenTheSameValue(t *testing.T) {
	known := map[string][]variable{}
	for _, process := range processes {
		known[process] = help(t, process)
	}
	each(t, func(t *testing.T, objects []Object) {
		given := map[string]map[string]string{} // value by process, by variable
		for process, pod := range pods(objects) {
			for _, variable := range pod.Spec.Containers[0].Env {
				if !strings.HasPrefix(variable.Name, "DOORWARD_") || variable.Name == poolSize {
					continue
				}
				if given[variable.Name] == nil {
					given[variable.Name] = map[string]string{}
				}
				given[variable.Name][process] = variable.Value
			}
		}
		for name, values := range given {
			for process, variables := range known {
				if knows(variables, strings.TrimSuffix(name, "_FILE")) {
					values[process] += ""
				}
			}
			if distinct := slices.Compact(slices.Sorted(maps.Values(values))); len(distinct) > 1 {
				t.Errorf("%s has different values: %v", name, values)
			}
		}
	})
}

func TestEachServiceIsGivenItsPoolSize(t *testing.T) {
	objects, err := Render("testdata/production.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		want := map[string]string{"gateway": "", "oauth": "12"}
		if _, is := want[process]; !is {
			want[process] = "8"
		}
		var got string
		for _, variable := range pods(objects)[process].Spec.Containers[0].Env {
			if variable.Name == poolSize {
				got = variable.Value
			}
		}
		if got != want[process] || (want[process] != "") != knows(help(t, process), poolSize) {
			t.Errorf("%s has a pool of %q connections, want %q", process, got, want[process])
		}
	}
}

// peer returns the service whose address a variable holds.
func peer(name string) string {
	service := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "DOORWARD_"), "_URL"))
	if name == "DOORWARD_"+strings.ToUpper(service)+"_URL" && slices.Contains(processes, service) {
		return service
	}
	return ""
}

// An arrow is a connection that a policy lets through.
type arrow struct{ from, to string }

// wiring returns the arrows between processes: what the configuration of each can
// be pointed at, which is what app.go wires.
func wiring(t *testing.T) map[arrow]bool {
	t.Helper()
	arrows := map[arrow]bool{}
	for _, process := range processes {
		for _, v := range help(t, process) {
			if service := peer(v.names[0]); service != "" {
				arrows[arrow{process, service}] = true
			}
		}
	}
	return arrows
}

func TestThePoliciesLetTheArrowsOfTheWiringThroughAndNoOthers(t *testing.T) {
	want := wiring(t)
	each(t, func(t *testing.T, objects []Object) {
		policies := of[*networking.NetworkPolicy](objects)
		if len(policies) == 0 && strings.HasSuffix(t.Name(), "small") {
			return // which has none
		}
		templates := pods(objects)
		got := map[arrow]bool{}
		for caller, from := range templates {
			for callee, to := range templates {
				out := slices.ContainsFunc(policies[caller].Spec.Egress, func(rule networking.NetworkPolicyEgressRule) bool {
					return reaches(rule.To, rule.Ports, to, "http")
				})
				in := slices.ContainsFunc(policies[callee].Spec.Ingress, func(rule networking.NetworkPolicyIngressRule) bool {
					return len(rule.From) > 0 && reaches(rule.From, rule.Ports, from, "http")
				})
				if out != in {
					t.Errorf("from %s to %s: egress %t, ingress %t", caller, callee, out, in)
				}
				if out {
					got[arrow{caller, callee}] = true
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("the policies let through\n%v, want\n%v", got, want)
		}
		for name, policy := range policies {
			if !labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(templates[name].Labels)) || len(policy.Spec.PolicyTypes) != 2 {
				t.Errorf("the policy of %s does not hold for its Pods, in both directions", name)
			}
			for _, rule := range policy.Spec.Ingress {
				if len(rule.From) == 0 && (name != "gateway" || rule.Ports[0].Port.String() != "http" || len(rule.Ports) != 1) {
					t.Errorf("everybody reaches %s", name)
				}
			}
			for _, rule := range policy.Spec.Ingress {
				others := slices.ContainsFunc(rule.From, func(p networking.NetworkPolicyPeer) bool { return p.NamespaceSelector != nil || p.IPBlock != nil })
				if others && name != "gateway" && (len(rule.Ports) != 1 || rule.Ports[0].Port.String() != "ops") {
					t.Errorf("other namespaces reach %s on %v", name, rule.Ports)
				}
			}
			for _, rule := range policy.Spec.Egress {
				if len(rule.To) == 0 || len(rule.Ports) == 0 {
					t.Errorf("%s reaches everything", name)
				}
			}
		}
	})
}

// reaches reports whether a rule lets a Pod through by its labels, on a port.
func reaches(peers []networking.NetworkPolicyPeer, ports []networking.NetworkPolicyPort, pod core.PodTemplateSpec, port string) bool {
	if !slices.ContainsFunc(ports, func(p networking.NetworkPolicyPort) bool { return p.Port.String() == port }) {
		return false
	}
	return slices.ContainsFunc(peers, func(p networking.NetworkPolicyPeer) bool {
		return p.PodSelector != nil && p.NamespaceSelector == nil && labels.SelectorFromSet(p.PodSelector.MatchLabels).Matches(labels.Set(pod.Labels))
	})
}

func TestThePoliciesLetProcessesReachTheServersThatTheyUse(t *testing.T) {
	// The networks and ports of testdata/production.yaml.
	servers := map[string]struct {
		address  string
		port     int
		variable func(service string) string
	}{
		"PostgreSQL": {"10.20.0.9", 5432, func(string) string { return "DATABASE_URL" }},
		"PgBouncer":  {"10.20.0.9", 6432, func(string) string { return "DATABASE_URL" }},
		"Redis":      {"10.20.1.9", 6379, func(string) string { return "REDIS_URL" }},
		"Sentinel":   {"10.20.1.9", 26379, func(string) string { return "REDIS_URL" }},
		"Kafka":      {"10.20.2.9", 9093, func(string) string { return "KAFKA_BROKERS" }},
		"mail":       {"203.0.113.9", 587, func(string) string { return "DOORWARD_SMTP_URL" }},
		"provider":   {"203.0.113.9", 443, func(string) string { return "DOORWARD_OUTBOUND_PRIVATE_NETWORKS" }},
		"intranet":   {"10.40.0.9", 443, func(string) string { return "DOORWARD_OUTBOUND_PRIVATE_NETWORKS" }},
		"metadata":   {"169.254.169.254", 80, func(string) string { return "" }},
		"SSH":        {"10.20.3.9", 22, func(string) string { return "" }},
	}
	objects, err := Render("testdata/production.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for process, policy := range of[*networking.NetworkPolicy](objects) {
		variables := help(t, process)
		for server, at := range servers {
			reached := slices.ContainsFunc(policy.Spec.Egress, func(rule networking.NetworkPolicyEgressRule) bool {
				return slices.ContainsFunc(rule.Ports, func(p networking.NetworkPolicyPort) bool { return p.Port.IntValue() == at.port }) &&
					slices.ContainsFunc(rule.To, func(p networking.NetworkPolicyPeer) bool { return contains(t, p.IPBlock, at.address) })
			})
			if want := knows(variables, at.variable(process)); reached != want {
				t.Errorf("%s reaches %s: %t, want %t", process, server, reached, want)
			}
		}
	}
}

func TestThePoliciesLetDNSThroughWhereItIs(t *testing.T) {
	each(t, func(t *testing.T, objects []Object) {
		want := "kube-system 53/UDP 53/TCP"
		if strings.HasSuffix(t.Name(), "texts") {
			want = "openshift-dns 5353/UDP 5353/TCP"
		}
		for name, policy := range of[*networking.NetworkPolicy](objects) {
			var got string
			for _, peer := range policy.Spec.Egress[0].To {
				got += peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]
			}
			for _, port := range policy.Spec.Egress[0].Ports {
				got += " " + port.Port.String() + "/" + string(*port.Protocol)
			}
			if got != want {
				t.Errorf("%s asks %s, want %s", name, got, want)
			}
		}
	})
}

func contains(t *testing.T, block *networking.IPBlock, address string) bool {
	t.Helper()
	if block == nil {
		return false
	}
	in := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			t.Fatal(err)
		}
		return prefix.Contains(netip.MustParseAddr(address))
	}
	return in(block.CIDR) && !slices.ContainsFunc(block.Except, in)
}

func TestTheWiringIsWhatTheTableOfRoutesAndTheArchitecturePageSay(t *testing.T) {
	arrows := wiring(t)
	for _, owner := range owners(t) {
		if owner != "gateway" && owner != "mailbox" && !arrows[arrow{"gateway", owner}] {
			t.Errorf("gateway/routes.go sends requests to %s, which the gateway is not given", owner)
		}
	}
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[arrow]bool{}
	for _, match := range regexp.MustCompile(`(\w+) +▶ ((?:\w+, )*\w+(?: service| nobody)?)`).FindAllStringSubmatch(string(page), -1) {
		callees := strings.Split(match[2], ", ")
		if match[2] == "every service" {
			callees = slices.DeleteFunc(slices.Clone(processes), func(p string) bool { return p == "gateway" })
		}
		for _, callee := range callees {
			if callee != "nobody" {
				said[arrow{match[1], callee}] = true
			}
		}
	}
	if !maps.Equal(said, arrows) {
		t.Errorf("docs/architecture.md says\n%v, the wiring is\n%v", said, arrows)
	}
}

// owners returns the services of the table of routes.
func owners(t *testing.T) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../gateway/routes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "routes" {
			return true
		}
		table, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(table) {
			if fields := strings.Fields(line); len(fields) == 5 {
				found = append(found, strings.Split(fields[3], "|")...)
			}
		}
		return false
	})
	slices.Sort(found)
	if found = slices.Compact(found); len(found) < 6 {
		t.Fatalf("the table of routes names %v", found)
	}
	return found
}
