package app

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The table of docs/operations.md names the spans of one login by password grant.
// An event that is consumed, and a wait for a connection, are not part of every login.
func spansOfALoginAreThoseOfTheDocumentation(p *product) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		p.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| Span | What it says |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(table, -1)
	if !found || len(rows) < 5 {
		p.Fatalf("the page names %v", rows)
	}
	application := p.verifying()
	p.send("POST", application+"/accounts?registrationWorkflowEnabled=false", `{"email":"jo@example.test","password":"Changeme1!"}`, 201)
	p.spans.Reset()
	form := url.Values{"grant_type": {"password"}, "username": {"jo@example.test"}, "password": {"Changeme1!"}}
	request, err := http.NewRequestWithContext(p.Context(), http.MethodPost, application+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		p.Fatal(err)
	}
	request.SetBasicAuth(p.key.ID, p.key.Secret)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := p.client.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		p.Fatal(answer.Status)
	}
	deadline := time.Now().Add(30 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		var names []string
		for _, span := range p.spans.GetSpans() {
			names = append(names, span.Name)
		}
		missing := slices.DeleteFunc(slices.Clone(rows), func(row []string) bool {
			elsewhere := strings.HasPrefix(row[1], "consume ") || row[1] == "pool.acquire" // only where a query waits
			return elsewhere || slices.Contains(names, row[1])
		})
		if len(missing) == 0 {
			tick.Stop()
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("no span is %v; there are\n%s", missing, strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), "\n"))
		}
	}
}
