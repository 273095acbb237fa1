package idsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/idsite/store"
)

const (
	// refreshInterval is the time after which a repository is fetched again.
	refreshInterval = 10 * time.Minute
	// pollInterval is the interval at which the worker looks for repositories to fetch.
	pollInterval = 10 * time.Second
	// maxFetches bounds the fetches at a time, and maxDue the repositories that are looked at for them.
	maxFetches = 8
	maxDue     = 100
	// minRate is the least rate of a response, in bytes of a second, once rateGrace has passed.
	minRate   = 1 << 10
	rateGrace = 5 * time.Second
	// fetchTimeout bounds a fetch.
	fetchTimeout = time.Minute
	// maxFetched bounds the pack that a fetch transfers, maxReferences the list of
	// branches before it, and maxMessage what is read and shown of an error, in bytes.
	maxFetched    = 64 << 20
	maxReferences = 16 << 20
	maxMessage    = 1000
	// maxFiles, maxFile, maxPages and maxPath bound the files of custom pages: their
	// number, the size of one and of all, and that of a path, which is part of an
	// index, in bytes. maxEntries bounds the entries of directories that are read.
	maxFiles   = 2000
	maxFile    = 5 << 20
	maxPages   = 50 << 20
	maxPath    = 1000
	maxEntries = 20_000
)

// Repositories is the worker that fetches custom hosted pages, static files, from the Git
// repositories of the settings: several at a time, and one of each server and of each tenant, so that
// a slow server holds up nobody else.
type Repositories struct {
	svc     *Service
	mu      sync.Mutex
	busy    map[string]id.ID // hosts from which a repository is being fetched, and its tenant
	running sync.WaitGroup
}

// NewRepositories makes the worker. It fetches only from public addresses and from the networks
// that guard allows (SSRF), and only by HTTP: go-git's other transports would not use the guard.
func NewRepositories(svc *Service, guard outbound.Guard) *Repositories {
	transport := guard.Transport()
	transport.ResponseHeaderTimeout = fetchTimeout / 2
	bounded := githttp.NewClient(&http.Client{Transport: limitedTransport{transport, svc.now}, Timeout: fetchTimeout})
	for _, scheme := range []string{"http", "https"} {
		client.InstallProtocol(scheme, bounded)
	}
	for _, scheme := range []string{"file", "git", "ssh"} {
		client.InstallProtocol(scheme, nil)
	}
	return &Repositories{svc: svc, busy: map[string]id.ID{}}
}

// limitedTransport bounds the size of responses.
type limitedTransport struct {
	http.RoundTripper
	now func() time.Time
}

func (l limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	body := &limitedBody{ReadCloser: answer.Body, left: maxFetched, err: errTooLarge, now: l.now, began: l.now()}
	switch {
	case answer.StatusCode != http.StatusOK:
		body.left = maxMessage
	case request.Method == http.MethodGet:
		body.left, body.err = maxReferences, errReferences
	}
	answer.Body = body
	return answer, nil
}

// limitedBody is the body of a response of which only left bytes can be read.
type limitedBody struct {
	io.ReadCloser
	left  int64
	err   error // for a body that is larger
	now   func() time.Time
	began time.Time
	read  int64
}

var (
	errTooLarge   = fmt.Errorf("the repository is larger than %d MB", maxFetched>>20)
	errTooSlow    = fmt.Errorf("the server sends less than %d bytes in a second", minRate)
	errReferences = fmt.Errorf("the list of the branches is larger than %d MB", maxReferences>>20)
)

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.read += int64(n)
	if took := b.now().Sub(b.began); err == nil && took > rateGrace && float64(b.read) < minRate*took.Seconds() {
		return n, errTooSlow
	}
	return n, err
}

// Run fetches repositories that are due, until ctx ends. Each fetch is claimed by one replica.
func (r *Repositories) Run(ctx context.Context) error {
	ctx = telemetry.Untraced(ctx)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if _, err := r.startDue(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "fetch of the repositories of hosted pages failed, retrying", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			r.running.Wait()
			return nil
		case <-ticker.C:
		}
	}
}

// FetchDue fetches the repositories whose settings have changed or whose last fetch is older than
// refreshInterval, and waits for them.
func (r *Repositories) FetchDue(ctx context.Context) error {
	for {
		started, err := r.startDue(ctx)
		r.running.Wait()
		if err != nil || started == 0 {
			return err
		}
	}
}

// startDue starts to fetch repositories that are due, at most maxFetches at a time, and one of each
// host and of each tenant. It returns how many it has started; the others stay due.
func (r *Repositories) startDue(ctx context.Context) (started int, err error) {
	now := r.svc.now()
	sites, err := r.svc.store.DueRepositories(ctx, now, refreshInterval, maxDue)
	if err != nil {
		return 0, err
	}
	for _, site := range sites {
		host := repositoryHost(site)
		if !r.reserve(host, site.TenantID) {
			continue
		}
		ctx := caller.WithTenant(ctx, site.TenantID)
		claimed := false
		err := r.svc.store.Tx(ctx, func(tx *store.Tx) (err error) {
			claimed, err = tx.ClaimRepository(ctx, site, now)
			return err
		})
		if err != nil || !claimed {
			r.release(host)
			if err != nil {
				return started, err
			}
			continue
		}
		started++
		r.running.Go(func() {
			defer r.release(host)
			if err := r.fetch(ctx, site); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "storing the repository of hosted pages failed, retrying", "error", err.Error())
			}
		})
	}
	return started, nil
}

// reserve reports whether a repository of a host may be fetched now for a tenant, and notes that it is.
// A tenant whose settings change while a fetch hangs does not get another one.
func (r *Repositories) reserve(host string, tenant id.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, isBusy := r.busy[host]
	if isBusy || len(r.busy) >= maxFetches || slices.Contains(slices.Collect(maps.Values(r.busy)), tenant) {
		return false
	}
	r.busy[host] = tenant
	return true
}

func (r *Repositories) release(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, host)
}

// repositoryHost is the host of a site's repository.
func repositoryHost(site store.Site) string {
	u, err := url.Parse(strings.TrimSpace(*site.GitRepoURL))
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// fetch replaces the pages of a site by those of its repository. After a failure the old pages
// stay, and gitStatus and gitMessage show the error.
func (r *Repositories) fetch(ctx context.Context, site store.Site) error {
	files, failure := r.files(ctx, site)
	return r.svc.store.Tx(ctx, func(tx *store.Tx) error {
		if failure != nil {
			text := r.errorMessage(site, failure)
			return tx.SetGitStatus(ctx, site, store.GitFailed, &text)
		}
		if err := tx.ReplaceFiles(ctx, site.TenantID, files); err != nil {
			return err
		}
		return tx.SetGitStatus(ctx, site, store.GitOK, nil)
	})
}

// errorMessage returns the text of an error in a form that a column can store, without the
// credential of the repository. The server of the repository may have written that text.
func (r *Repositories) errorMessage(site store.Site, failure error) string {
	text := failure.Error()
	if credential, err := r.svc.gitCredential(site); err == nil && credential != "" {
		user, password, _ := strings.Cut(credential.Reveal(), ":")
		for _, secret := range []string{credential.Reveal(), cmp.Or(password, user)} {
			if plain, err := url.PathUnescape(secret); err == nil && secret != "" {
				text = strings.NewReplacer(secret, SealedKey, plain, SealedKey).Replace(text)
			}
		}
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), maxMessage)], "\uFFFD"), "\x00", "\uFFFD")
}

// files fetches the branch and returns its files, without submodules, symbolic links, and names
// that begin with a dot.
func (r *Repositories) files(ctx context.Context, site store.Site) ([]store.File, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	address := strings.TrimSpace(*site.GitRepoURL)
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return nil, errors.New("only repositories at http and https addresses can be fetched")
	}
	credential, err := r.svc.gitCredential(site)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(address); err == nil && credential != "" {
		u.User = nil
		address = u.Scheme + "://" + credential.Reveal() + "@" + strings.TrimPrefix(u.String(), u.Scheme+"://")
	}
	storage := newPackStorage(ctx)
	repository, err := git.CloneContext(ctx, storage, nil, &git.CloneOptions{
		URL: address, ReferenceName: plumbing.NewBranchReferenceName(*site.GitBranch), SingleBranch: true, Depth: 1,
		Tags: git.NoTags,
	})
	switch {
	case errors.Is(err, outbound.ErrForbidden):
		return nil, errors.New("the address of the repository is in a private network")
	case err != nil:
		return nil, fmt.Errorf("the repository cannot be fetched: %w", err)
	}
	head, err := repository.Head()
	if err != nil {
		return nil, fmt.Errorf("the branch %q cannot be read: %w", *site.GitBranch, err)
	}
	commit, err := repository.CommitObject(head.Hash())
	if err != nil {
		return nil, err
	}
	tree, err := commit.Tree()
	if err != nil {
		return nil, err
	}
	return r.readTree(ctx, site, tree, storage)
}

// readTree reads the files of a directory and of the directories below it. It bounds the entries
// too, because a directory that occurs many times in others is read each time.
func (r *Repositories) readTree(ctx context.Context, site store.Site, tree *object.Tree,
	storage *packStorage) ([]store.File, error) {
	walker := object.NewTreeWalker(tree, true, nil)
	defer walker.Close()
	var files []store.File
	var total int
	for entries := 0; ; entries++ {
		name, entry, err := walker.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if entries == maxEntries {
			return nil, fmt.Errorf("the directories of the repository have more than %d entries", maxEntries)
		}
		if entry.Mode != filemode.Regular && entry.Mode != filemode.Executable || isHidden(name) {
			continue
		}
		if len(name) > maxPath || !utf8.ValidString(name) {
			return nil, fmt.Errorf("a file has a path of more than %d bytes, or one that is not UTF-8", maxPath)
		}
		content, err := storage.file(entry.Hash)
		if err != nil {
			return nil, err
		}
		if total += len(content); total > maxPages || len(files) == maxFiles {
			return nil, fmt.Errorf("the pages have more than %d files or %d MB", maxFiles, maxPages>>20)
		}
		files = append(files,
			store.File{TenantID: site.TenantID, Path: path.Clean(name), Content: content, FetchedAt: r.svc.now()})
	}
	if len(files) == 0 {
		return nil, errors.New("the branch has no files")
	}
	return files, nil
}

// isHidden reports whether a file is not served: its name, or that of a directory above it, begins
// with a dot.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.") || strings.ContainsRune(name, 0)
}
