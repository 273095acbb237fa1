package pkg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// developerMessage is the one style of the texts for developers: a small first
// letter, or a value, and no full stop. Texts may begin with a proper noun. Those that
// clients compare are constants, which the test does not read.
var developerMessage = regexp.MustCompile(`^([a-z_%"\[]|(X\.509|OAuth|HTTPS?|API|JSON|JWT|SAML|SMTP|URL|GET|POST|PATCH)\b).*[^.:;,!\s]$`)

func TestDeveloperMessagesHaveOneStyle(t *testing.T) {
	t.Parallel()
	found := 0
	walk(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") || !strings.Contains(text, ".Because(") {
			return
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			name, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || name.Sel.Name != "Because" {
				return true
			}
			if format, known := literal(call.Args[0]); known {
				found++
				if !developerMessage.MatchString(format) {
					t.Errorf("%s: %q begins with a capital letter or ends with a mark", files.Position(call.Pos()), format)
				}
			}
			return true
		})
	}, ".go")
	if found < 300 {
		t.Errorf("the test has read %d messages only", found)
	}
}

// literal returns the text of a string literal, or of several that are joined.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also
	}
	return "", false
}
