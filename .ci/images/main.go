// Images checks compose.yaml and the Dockerfile as far as that is possible
// without a container engine:
//
//   - compose.yaml is read by the library that docker compose reads it with;
//   - the Dockerfile is read by BuildKit's parser, whose warnings count;
//   - the images stand on nothing else, and run as a user without rights;
//   - build.sh compiles every process of compose.yaml;
//   - each process of compose.yaml is given every variable that it requires and
//     the address of every service that it calls, and none that it does not know,
//     by what its --help says;
//   - containers have no capability that they need not have, no way to more rights,
//     bounded memory and logs, and those of the product a read-only root;
//   - the bill of materials of each process names what is linked into it.
//
// It is run by the script check beside it, with the folder that build.sh has filled
// as its argument, in the root of the repository.
package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

const (
	dockerfile = "deploy/docker/Dockerfile"
	script     = "deploy/docker/build.sh"
)

func main() {
	problems, err := run(context.Background(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, "images:", problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

func run(ctx context.Context, made string) ([]string, error) {
	problems, built, err := checkDockerfile()
	if err != nil {
		return nil, err
	}
	bills, err := checkBills(made)
	if err != nil {
		return nil, err
	}
	problems = append(problems, bills...)
	for _, files := range [][]string{{"compose.yaml"}, {"compose.yaml", "deploy/compose/compose.yaml"}} {
		found, err := checkProject(ctx, files, made, built)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", files, err)
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// checkProject returns what is wrong with the services of files for compose.
func checkProject(ctx context.Context, files []string, made string, built []string) (problems []string, err error) {
	options, err := cli.NewProjectOptions(files, cli.WithWorkingDirectory("."), cli.WithProfiles([]string{"*"}),
		cli.WithEnvFiles("deploy/compose/env.example"), cli.WithDotEnv)
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	// In the second the proxy alone is reached from outside, so that there can be several gateways.
	front := map[int]string{1: "gateway", 2: "caddy"}[len(files)]
	for _, name := range project.ServiceNames() {
		service := project.Services[name]
		for _, port := range service.Ports {
			if name != front && port.HostIP != "127.0.0.1" {
				problems = append(problems, fmt.Sprintf("%s in %v has port %s of the machine, which %s has", name, files, port.Published, front))
			}
		}
		problems = append(problems, checkRights(name, service)...)
		if service.Build == nil {
			continue
		}
		process := service.Build.Args["SERVICE"]
		switch {
		case filepath.Base(service.Build.Dockerfile) != filepath.Base(dockerfile) || process == nil:
			problems = append(problems, fmt.Sprintf("%s in compose.yaml is not built by %s with an argument SERVICE", name, dockerfile))
		case !slices.Contains(built, *process):
			problems = append(problems, fmt.Sprintf("%s does not compile %s", script, *process))
		case service.Build.Args["VERSION"] == nil:
			problems = append(problems, fmt.Sprintf("%s in compose.yaml is built without VERSION", name))
		default:
			found, err := checkVariables(ctx, name, filepath.Join(made, "bin", *process), service)
			if err != nil {
				return nil, err
			}
			problems = append(problems, found...)
		}
	}
	return problems, nil
}

// checkDockerfile returns what is wrong with the Dockerfile, and the names of the
// processes that it compiles.
func checkDockerfile() (problems, processes []string, err error) {
	source, err := os.ReadFile(dockerfile)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := parser.Parse(bytes.NewReader(source))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", dockerfile, err)
	}
	for _, warning := range parsed.Warnings {
		problems = append(problems, dockerfile+": "+warning.Short)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, at []parser.Range) {
		line := 0
		if len(at) > 0 {
			line = at[0].Start.Line
		}
		problems = append(problems, fmt.Sprintf("%s:%d: %s (%s)", dockerfile, line, message, rule))
	}})
	if syntax, _, _, _ := parser.DetectSyntax(source); !fixedSyntax.MatchString(syntax) {
		problems = append(problems, fmt.Sprintf("%s is read by %s: use a whole version", dockerfile, syntax))
	}
	stages, _, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", dockerfile, err)
	}
	var copied []string
	builds, user := false, ""
	for _, stage := range stages {
		user = ""
		for _, command := range stage.Commands {
			switch c := command.(type) {
			case *instructions.CopyCommand:
				copied = append(copied, c.SourcePaths...)
			case *instructions.RunCommand:
				builds = builds || strings.Contains(strings.Join(c.CmdLine, " "), script)
			case *instructions.UserCommand:
				user = c.User
			}
		}
	}
	if first, last := stages[0], stages[len(stages)-1]; !fixedGo.MatchString(first.BaseName) || last.BaseName != "scratch" {
		problems = append(problems, fmt.Sprintf("%s builds with %s and stands on %s: use a whole version of golang, and scratch",
			dockerfile, first.BaseName, last.BaseName))
	}
	if !builds || user != "65532:65532" {
		problems = append(problems, fmt.Sprintf("%s does not run %s, or its image runs as user %q", dockerfile, script, user))
	}
	commands, err := os.ReadFile(script)
	if err != nil {
		return nil, nil, err
	}
	for _, match := range regexp.MustCompile(`\./(\S+)/cmd/\*`).FindAllStringSubmatch(string(commands), -1) {
		if module := match[1]; !slices.Contains(copied, module+"/go.*") {
			problems = append(problems, fmt.Sprintf("%s does not copy %s/go.* before it downloads", dockerfile, module))
		}
		compiled, err := filepath.Glob(match[0])
		if err != nil {
			return nil, nil, err
		}
		for _, process := range compiled {
			processes = append(processes, filepath.Base(process))
		}
	}
	return problems, processes, nil
}

var (
	fixedGo     = regexp.MustCompile(`^golang:\d+\.\d+\.\d+$`)
	fixedSyntax = regexp.MustCompile(`^docker/dockerfile:\d+\.\d+\.\d+$`)
)

// checkRights returns what a container may do without a need.
func checkRights(name string, service types.ServiceConfig) (problems []string) {
	report := func(is bool, what string) {
		if is {
			problems = append(problems, fmt.Sprintf("%s in compose.yaml %s", name, what))
		}
	}
	report(!slices.Equal(service.CapDrop, []string{"ALL"}), "keeps capabilities: cap_drop: [ALL]")
	report(!slices.Contains(service.SecurityOpt, "no-new-privileges:true"), "may gain privileges: no-new-privileges:true")
	report(service.Privileged || service.Pid != "" || service.NetworkMode != "" || service.Ipc != "", "shares what is the host's")
	// PostgreSQL's image starts as root, owns its data and becomes another user.
	report(len(service.CapAdd) > 0 && name != "postgres" && !slices.Equal(service.CapAdd, []string{"NET_BIND_SERVICE"}), "adds capabilities")
	report(service.MemLimit == 0, "has no limit of memory: mem_limit")
	report(service.Logging == nil || service.Logging.Options["max-size"] == "", "has logs without a limit: logging")
	if service.Build != nil {
		report(!service.ReadOnly, "can write to its root file system: read_only: true")
		report(service.User != "", "runs as another user than its image says")
	}
	return problems
}

// checkBills returns what is wrong with the bills of materials of the processes.
func checkBills(made string) (problems []string, err error) {
	programs, err := filepath.Glob(filepath.Join(made, "bin", "*"))
	if err != nil || len(programs) == 0 {
		return nil, fmt.Errorf("%s holds no process, %w", made, err)
	}
	for _, program := range programs {
		file, err := os.Open(filepath.Join(made, "sbom", filepath.Base(program)+".cdx.json"))
		if err != nil {
			return nil, err
		}
		var bill cyclonedx.BOM
		decoder := json.NewDecoder(file)
		decoder.DisallowUnknownFields()
		if err := errors.Join(decoder.Decode(&bill), file.Close()); err != nil {
			return nil, fmt.Errorf("read the bill of %s: %w", program, err)
		}
		named := map[string]bool{}
		for _, component := range *bill.Components {
			named[component.PackageURL] = true
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, err
		}
		linked := []string{"pkg:golang/std@" + info.GoVersion, "pkg:golang/github.com/doorward/doorward/pkg"}
		for _, module := range info.Deps {
			if module.Sum != "" {
				linked = append(linked, "pkg:golang/"+module.Path+"@"+module.Version)
			}
		}
		for _, module := range linked {
			if !named[module] && filepath.Base(program) != "mailbox" {
				problems = append(problems, fmt.Sprintf("the bill of %s lacks %s", program, module))
			}
		}
	}
	return problems, nil
}

// ofRuntime are variables of Go itself, which --help does not list.
var ofRuntime = []string{"GOMEMLIMIT"}

// variableLine is a line of a process's --help: a variable, or several of which
// the first that is set holds.
var variableLine = regexp.MustCompile(`^  ([A-Z][A-Z0-9_]*(?:, else [A-Z][A-Z0-9_]*)*)\s.*$`)

// peers are the variables with the addresses of services.
var peers = regexp.MustCompile(`^DOORWARD_(DIRECTORY|APPLICATION|OAUTH|MFA|NOTIFICATION|IDSITE)_URL$`)

// checkVariables compares what a process is given with what it asks for.
func checkVariables(ctx context.Context, name, binary string, service types.ServiceConfig) (problems []string, err error) {
	help, err := exec.CommandContext(ctx, binary, "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its variables: %w", binary, err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(help)) {
		match := variableLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if match == nil {
			continue
		}
		given := false
		for variable := range strings.SplitSeq(match[1], ", else ") {
			for _, form := range []string{variable, variable + "_FILE"} {
				known[form] = true
				_, set := service.Environment[form]
				given = given || set
			}
		}
		if !given && (strings.HasSuffix(strings.TrimSpace(line), "(required)") || peers.MatchString(match[1])) {
			problems = append(problems, fmt.Sprintf("%s in compose.yaml lacks %s", name, match[1]))
		}
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%s --help lists no variable", binary)
	}
	secrets := map[string]bool{}
	for _, secret := range service.Secrets {
		secrets["/run/secrets/"+secret.Source] = true
	}
	for variable, value := range service.Environment {
		if !known[variable] && !slices.Contains(ofRuntime, variable) {
			problems = append(problems, fmt.Sprintf("%s in compose.yaml is given %s, which it does not know", name, variable))
		}
		if value != nil && strings.HasSuffix(variable, "_FILE") && !secrets[*value] {
			problems = append(problems, fmt.Sprintf("%s in compose.yaml reads %s, which is not among its secrets", name, *value))
		}
	}
	slices.Sort(problems)
	return problems, nil
}
