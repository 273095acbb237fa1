package harness

import (
	"fmt"
	"os"
)

// TempFolder makes a temporary folder that other users can pass through, as Config.Dir
// requires, and returns its path with the function that deletes it.
//
// A failed run should keep the folder and print its path: it has the whole logs and
// the data.
func TempFolder() (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", "doorward-e2e-"); err != nil {
		return "", nil, fmt.Errorf("make a folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("open the folder: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// Main is the TestMain of a package whose tests share a folder: run starts what the tests
// need there, runs the tests and returns their status. The folder of a failed run is
// kept.
func Main(run func(dir string) (status int, err error)) {
	status, err := inFolder(run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func inFolder(run func(dir string) (int, error)) (status int, err error) {
	dir, remove, err := TempFolder()
	if err != nil {
		return 1, err
	}
	if status, err = run(dir); status != 0 || err != nil {
		fmt.Fprintln(os.Stderr, "logs and data are kept in", dir)
		return status, err
	}
	return status, remove()
}
