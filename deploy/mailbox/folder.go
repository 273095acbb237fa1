package mailbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// folder is the folder of the messages. A message is one file, whose name has its id and
// its kind.
type folder struct {
	path string
	lock *os.File
}

var (
	fileName = regexp.MustCompile(`^(\d{16})\.(eml|sms)$`)
	suffixes = map[string]string{KindEmail: "eml", KindSMS: "sms"}
	kinds    = map[string]string{"eml": KindEmail, "sms": KindSMS}
)

const (
	// temporaryPrefix starts the name of a file that is being written.
	temporaryPrefix = "arriving-"
	lockName        = "lock"
)

func (e *entry) fileName() string { return e.id + "." + suffixes[e.kind] }

// openFolder creates the folder when absent, locks it, removes the files that an earlier
// process had not finished, and lists the messages, oldest first. Only the owner may read
// the folder, because mails have tokens.
func openFolder(path string) (*folder, []*entry, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, nil, err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	f := &folder{path: path}
	if err := f.acquireLock(); err != nil {
		return nil, nil, err
	}
	entries, err := f.list()
	if err != nil {
		return nil, nil, errors.Join(err, f.close())
	}
	return f, entries, nil
}

// acquireLock locks the folder. The lock is released when the process ends, however it ends.
func (f *folder) acquireLock() error {
	lock, err := os.OpenFile(filepath.Join(f.path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another mailbox uses this folder: %w", err), lock.Close())
	}
	f.lock = lock
	return nil
}

func (f *folder) list() ([]*entry, error) {
	files, err := os.ReadDir(f.path) // sorted by name, hence by id
	if err != nil {
		return nil, err
	}
	var entries []*entry
	for _, file := range files {
		if strings.HasPrefix(file.Name(), temporaryPrefix) {
			if err := os.Remove(filepath.Join(f.path, file.Name())); err != nil {
				return nil, err
			}
			continue
		}
		name := fileName.FindStringSubmatch(file.Name())
		if name == nil || !file.Type().IsRegular() {
			continue
		}
		info, err := file.Info()
		if err != nil {
			return nil, err
		}
		entries = append(entries, &entry{id: name[1], kind: kinds[name[2]], size: info.Size()})
	}
	return entries, nil
}

// write makes a file with the content that fill writes and returns its size. It is atomic and
// durable: without an error the file is complete, also after a loss of power; with an
// error there is no file.
func (f *folder) write(name string, fill func(io.Writer) error) (size int64, err error) {
	file, err := os.CreateTemp(f.path, temporaryPrefix)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	buffered := bufio.NewWriter(file)
	if err := fill(buffered); err != nil {
		return 0, err
	}
	if err := buffered.Flush(); err != nil {
		return 0, err
	}
	if err := file.Sync(); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if err := file.Close(); err != nil {
		return 0, err
	}
	if err := os.Rename(file.Name(), filepath.Join(f.path, name)); err != nil {
		return 0, err
	}
	if err := syncFolder(f.path); err != nil {
		return 0, errors.Join(err, os.Remove(filepath.Join(f.path, name)))
	}
	return info.Size(), nil
}

func (f *folder) open(name string) (*os.File, error) {
	return os.Open(filepath.Join(f.path, name))
}

// remove deletes files. A file that does not exist is no error.
func (f *folder) remove(names []string) error {
	var failures []error
	for _, name := range names {
		if err := os.Remove(filepath.Join(f.path, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	return errors.Join(append(failures, syncFolder(f.path))...)
}

// close releases the lock.
func (f *folder) close() error { return f.lock.Close() }

// syncFolder syncs the directory entries of a folder to disk (fsync).
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
