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

// account is the user that runs the server. PostgreSQL refuses to run as root, so that it is another
// user if this process is root.
type account struct {
	name     string
	uid, gid uint32
	other    bool // another user than that of this process
}

func asRoot() bool { return os.Geteuid() == 0 }

// ourAccount returns the account for a new cluster. If this process is root, it prefers postgres, the
// user of PostgreSQL's package, because other programs also run as nobody.
func ourAccount() (account, error) {
	if !asRoot() {
		return account{name: "this user", uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		entry, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(entry.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(entry.Gid, 10, 32)
		if err != nil {
			continue
		}
		return account{name: name, uid: uint32(uid), gid: uint32(gid), other: true}, nil
	}
	return account{}, errors.New("PostgreSQL refuses to be run by root, and this machine has " +
		"neither the account postgres nor nobody to run it: start as an ordinary user")
}

// ownerOf returns the account of an existing cluster. If this process is root, it is the owner of the
// cluster, so that root can run a cluster that another user has created.
func ownerOf(info os.FileInfo) (account, error) {
	uid, gid := owner(info)
	if !asRoot() {
		if uid != uint32(os.Geteuid()) {
			return account{}, fmt.Errorf("it belongs to the account %s: start as that account or as root", accountName(uid))
		}
		return ourAccount()
	}
	if uid == 0 {
		return ourAccount()
	}
	return account{name: accountName(uid), uid: uid, gid: gid, other: true}, nil
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
		return fmt.Errorf("the account %s, which runs it, cannot reach the programs in %s: %s is closed to it", a.name, bin, at)
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
