package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive.
type file struct {
	name    string
	path    string      // where it is; content holds in its place
	content []byte      // nil: that of path
	mode    os.FileMode // 0: 0o644
	owner   int
}

// filesOf returns the files below a folder, with a prefix before their names.
func filesOf(folder, prefix string) (files []file, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files = append(files, file{name: prefix + filepath.ToSlash(name), path: path})
		return err
	})
	return files, err
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	path := filepath.Join(r.to, name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644))
}

// pack writes files, sorted by their names, into a tar archive of the release, compressed unless its name ends in .tar.
func (r *release) pack(name, prefix string, files []file) (err error) {
	path := filepath.Join(r.to, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if strings.HasSuffix(name, ".tar") {
		return writeTar(out, r.at, prefix, files)
	}
	compressed := gzip.NewWriter(out) // without a name and a time
	return errors.Join(writeTar(compressed, r.at, prefix, files), compressed.Close())
}

// writeTar writes files with one time and one owner, so that the same files are the same bytes.
func writeTar(to io.Writer, at time.Time, prefix string, files []file) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	archive := tar.NewWriter(to)
	for _, f := range files {
		if err := addFile(archive, at, prefix, f); err != nil {
			return err
		}
	}
	return archive.Close()
}

func addFile(archive *tar.Writer, at time.Time, prefix string, f file) (err error) {
	header := &tar.Header{Name: prefix + f.name, Mode: 0o644, ModTime: at, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content))}
	if f.mode != 0 {
		header.Mode = int64(f.mode.Perm())
	}
	if strings.HasSuffix(f.name, "/") {
		header.Typeflag = tar.TypeDir
		return archive.WriteHeader(header)
	}
	if f.content != nil {
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(f.content)
		return err
	}
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, in)
	return err
}
