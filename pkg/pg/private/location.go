package private

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fallbackFolder has the clusters whose data folder the account of the server cannot access: the home
// of root, for example, is closed to other users.
const fallbackFolder = "/var/lib/doorward"

// port is a part of the name of the socket; the server does not listen on a network.
const port = "5432"

// Scratch returns a folder for temporary clusters: in memory if enough is free, because most of the
// first start of a cluster is writing files.
func Scratch() string {
	const memory, enough = "/dev/shm", 2 << 30
	var volume syscall.Statfs_t
	if err := syscall.Statfs(memory, &volume); err == nil && uint64(volume.Bavail)*uint64(volume.Bsize) > enough {
		return memory
	}
	return os.TempDir()
}

// location is the folder of one cluster and the account that runs it. It holds
//
//	data/          the cluster, which gets this name when it is complete
//	data.new-*     a cluster that is being created, or whose creation was interrupted
//	run            the folder of the socket, or a link to it
//	lock           locked by the process that runs the cluster, with its process id
//	postgres.log   the log, unless Config.Log is set
//
// If this process is root, the folder itself is owned by root, and data and run by the account, so
// that the account cannot make a link which root would follow.
type location struct {
	dir     string // absolute, without links
	account account
}

func (l location) data() string { return filepath.Join(l.dir, "data") }

// locate returns the location of the cluster of Config.Dir, and creates its folder if necessary.
func locate(dir string) (location, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return location{}, err
	}
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return createLocation(dir)
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		target, _ := os.Readlink(dir)
		return location{}, fmt.Errorf(
			"%s says that its cluster lies in %s, which is gone: bring that back, or delete %s to start again", dir,
			target, dir)
	}
	if err != nil {
		return location{}, fmt.Errorf("PostgreSQL's folder: %w", err)
	}
	return existingLocation(dir, resolved)
}

func existingLocation(dir, resolved string) (location, error) {
	info, err := os.Stat(filepath.Join(resolved, "data"))
	if errors.Is(err, os.ErrNotExist) {
		info, err = os.Stat(resolved)
	}
	if errors.Is(err, os.ErrPermission) {
		return location{}, fmt.Errorf("the cluster in %s belongs to another account: start as that account", resolved)
	}
	if err != nil {
		return location{}, fmt.Errorf("PostgreSQL's folder: %w", err)
	}
	account, err := serverAccount()
	if err != nil {
		return location{}, err
	}
	uid, _ := owner(info)
	switch {
	case account.other && uid == 0: // Root has created this folder, without a cluster yet.
		if err := os.Chmod(resolved, 0o711); err != nil {
			return location{}, err
		}
	case uid != account.uid:
		return location{}, fmt.Errorf("the cluster in %s belongs to the account %s: start as that account", resolved,
			accountName(uid))
	}
	at, err := account.blockedAt(resolved)
	if err != nil {
		return location{}, err
	}
	if at == "" {
		return location{dir: resolved, account: account}, nil
	}
	// An empty folder may be replaced by a link; os.Remove fails for any other folder.
	if dir == resolved && os.Remove(dir) == nil {
		return createLocation(dir)
	}
	return location{}, fmt.Errorf("the account %s, which runs PostgreSQL, cannot reach %s: %s is closed to it",
		account.name, resolved, at)
}

// createLocation creates the folder, or in its place a link to a folder that the account can access.
// It creates missing parents so that the account can access them.
func createLocation(dir string) (location, error) {
	account, err := serverAccount()
	if err != nil {
		return location{}, err
	}
	mode := os.FileMode(0o700)
	if account.other {
		mode = 0o711
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, mode); err != nil {
		return location{}, err
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return location{}, err
	}
	at, err := account.blockedAt(parent)
	if err != nil {
		return location{}, err
	}
	resolved := filepath.Join(parent, filepath.Base(dir))
	if at != "" {
		if err := errors.Join(os.MkdirAll(fallbackFolder, 0o711), os.Chmod(fallbackFolder, 0o711)); err != nil {
			return location{}, err
		}
		resolved = filepath.Join(fallbackFolder, strings.ToLower(rand.Text()[:16]))
	}
	if err := os.Mkdir(resolved, mode); err != nil && !errors.Is(err, os.ErrExist) {
		return location{}, err
	}
	if err := os.Chmod(resolved, mode); err != nil { // whatever the umask
		return location{}, err
	}
	if at != "" {
		if err := os.Symlink(resolved, dir); err != nil {
			err = errors.Join(err, os.Remove(resolved))
			if errors.Is(err, os.ErrExist) { // another process was faster
				return locate(dir)
			}
			return location{}, err
		}
	}
	return location{dir: resolved, account: account}, nil
}

// open opens or creates a file of this process in the folder.
func (l location) open(name string, flag int) (*os.File, error) {
	return os.OpenFile(filepath.Join(l.dir, name), flag|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// lock takes the file lock of the cluster: no other process can run the cluster until unlock, or until
// this process dies. It returns ErrRunning if another process runs the cluster.
func (l location) lock(ctx context.Context) (*os.File, error) {
	file, err := l.open("lock", os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("lock the cluster: %w", err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		holder, _ := os.ReadFile(file.Name())
		pid, _ := strconv.Atoi(string(holder))
		if pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = file.Close()
			return nil, fmt.Errorf("PostgreSQL in %s is %w, pid %d", l.dir, ErrRunning, pid)
		}
		// A child process that was being started when the holder was killed still has the
		// lock for a moment, or the new holder has not written its process id yet.
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock the cluster in %s: %w", l.dir, context.Cause(ctx)), file.Close())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err == nil {
		err = writePID(file)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the cluster: %w", errors.Join(err, file.Close()))
	}
	return file, nil
}

// writePID makes the id of this process the content of a file.
func writePID(file *os.File) error {
	pid := []byte(strconv.Itoa(os.Getpid()))
	if _, err := file.WriteAt(pid, 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(pid)))
}

// unlock releases the lock explicitly, because a child process that is being started may still have
// the file open after it is closed here.
func unlock(file *os.File) {
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
	_ = file.Close()
}

// openLog opens the log for appending, and truncates it if it is larger than 1 MiB.
func (l location) openLog() (*os.File, error) {
	file, err := l.open("postgres.log", os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.Size() > 1<<20 {
		return file, file.Truncate(0)
	}
	return file, nil
}

// socketFolder creates an empty folder with the mode 0700 for the socket of the server: run, or, if the
// path of the socket would be too long or the file system supports no sockets, a folder for
// temporary files, with the link run to it.
func (l location) socketFolder() (string, error) {
	l.removeSocketFolder()
	run := filepath.Join(l.dir, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		return "", err
	}
	if supportsSocket(run) {
		return run, l.account.chown(run)
	}
	if err := os.Remove(run); err != nil {
		return "", err
	}
	var refused []error
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if at, err := l.account.blockedAt(parent); at != "" || err != nil {
			refused = append(refused, fmt.Errorf("%s is closed to the account %s", parent, l.account.name), err)
			continue
		}
		short, err := os.MkdirTemp(parent, "doorward-")
		if err != nil {
			refused = append(refused, err)
			continue
		}
		if !supportsSocket(short) {
			refused = append(refused, fmt.Errorf("%s takes no socket", parent), os.Remove(short))
			continue
		}
		if err := os.Symlink(short, run); err != nil {
			return "", errors.Join(err, os.Remove(short))
		}
		return short, l.account.chown(short)
	}
	return "", fmt.Errorf("found no folder for the server's socket: %w", errors.Join(refused...))
}

// removeSocketFolder removes the folder and the link of socketFolder, also those of an earlier start.
// It ignores errors: the next start removes the rest, or reports the error.
func (l location) removeSocketFolder() {
	run := filepath.Join(l.dir, "run")
	short, err := os.Readlink(run)
	if err == nil && strings.HasPrefix(filepath.Base(short), "doorward-") {
		if info, err := os.Lstat(short); err == nil && info.IsDir() {
			if uid, _ := owner(info); uid == l.account.uid {
				_ = os.RemoveAll(short)
			}
		}
	}
	_ = os.RemoveAll(run)
}

// supportsSocket reports whether a socket can be created in a folder, with a name as long as that of the
// server.
func supportsSocket(dir string) bool {
	listener, err := net.Listen("unix", filepath.Join(dir, ".s.PGTRY."+port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
