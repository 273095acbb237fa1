package secure

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestTheQuotaOfTheProcessorsIsRead(t *testing.T) {
	none := math.Inf(1)
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"no groups":                   {nil, none},
		"v2 in a container":           {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5},
		"v2 without a limit":          {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, none},
		"v2 without the controller":   {map[string]string{"proc/self/cgroup": "0::/a\n"}, none},
		"v2 of a group around it":     {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "400000 100000", "sys/fs/cgroup/a/cpu.max": "200000 100000"}, 2},
		"v2 with the host's path":     {map[string]string{"proc/self/cgroup": "0::/docker/x\n", "sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5},
		"v1 in a container":           {map[string]string{"proc/self/cgroup": "3:cpuset:/\n2:cpuacct,cpu:/docker/x\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 1},
		"v1 without a limit":          {map[string]string{"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, none},
		"v1 of its own group":         {map[string]string{"proc/self/cgroup": "1:cpu:/g\n0::/\n", "sys/fs/cgroup/cpu/g/cpu.cfs_quota_us": "300000", "sys/fs/cgroup/cpu/g/cpu.cfs_period_us": "100000"}, 3},
		"nonsense":                    {map[string]string{"proc/self/cgroup": "0::/\nx\n", "sys/fs/cgroup/cpu.max": "a lot"}, none},
		"a period of zero":            {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "1000 0"}, none},
		"the controller cpuset of v1": {map[string]string{"proc/self/cgroup": "1:cpuset:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "1"}, none},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := cpuQuota(root); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWorkersFollowTheQuota(t *testing.T) {
	none := math.Inf(1)
	for _, c := range []struct {
		configured, processors int
		quota                  float64
		workers                int
		share                  float64
	}{
		{0, 2, none, 2, 1}, {5, 2, none, 5, 1}, {1, 2, none, 1, 1},
		{0, 8, 1, 1, 0.8}, {4, 8, 1, 1, 0.8}, {0, 8, 0.5, 1, 0.4}, {0, 8, 2.5, 2, 1}, {0, 8, 2, 2, 0.8}, {1, 8, 2, 1, 1}, {0, 2, 16, 2, 1},
	} {
		workers, share := poolSize(c.configured, c.processors, c.quota)
		if workers != c.workers || math.Abs(share-c.share) > 1e-9 {
			t.Errorf("size(%d, %d, %v) = %d, %v; want %d, %v", c.configured, c.processors, c.quota, workers, share, c.workers, c.share)
		}
	}
}
