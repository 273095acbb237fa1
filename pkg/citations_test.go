package pkg_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

// citation is a page and a heading of the docs, as a comment cites it.
var citation = regexp.MustCompile(`docs/([a-z/-]+\.md)(?:#([a-z0-9-]+))?`)

// Every citation of a page of docs in the source leads to the page, and to the
// heading where it names one.
func TestEveryCitationLeadsToItsHeading(t *testing.T) {
	headings, cited := map[string]map[string]bool{}, 0
	walk(t, func(path, text string) {
		for _, found := range citation.FindAllStringSubmatch(text, -1) {
			page, heading := found[1], found[2]
			if headings[page] == nil {
				headings[page] = anchors(filepath.Join("docs", page))
			}
			cited++
			if len(headings[page]) == 0 {
				t.Errorf("%s cites docs/%s, which is not there", path, page)
			} else if heading != "" && !headings[page][heading] {
				t.Errorf("%s cites docs/%s#%s; the page has no such heading", path, page, heading)
			}
		}
	}, ".go", ".sql")
	if cited < 20 {
		t.Errorf("only %d citations were found", cited)
	}
}

// link is a link to a page of the project, or to a heading of the same page.
var link = regexp.MustCompile(`\]\(([^)#:\s]*\.md)?(?:#([^)\s]+))?\)`)

// Every link between pages leads to a page, and to a heading where it names one.
func TestEveryLinkBetweenPagesLeadsToItsHeading(t *testing.T) {
	links := 0
	walk(t, func(path, text string) {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			page, heading := path, found[2]
			if found[1] != "" {
				page = filepath.Join(filepath.Dir(path), found[1])
			}
			links++
			if headings := anchors(page); len(headings) == 0 || heading != "" && !headings[heading] {
				t.Errorf("%s links to %s#%s; there is no such page, or it has no such heading", path, page, heading)
			}
		}
	}, ".md")
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// The list of docs/decisions has every page of the folder.
func TestTheListOfDecisionsHasEveryPage(t *testing.T) {
	list, err := os.ReadFile(filepath.Join(root, "docs/decisions/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/decisions/*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("only %d decisions were found (%v)", len(pages), err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if name != "README.md" && !strings.Contains(string(list), "]("+name+")") {
			t.Errorf("docs/decisions/README.md does not list %s", name)
		}
	}
}

// root is the folder of the project.
const root = ".."

func walk(t *testing.T, visit func(path, text string), extensions ...string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == ".git" || name == ".work" || name == "testdata" || name == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		for _, extension := range extensions {
			if filepath.Ext(path) == extension {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				visit(strings.TrimPrefix(path, root+"/"), string(text))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return found
	}
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, match := range heading.FindAllStringSubmatch(string(text), -1) {
		anchor := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return found
}

// file is a path of the project in the text of a page, with the names that are said to be in it.
var file = regexp.MustCompile("`((?:\\.ci|compose|deploy|docs|gateway|pkg|services)[A-Za-z0-9_./-]*\\.[a-z]+)`" +
	"(?: \\(((?:`[A-Za-z]+`(?:, )?)+)\\))?")

var name = regexp.MustCompile("[A-Za-z]+")

// Every file that a page of docs names is there, and has what is named behind it: "`file` (`name`)".
func TestEveryFileOfThePagesExists(t *testing.T) {
	named := 0
	for _, page := range []string{"architecture.md", "flows.md", "howto.md", "where-is.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range file.FindAllStringSubmatch(string(text), -1) {
			named++
			content, err := os.ReadFile(filepath.Join(root, found[1]))
			if err != nil {
				t.Errorf("docs/%s names %s, which is not there", page, found[1])
				continue
			}
			for _, word := range name.FindAllString(found[2], -1) {
				if !regexp.MustCompile(`\b` + word + `\b`).Match(content) {
					t.Errorf("docs/%s says that %s has %s, which is not there", page, found[1], word)
				}
			}
		}
	}
	if named < 200 {
		t.Errorf("only %d files were found", named)
	}
}

var pathOfGo = regexp.MustCompile(`\b(?:deploy|gateway|pkg|services)/[a-z0-9_/]+\.go\b`)

// Every file that a comment names with its path is there.
func TestEveryFileOfTheCommentsExists(t *testing.T) {
	named := 0
	walk(t, func(path, text string) {
		for line := range strings.Lines(text) {
			_, comment, is := strings.Cut(line, "//")
			if !is {
				continue
			}
			for _, found := range pathOfGo.FindAllString(comment, -1) {
				named++
				if _, err := os.Stat(filepath.Join(root, found)); err != nil {
					t.Errorf("%s names %s, which is not there", path, found)
				}
			}
		}
	}, ".go")
	if named < 40 {
		t.Errorf("only %d files were found", named)
	}
}

// The table of docs/interface/errors.md has every code of the catalogue that is no
// HTTP status, and no other.
func TestThePageOfErrorsHasEveryCode(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/interface/errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Codes\n")
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[int]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for code := range strings.SplitSeq(cells[1], ",") {
				if n, err := strconv.Atoi(strings.TrimSpace(code)); err == nil {
					listed[n] = true
				}
			}
		}
	}
	for _, e := range apierr.All() {
		if e.Code >= 1000 && !listed[e.Code] {
			t.Errorf("docs/interface/errors.md does not list %d", e.Code)
		}
		delete(listed, e.Code)
	}
	for code := range listed {
		t.Errorf("docs/interface/errors.md lists %d, which the catalogue does not have", code)
	}
}
