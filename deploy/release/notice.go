package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// licenceName matches the files of a module that say under which licence it is, and whom to name.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// checkNotice returns an error unless NOTICE names what is linked into the programs.
func (r *release) checkNotice() error {
	want, err := notice()
	if err != nil {
		return err
	}
	have, err := os.ReadFile("NOTICE")
	if err != nil {
		return err
	}
	if string(have) != want {
		return errors.New("NOTICE is not current: make notice")
	}
	return nil
}

// linked returns the folders of the modules of which a package is linked into a program, by their names.
func linked() (map[string]string, error) {
	programs := []string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"}
	for _, pattern := range []string{"gateway/cmd/*", "services/*/cmd/*", "deploy/mailbox/cmd/*", "deploy/standalone/cmd/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, program := range found {
			programs = append(programs, "./"+program)
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	version := strings.TrimPrefix(runtime.Version(), "go")
	modules := map[string]string{"Go " + version: strings.TrimSpace(string(root))}
	for _, goos := range []string{"linux", "darwin"} {
		list := exec.Command("go", programs...)
		list.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		list.Stderr = os.Stderr
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("list the modules: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if name, folder, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				modules[name] = folder
			}
		}
	}
	return modules, nil
}

// notice returns the licences of the modules that are linked into the programs: each text once, after its modules.
func notice() (string, error) {
	modules, err := linked()
	if err != nil {
		return "", err
	}
	named := map[string][]string{} // modules by text
	for module, folder := range modules {
		texts, err := licences(folder)
		if err != nil {
			return "", fmt.Errorf("%s: %w", module, err)
		}
		for _, text := range texts {
			named[text] = append(named[text], module)
		}
	}
	var blocks []string
	for text, of := range named {
		slices.Sort(of)
		blocks = append(blocks, strings.Join(of, "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(blocks)
	var b strings.Builder
	b.WriteString("Doorward\nApache License 2.0, see LICENSE.\n\nThe programs of Doorward contain the following, under these licences.\n")
	for _, block := range blocks {
		b.WriteString("\n" + strings.Repeat("=", 80) + "\n\n" + block)
	}
	return b.String(), nil
}

// licences returns the texts of the licence files of a module.
func licences(folder string) (texts []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.IsDir() || !licenceName.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		lines := strings.Split(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t")
		}
		texts = append(texts, strings.Trim(strings.Join(lines, "\n"), "\n"))
	}
	if len(texts) == 0 {
		return nil, errors.New("the module has no licence file")
	}
	return texts, nil
}
