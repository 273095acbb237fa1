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

// elsewhere holds the clusters whose data folder the server's account cannot
// reach: root's home, for one, is closed to everybody else.
const fallbackFolder = "/var/lib/doorward"

// port names the socket; nothing listens on a network.
const port = "5432"

// Scratch returns a folder for clusters that may be lost with the machine: in
// memory where there is plenty, since most of a first start is writing files.
func Scratch() string {
	const memory, plenty = "/dev/shm", 2 << 30
	var volume syscall.Statfs_t
	if err := syscall.Statfs(memory, &volume); err == nil && uint64(volume.Bavail)*uint64(volume.Bsize) > plenty {
		return memory
	}
	return os.TempDir()
}

// location is the folder of one cluster and the account that runs it. It holds
//
//	data/          the cluster, complete since the moment it has this name
//	data.new-*     a cluster in the making, worthless if the making was cut short
//	run            the socket's folder, or a link to it
//	lock           locked by the process that runs the cluster, and its id
//	postgres.log   unless the log goes elsewhere
//
// Under root the folder itself stays root's, and data and run are the
// account's, so that the account can plant no link for root to follow.
type location struct {
	dir     string // absolute, without links
	account account
}

func (l location) data() string { return filepath.Join(l.dir, "data") }

// locate finds or makes the folder for a cluster whose home is Dir.
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
		return location{}, fmt.Errorf("%s says that its cluster lies in %s, which is gone: bring that back, or delete %s to start again", dir,
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
		return location{}, fmt.Errorf("the cluster in %s belongs to another account: start as that account or as root", resolved)
	}
	if err != nil {
		return location{}, fmt.Errorf("PostgreSQL's folder: %w", err)
	}
	account, err := ownerOf(info)
	if err != nil {
		return location{}, fmt.Errorf("the cluster in %s: %w", resolved, err)
	}
	if uid, _ := owner(info); asRoot() && uid == 0 {
		// Root made this folder and no cluster in it yet.
		if err := os.Chmod(resolved, 0o711); err != nil {
			return location{}, err
		}
	}
	at, err := account.blockedAt(resolved)
	if err != nil {
		return location{}, err
	}
	if at == "" {
		return location{dir: resolved, account: account}, nil
	}
	// An empty folder may be replaced by a link; os.Remove refuses any other.
	if dir == resolved && os.Remove(dir) == nil {
		return createLocation(dir)
	}
	return location{}, fmt.Errorf("the account %s, which runs PostgreSQL, cannot reach %s: %s is closed to it", account.name, resolved, at)
}

// create makes the folder, or a link in its place to one that the account can
// reach. Missing parents are made so that it can reach those.
func createLocation(dir string) (location, error) {
	account, err := ourAccount()
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
			if errors.Is(err, os.ErrExist) { // another launcher was faster
				return locate(dir)
			}
			return location{}, err
		}
	}
	return location{dir: resolved, account: account}, nil
}

// open opens a file of the launcher's in the folder, creating it for the account that
// owns the folder.
func (l location) open(name string, flag int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(l.dir, name), flag|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if asRoot() {
		info, err := os.Stat(l.dir)
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		uid, gid := owner(info)
		if err := file.Chown(int(uid), int(gid)); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return file, nil
}

// lock makes this process the only one that runs the cluster, until the file is
// closed or the process dies.
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
		// A child that was being born when the holder was killed has the lock
		// for another moment, or the new holder is about to write its id.
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock the cluster in %s: %w", l.dir, context.Cause(ctx)), file.Close())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err == nil {
		err = file.Truncate(int64(len(strconv.Itoa(os.Getpid()))))
	}
	if err != nil {
		return nil, fmt.Errorf("lock the cluster: %w", errors.Join(err, file.Close()))
	}
	return file, nil
}

// unlock says so, because a child that is just being born may hold the file open
// beyond a mere close.
func unlock(file *os.File) {
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
	_ = file.Close()
}

// openLog appends to the log, but begins it again once it is large: the server
// writes a few lines at each start and stop.
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

// socketFolder makes an empty 0700 folder for the server's socket: here, or,
// where a socket's path would be too long or the file system has no sockets, in
// the folder for temporary files, with a link to it so that it is found again.
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

// dropSocketFolder removes what socketFolder made, now or in an earlier life.
// What remains after an error is replaced or reported at the next start.
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

// takesSocket finds out by trying, with a name as long as the server's.
func supportsSocket(dir string) bool {
	listener, err := net.Listen("unix", filepath.Join(dir, ".s.PGTRY."+port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
