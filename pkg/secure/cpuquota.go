package secure

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// cpuQuota returns the CPU quota of this process (the CPU limit of its container) in processors, or
// infinity where there is no limit: cpu.max of cgroup v2, or cpu.cfs_quota_us of v1, of the control
// group of the process and of its parents. root is the file system with proc and sys.
func cpuQuota(root fs.FS) float64 {
	quota := math.Inf(1)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return quota
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, group
		if len(parts) != 3 {
			continue
		}
		read, mounts := quotaV1, []string{"sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"}
		switch {
		case parts[0] == "0":
			read, mounts = quotaV2, []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
		case !strings.Contains(","+parts[1]+",", ",cpu,"):
			continue
		}
		for _, mount := range mounts {
			// In a container the mount is the group of the container, and the path may be that of the host.
			for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
				if found, ok := read(root, path.Join(mount, group)); ok {
					quota = min(quota, found)
				}
				if group == "/" {
					break
				}
			}
		}
	}
	return quota
}

// quotaV2 parses "<quota> <period>" or "max <period>".
func quotaV2(root fs.FS, group string) (float64, bool) {
	text, err := fs.ReadFile(root, path.Join(group, "cpu.max"))
	parts := strings.Fields(string(text))
	if err != nil || len(parts) != 2 {
		return 0, false
	}
	return ratio(parts[0], parts[1])
}

// quotaV1 parses the quota, which is -1 for none, and the period.
func quotaV1(root fs.FS, group string) (float64, bool) {
	quota, err := fs.ReadFile(root, path.Join(group, "cpu.cfs_quota_us"))
	period, err2 := fs.ReadFile(root, path.Join(group, "cpu.cfs_period_us"))
	if err != nil || err2 != nil {
		return 0, false
	}
	return ratio(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

func ratio(quota, period string) (float64, bool) {
	q, err := strconv.ParseUint(quota, 10, 63)
	p, err2 := strconv.ParseUint(period, 10, 63)
	if err != nil || err2 != nil || q == 0 || p == 0 {
		return 0, false
	}
	return float64(q) / float64(p), true
}
