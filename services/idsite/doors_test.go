package idsite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// calledByDoors are the methods of other services that are called outside the package journey: what a door needs to
// prove who calls and to shape its answer, and what is no door (the sign-up of tenants, settings).
var calledByDoors = map[string][]string{
	"Directory":   {"AcceptInvitation", "Account", "Directory", "EndSignUp", "PendingSignUp", "Profile", "RegistrationRules", "RequestSignUp", "SignUp", "Tenant"},
	"Application": {"AccountApplications", "Application", "ApplicationByDNSLabel", "FindApplication", "Homes", "SAMLResponse", "SignUp", "VerifySAMLRequest"},
	"OAuth": {"AnswerDevice", "Authorization", "ClientConfig", "DeviceRequest", "EnsureKey", "IssueCode", "KeysOf", "LogoutRequest", "OpenIDClients",
		"SignAssertion", "VerifyJWT"},
	"MFA": nil,
}

// A rule that a door decides for itself differs from that of the next door one day.
func TestADoorLeavesWhatUsersDoToTheJourney(t *testing.T) {
	t.Parallel()
	called := map[string][]string{}
	folder := func(path string) { // of the package whose files are read
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				method, service := peerCall(n)
				if service != "" {
					called[service] = append(called[service], method)
					if !slices.Contains(calledByDoors[service], method) {
						t.Errorf("%s calls %s of the service %s, which the package journey does for all doors", name, method, service)
					}
				}
				return true
			})
		}
	}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != "journey" && path != "idsitetest" {
			folder(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for service, methods := range calledByDoors {
		for _, method := range methods {
			if !slices.Contains(called[service], method) {
				t.Errorf("no door calls %s of the service %s: take it off the list", method, service)
			}
		}
	}
}

// peerCall returns the method of x.peers.Service.Method, or "".
func peerCall(n ast.Node) (method, service string) {
	call, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	peer, ok := call.X.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if _, known := calledByDoors[peer.Sel.Name]; !known {
		return "", ""
	}
	if from, ok := peer.X.(*ast.SelectorExpr); ok && strings.EqualFold(from.Sel.Name, "peers") {
		return call.Sel.Name, peer.Sel.Name
	}
	return "", ""
}
