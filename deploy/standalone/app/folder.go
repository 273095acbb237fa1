package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// folder is the data folder. One process at a time uses it (lock file).
type folder struct {
	path string
	lock *os.File
}

// lockFolder makes the data folder, unless it exists, and locks it until Close.
func lockFolder(path string) (*folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// The folder is traversable, because PostgreSQL may run under another
	// account; each secret in it is readable by its owner alone.
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the data folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another process; stop it, or set DOORWARD_DATA_DIR to another folder", path)
	}
	return &folder{path, lock}, nil
}

// Close releases the lock explicitly, because a child process that is being started may still have the file open after
// it is closed here.
func (f *folder) Close() error {
	_ = syscall.Flock(int(f.lock.Fd()), syscall.LOCK_UN)
	return f.lock.Close()
}

func (f *folder) join(name string) string { return filepath.Join(f.path, name) }

// readJSON reads a file of the folder.
func (f *folder) readJSON(name string, into any) (exists bool, err error) {
	content, err := os.ReadFile(f.join(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", f.join(name), err)
	}
	return true, nil
}

func (f *folder) writeJSON(name string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return f.write(name, append(content, '\n'))
}

// write replaces a file of the folder atomically, readable by its owner alone: a crash
// leaves the former content or the new one.
func (f *folder) write(name string, content []byte) error {
	temporary, err := os.CreateTemp(f.path, "."+name+"-") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(content)
	if err == nil {
		err = temporary.Sync()
	}
	if err := errors.Join(err, temporary.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.join(name), err)
	}
	return os.Rename(temporary.Name(), f.join(name))
}
