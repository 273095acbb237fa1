//go:build !linux

package secure

func adviseHugePages(int) {}
