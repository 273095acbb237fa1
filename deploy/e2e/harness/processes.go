package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// processesNaming lists the running processes whose command line or working
// directory names this folder. Where the system has no /proc it finds none.
func processesNaming(folder string) ([]string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("find the folder: %w", err)
	}
	entries, err := os.ReadDir("/proc")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var found []string
	for _, entry := range entries {
		if strings.Trim(entry.Name(), "0123456789") != "" {
			continue
		}
		// A process may end while we look at it; then it is not one of ours.
		command, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		command = bytes.ReplaceAll(bytes.TrimRight(command, "\x00"), []byte{0}, []byte{' '})
		place, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		inside := place == folder || strings.HasPrefix(place, folder+"/")
		if inside || bytes.Contains(command, []byte(folder)) {
			found = append(found, entry.Name()+": "+string(command))
		}
	}
	return found, nil
}
