package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// File is a static file of the custom pages of a tenant, from its Git repository.
type File struct {
	TenantID  id.ID
	Path      string // without a slash at its beginning
	Content   []byte
	FetchedAt time.Time
}

// ETag is the entity tag of the content.
func (f File) ETag() string {
	sum := sha256.Sum256(f.Content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// File returns a file of a tenant's custom pages, or apierr.NotFound.
func (s *Store) File(ctx context.Context, tenant id.ID, path string) (File, error) {
	return pg.One[File](ctx, s.db, `SELECT tenant_id, path, content, fetched_at FROM site_files
		WHERE tenant_id = $1 AND path = $2`, tenant, path)
}

// maxBackoff bounds the doublings of the interval between the fetches of a repository that fail.
const maxBackoff = 6

// DueRepositories returns at most limit sites whose repository was last fetched longer ago than an
// interval, or was changed in the settings. The interval doubles with each further fetch that fails
// (exponential back-off), and those that have failed come last.
func (s *Store) DueRepositories(ctx context.Context, now time.Time, interval time.Duration, limit int) ([]Site, error) {
	return pg.All[Site](ctx, s.db, `SELECT `+siteColumns+` FROM id_sites WHERE git_repo_url IS NOT NULL
		AND (git_status = 'PENDING' OR git_fetched_at IS NULL
			OR git_fetched_at < $1::timestamptz - make_interval(secs => $2 * power(2, least(greatest(git_failures - 1, 0), $3))))
		ORDER BY git_failures, git_fetched_at NULLS FIRST LIMIT $4`, now, interval.Seconds(), maxBackoff, limit)
}

// ClaimRepository marks a repository as fetched at a time, so that no other replica fetches it, and
// reports whether this call has claimed it.
func (tx *Tx) ClaimRepository(ctx context.Context, site Site, now time.Time) (bool, error) {
	n, err := pg.Exec(ctx, tx, `UPDATE id_sites SET git_fetched_at = $3
		WHERE tenant_id = $1 AND id = $2 AND git_fetched_at IS NOT DISTINCT FROM $4`, site.TenantID, site.ID, now,
		site.GitFetchedAt)
	return n == 1, err
}

// ReplaceFiles replaces the files of a tenant. Of two files with the same path, which a malformed
// repository may have, it keeps the first.
func (tx *Tx) ReplaceFiles(ctx context.Context, tenant id.ID, files []File) error {
	if _, err := pg.Exec(ctx, tx, `DELETE FROM site_files WHERE tenant_id = $1`, tenant); err != nil {
		return err
	}
	for _, f := range files {
		if _, err := pg.Exec(ctx, tx, `INSERT INTO site_files (tenant_id, path, content, fetched_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING`, tenant, f.Path, f.Content, f.FetchedAt); err != nil {
			return err
		}
	}
	return nil
}

// SetGitStatus writes the result of a fetch. Where the settings have changed meanwhile, it counts a
// failure, so that the change does not bring the site to the front, and leaves the status.
func (tx *Tx) SetGitStatus(ctx context.Context, site Site, status string, message *string) error {
	failures := 0
	if status == GitFailed {
		failures = site.GitFailures + 1
	}
	tx.Queue(`UPDATE id_sites SET git_failures = $3 WHERE tenant_id = $1 AND id = $2`, site.TenantID, site.ID, failures)
	_, err := pg.Exec(ctx, tx, `UPDATE id_sites SET git_status = @status, git_message = @message
		WHERE tenant_id = @tenant_id AND id = @id AND git_repo_url = @git_repo_url AND git_branch = @git_branch
			AND git_credential_sealed IS NOT DISTINCT FROM @git_credential_sealed`,
		pg.Named(site, pg.Args{"status": status, "message": message}))
	return err
}
