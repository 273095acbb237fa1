// Archive packs the files of a folder into a ZIP archive that is the same for the
// same files: .ci/agent calls it with the archive and the folder.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

func pack(archive, folder string) (err error) {
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed := zip.NewWriter(out)
	defer func() { err = errors.Join(err, packed.Close()) }()
	files, err := os.ReadDir(folder) // in the order of their names
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := add(packed, filepath.Join(folder, file.Name()), file.Name()); err != nil {
			return err
		}
	}
	return nil
}

func add(packed *zip.Writer, path, name string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	header := &zip.FileHeader{Name: name, Method: zip.Deflate}
	header.SetMode(0o644)
	if !strings.HasSuffix(name, ".md") {
		header.SetMode(0o755)
	}
	to, err := packed.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, in)
	return err
}
