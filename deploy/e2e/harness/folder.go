package harness

import (
	"fmt"
	"os"
)

// Folder makes a temporary folder that other users can pass through, as Config
// asks for, and returns it with the function that deletes it.
//
// A failed run should keep it, and say where it is: it holds whole logs and the
// data as it was.
func Folder() (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", "doorward-e2e-"); err != nil {
		return "", nil, fmt.Errorf("make a folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("open the folder: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
