package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// secretPrefix is how many bytes of a secret the search in the logs compares. All JWTs begin
// with the same bytes, so that one JWT in the set finds any other.
const secretPrefix = 16

// secretPatterns match the secrets of requests and answers: members of JSON, parameters of
// addresses and forms, cookies, tokens of a session, and segments of paths.
var secretPatterns = []*regexp.Regexp{
	regexp.MustCompile(`"(?:access_token|refresh_token|secret|clientSecret|sptoken|jwtRequest|assertion)":\s*"([^"\\]{16,})"`),
	regexp.MustCompile(`\b(?:access_token|refresh_token|sptoken|jwt|jwtRequest|jwtResponse|token|assertion)=([\w.~-]{16,})`),
	regexp.MustCompile(`(?:^|\n)(?:Set-Cookie: [\w.-]+=|Authorization: Bearer )([\w.~-]{16,})`),
	regexp.MustCompile(`/(?:emailVerificationTokens|passwordResetTokens|authTokens)/([\w.~-]{16,})`),
}

var seenSecrets sync.Map // prefixes

// recordSecrets keeps the secrets of a request and of its answer for LoggedSecrets.
func recordSecrets(address string, a Answer) {
	var text strings.Builder
	text.WriteString(address + "\n")
	_ = a.Header.Write(&text)
	text.Write(a.Body)
	for _, pattern := range secretPatterns {
		for _, found := range pattern.FindAllStringSubmatch(text.String(), -1) {
			seenSecrets.Store(found[1][:secretPrefix], true)
		}
	}
}

// LoggedSecrets returns an error for each log file below a folder that has a secret
// of a request or an answer of this process, or the Password of its accounts, in
// clear, and one where there is no log.
func LoggedSecrets(dir string) (errs []error) {
	seen := map[string]bool{}
	for secret := range seenSecrets.Range {
		seen[secret.(string)] = true
	}
	read := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		log, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(log)
		read += len(text)
		if at := strings.Index(text, Password); at >= 0 {
			errs = append(errs, fmt.Errorf("%s has a password: %s", path, lineAt(text, at)))
		}
		for at := range len(text) - secretPrefix {
			if seen[text[at:at+secretPrefix]] {
				errs = append(errs, fmt.Errorf("%s has a secret: %s", path, lineAt(text, at)))
				break
			}
		}
		return nil
	})
	if err == nil && read == 0 {
		err = fmt.Errorf("no log in %s", dir)
	}
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

func lineAt(text string, at int) string {
	line := text[strings.LastIndexByte(text[:at], '\n')+1:]
	line, _, _ = strings.Cut(line, "\n")
	return line[:min(len(line), 2000)]
}
