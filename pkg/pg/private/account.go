package private

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that runs the server: the user of this process, or systemAccount if that is root,
// as which PostgreSQL refuses to run.
type account struct {
	name     string
	uid, gid uint32
	other    bool // another user than that of this process
}

// systemAccount runs the server of a process of root. It comes with PostgreSQL's package.
const systemAccount = "postgres"

func asRoot() bool { return os.Geteuid() == 0 }

func serverAccount() (account, error) {
	if !asRoot() {
		return account{name: "this user", uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	entry, err := user.Lookup(systemAccount)
	if err != nil {
		return account{}, fmt.Errorf(
			"PostgreSQL refuses to be run by root, and this machine has no account %s to run it: "+
				"start as an ordinary user", systemAccount)
	}
	uid, err := strconv.ParseUint(entry.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(entry.Gid, 10, 32)
	return account{name: entry.Username, uid: uint32(uid), gid: uint32(gid), other: true}, errors.Join(err, err2)
}

func accountName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if entry, err := user.LookupId(id); err == nil {
		return entry.Username
	}
	return id
}

func owner(info os.FileInfo) (uid, gid uint32) {
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Uid, stat.Gid
}

// blockedAt returns the first folder of a path, including the last, that the account has no
// permission to enter; empty if the account can access the path.
func (a account) blockedAt(path string) (string, error) {
	if !a.other {
		return "", nil
	}
	if parent := filepath.Dir(path); parent != path {
		if at, err := a.blockedAt(parent); at != "" || err != nil {
			return at, err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	pass := os.FileMode(0o001)
	if uid, gid := owner(info); uid == a.uid {
		pass = 0o100
	} else if gid == a.gid {
		pass = 0o010
	}
	if info.Mode()&pass == 0 {
		return path, nil
	}
	return "", nil
}

// canRun returns an error that names the folder if the account cannot access the programs.
func (a account) canRun(bin string) error {
	resolved, err := filepath.EvalSymlinks(bin)
	if err != nil {
		return err
	}
	at, err := a.blockedAt(resolved)
	if err != nil {
		return err
	}
	if at != "" {
		return fmt.Errorf("the account %s, which runs it, cannot reach the programs in %s: %s is closed to it", a.name,
			bin, at)
	}
	return nil
}

// chown makes the account the owner of a folder that this process made.
func (a account) chown(path string) error {
	if !a.other {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

func (a account) credential() *syscall.Credential {
	if !a.other {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}
