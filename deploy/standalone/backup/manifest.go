// Package backup writes and reads backups of a data folder of standalone (docs/backup.md): the folder of a backup and
// its backup.json (this file), what is written into it (make.go), and a data folder that is made of it (restore.go).
// The commands of doorward, which know what a deployment consists of, are in deploy/standalone/app/backup.go.
package backup

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// The files of a backup. Those but backup.json have the suffix .age where they are encrypted.
const (
	format          = 1
	manifestFile    = "backup.json" // written last: a folder with it is a whole backup
	dumpFile        = "database.dump"
	secretsFile     = "secrets.json"
	archiveFile     = "files.tar"
	eventsFile      = "events.json" // in files.tar
	encryptedSuffix = ".age"
)

// nameLayout is the form of the name of a backup's folder, and name such a name.
const nameLayout = "20060102T150405Z"

var name = regexp.MustCompile(`^\d{8}T\d{6}Z$`)

// folderFiles are the files of a data folder that a backup has beside the secrets: the API key of the first tenant, and
// the certificates of the folder's own authority.
var folderFiles = []string{"apikey.json", "apiKey-*.properties", "curl.conf", "ca.pem", "ca-key.pem", "server.pem", "server-key.pem"}

// Manifest is backup.json.
type Manifest struct {
	Format     int              `json:"format"`
	Version    string           `json:"version"` // of the release that has made it
	CreatedAt  time.Time        `json:"createdAt"`
	Postgres   int              `json:"postgres"`   // major version
	Migrations map[string]int64 `json:"migrations"` // newest one of each schema
	KeyIDs     []string         `json:"keyIds"`     // of the master keys
	Files      []File           `json:"files"`
}

// File is a file of a backup, and the SHA-256 of its bytes as they are in the folder.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// list returns the folders of the backups below a folder, the oldest first: the whole ones, and what interrupted
// ones have left.
func list(parent string) (whole, parts []string, err error) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		if !name.MatchString(entry.Name()) {
			continue
		}
		folder := filepath.Join(parent, entry.Name())
		if _, err := os.Stat(filepath.Join(folder, manifestFile)); err != nil {
			parts = append(parts, folder)
			continue
		}
		whole = append(whole, folder)
	}
	return whole, parts, nil
}

// Keep removes all but the newest whole backups below a folder, and what interrupted ones have left.
func Keep(parent string, keep int) error {
	whole, parts, err := list(parent)
	if err != nil || len(whole) == 0 {
		return err
	}
	newest := whole[len(whole)-1]
	for _, folder := range parts {
		if folder < newest { // a later one may be in the making
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}
	for _, folder := range whole[:max(0, len(whole)-keep)] {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}
