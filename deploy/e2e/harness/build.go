package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/doorward/doorward/pkg/deployment"
)

// BinEnv names the variable that points at a folder of ready binaries; with it
// Build builds nothing.
const BinEnv = "DOORWARD_E2E_BIN"

// Packages of the two deployment modes.
var (
	StandalonePackages  = []string{"./deploy/standalone/cmd/doorward"}
	DistributedPackages = distributedPackages()
)

func distributedPackages() []string {
	packages := []string{"./gateway/cmd/gateway", "./deploy/mailbox/cmd/mailbox"}
	for _, name := range deployment.Services {
		packages = append(packages, "./services/"+name+"/cmd/"+name)
	}
	return packages
}

// Build compiles the packages of the repository into a folder below dir and
// returns that folder.
func Build(ctx context.Context, dir string, packages ...string) (string, error) {
	if ready := os.Getenv(BinEnv); ready != "" {
		return filepath.Abs(ready)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return BuildIn(ctx, root, dir, packages...)
}

// BuildIn is Build for the sources in the folder root.
func BuildIn(ctx context.Context, root, dir string, packages ...string) (string, error) {
	bin, err := filepath.Abs(filepath.Join(dir, "bin"))
	if err := errors.Join(err, os.MkdirAll(bin, 0o755)); err != nil {
		return "", fmt.Errorf("make the folder for binaries: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", bin + string(filepath.Separator)}, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %v: %w\n%s", packages, err, out)
	}
	return bin, nil
}

// Root is the folder of the repository: the nearest one above the working
// directory that holds the workspace file.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.work in the working directory or above it: run this inside the repository")
		}
		dir = parent
	}
}

// Program finds a program that a part of deploy/setup/setup.sh installs.
func Program(name, part string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin", "/usr/local/sbin", "/sbin"} { // some are off a user's PATH
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed; run deploy/setup/setup.sh %s", name, part)
}

// Fetched is the folder of something that deploy/setup/setup.sh has fetched.
func Fetched(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(root, "deploy/setup/setup.sh"), "where", name).Output()
	if err != nil {
		return "", fmt.Errorf("ask setup.sh for %s: %w", name, err)
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("find %s: %w; run deploy/setup/setup.sh %s", name, err, name)
	}
	return dir, nil
}
