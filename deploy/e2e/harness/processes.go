package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// Processes returns the processes with these ids and all their descendants; none where
// there is no /proc.
func Processes(roots ...int) (found []procfs.ProcStat) {
	children := map[int][]procfs.ProcStat{}
	running, _ := procfs.AllProcs()
	for _, p := range running {
		stat, err := p.Stat()
		if err != nil {
			continue // it has ended
		}
		children[stat.PPID] = append(children[stat.PPID], stat)
		if slices.Contains(roots, stat.PID) {
			found = append(found, stat)
		}
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].PID]...)
	}
	return found
}

// signalAll signals processes that may have ended.
func signalAll(pids []int, signal os.Signal) error {
	for _, pid := range pids {
		process, err := os.FindProcess(pid)
		if err == nil {
			err = process.Signal(signal)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	return nil
}

// processesNaming lists the running processes whose command line or working
// directory names this folder. Where the system has no /proc it finds none.
func processesNaming(folder string) (found []string, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, fmt.Errorf("find the folder: %w", err)
	}
	running, _ := procfs.AllProcs()
	for _, p := range running {
		// A process that ends meanwhile has no command line.
		words, _ := p.CmdLine()
		workingDir, _ := p.Cwd()
		command := strings.Join(words, " ")
		if workingDir == folder || strings.HasPrefix(workingDir, folder+"/") || strings.Contains(command, folder) {
			found = append(found, strconv.Itoa(p.PID)+": "+command)
		}
	}
	return found, nil
}

// serverAccount runs servers such as PostgreSQL, which refuse to run as root.
const serverAccount = "postgres"

// Unprivileged returns the command that runs a program as serverAccount where this process
// is root.
func Unprivileged(program string, args ...string) (string, []string) {
	if os.Geteuid() != 0 {
		return program, args
	}
	return "setpriv", append([]string{
		"--reuid", serverAccount, "--regid", serverAccount, "--init-groups", "--pdeathsig", "KILL", "--", program,
	}, args...)
}

// ChownToServers makes serverAccount the owner of files or folders where this process is root.
func ChownToServers(paths ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if out, err := exec.Command("chown", append([]string{serverAccount}, paths...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("chown %v: %w\n%s", paths, err, out)
	}
	return nil
}

// ControlGroup is a folder by which the kernel limits the processes in it.
type ControlGroup string

// Limit is a file of a control group and the value that is written into it.
type Limit struct{ File, Value string }

// NewControlGroup makes a group with a limit: in version 1 of control groups below a
// controller, in version 2 below the root. Only root may.
func NewControlGroup(controller string, v1, v2 Limit) (g ControlGroup, err error) {
	root, limit := "/sys/fs/cgroup", v2
	if _, err := os.Stat(root + "/cgroup.controllers"); err != nil {
		root, limit = filepath.Join(root, controller), v1
	}
	g = ControlGroup(filepath.Join(root, "doorward-"+controller+"-"+strconv.Itoa(os.Getpid())))
	if err := os.Mkdir(string(g), 0o755); err != nil {
		return "", err
	}
	_, err = os.Stat(g.Path(limit.File)) // missing in another kind of file system
	if err == nil {
		err = os.WriteFile(g.Path(limit.File), []byte(limit.Value), 0)
	}
	if err != nil {
		return "", errors.Join(err, g.Remove())
	}
	return g, nil
}

// Path is that of a file of the group.
func (g ControlGroup) Path(file string) string { return filepath.Join(string(g), file) }

// Wrapper is the command that runs another in the group.
func (g ControlGroup) Wrapper() []string {
	return []string{"/bin/sh", "-c", `echo $$ > "$0" && exec "$@"`, g.Path("cgroup.procs")}
}

// Remove deletes the group, whose processes have ended.
func (g ControlGroup) Remove() error { return os.Remove(string(g)) }
