// Images checks compose.yaml and the Dockerfile as far as that is possible
// without a container engine:
//
//   - compose.yaml is read by the library that docker compose reads it with;
//   - the Dockerfile is read by BuildKit's parser, whose warnings count;
//   - the Dockerfile compiles every process of compose.yaml;
//   - each process of compose.yaml is given every variable that it requires
//     and none that it does not know, by what its --help says.
//
// It is run by the script check beside it, with the folder of the compiled
// processes as its argument, in the root of the repository.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

const dockerfile = "deploy/docker/Dockerfile"

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

func run(ctx context.Context, bin string) ([]string, error) {
	options, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, fmt.Errorf("read compose.yaml: %w", err)
	}
	problems, built, err := checkDockerfile()
	if err != nil {
		return nil, err
	}
	for _, name := range project.ServiceNames() {
		service := project.Services[name]
		if service.Build == nil {
			continue
		}
		process := service.Build.Args["SERVICE"]
		switch {
		case filepath.Base(service.Build.Dockerfile) != filepath.Base(dockerfile) || process == nil:
			problems = append(problems, fmt.Sprintf("%s in compose.yaml is not built by %s with an argument SERVICE", name, dockerfile))
		case !slices.Contains(built, *process):
			problems = append(problems, fmt.Sprintf("%s does not compile %s", dockerfile, *process))
		default:
			found, err := checkVariables(ctx, name, filepath.Join(bin, *process), service)
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
	file, err := os.Open(dockerfile)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	parsed, err := parser.Parse(file)
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
	stages, _, err := instructions.Parse(parsed.AST, lint)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", dockerfile, err)
	}
	var copied []string
	var commands strings.Builder
	for _, stage := range stages {
		for _, command := range stage.Commands {
			switch c := command.(type) {
			case *instructions.CopyCommand:
				copied = append(copied, c.SourcePaths...)
			case *instructions.RunCommand:
				commands.WriteString(strings.Join(c.CmdLine, " ") + "\n")
			}
		}
	}
	for _, match := range regexp.MustCompile(`\./(\S+)/cmd/\*`).FindAllStringSubmatch(commands.String(), -1) {
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

// variableLine is a line of a process's --help: a variable, or several of which
// the first that is set holds.
var variableLine = regexp.MustCompile(`^  ([A-Z][A-Z0-9_]*(?:, else [A-Z][A-Z0-9_]*)*)\s.*$`)

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
		if !given && strings.HasSuffix(strings.TrimSpace(line), "(required)") {
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
		if !known[variable] {
			problems = append(problems, fmt.Sprintf("%s in compose.yaml is given %s, which it does not know", name, variable))
		}
		if value != nil && strings.HasSuffix(variable, "_FILE") && !secrets[*value] {
			problems = append(problems, fmt.Sprintf("%s in compose.yaml reads %s, which is not among its secrets", name, *value))
		}
	}
	slices.Sort(problems)
	return problems, nil
}
