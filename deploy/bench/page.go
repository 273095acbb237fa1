package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
)

// page measures the sign-in page: its bytes, and how long a browser takes until its form takes input.
func (r *run) page(ctx context.Context) error {
	total, requests, err := r.standalone.pageWeight(ctx)
	if err != nil {
		return err
	}
	r.report.add("hosted pages", "sign-in page over the wire", "kB", "< 60",
		float64(total)/1000).note = strconv.Itoa(requests) + " requests"
	millis, err := r.standalone.timeToForm(ctx, max(r.options.rounds, 3))
	if err != nil {
		r.report.skip("the time to the form of the sign-in page", err)
		return nil
	}
	r.report.add("hosted pages", "GET /sso to a form that takes input", "ms", "< 200", millis...)
	return nil
}

var linkInPage = regexp.MustCompile(`(?:href|src)="(/[^"]+)"`)

// pageWeight gets the sign-in page and all files that it names, as a browser does, and
// returns the bytes of the answers with their headers.
func (s *system) pageWeight(ctx context.Context) (total, requests int, err error) {
	browser := s.client.Browser()
	html, err := browser.Do(ctx, e2e.Get(s.pages+"/"))
	if err != nil {
		return 0, 0, err
	}
	links := append([][]string{{"", "/"}}, linkInPage.FindAllStringSubmatch(string(html.Body), -1)...)
	var received bytes.Buffer
	for _, link := range links {
		request := e2e.Get(s.pages + link[1])
		request.Header = http.Header{"Accept-Encoding": {"gzip"}}
		answer, err := browser.Do(ctx, request)
		if err == nil && answer.Status != http.StatusOK {
			err = errors.New(answer.String())
		}
		if err = errors.Join(err, answer.Header.Write(&received)); err != nil {
			return 0, 0, err
		}
		received.Write(answer.Body)
	}
	return received.Len(), len(links), nil
}

// formObserver is the script that notes when the page has a form whose field takes input.
// The time counts from the beginning of the navigation, before its redirects.
const formObserver = `new MutationObserver((_, observer) => {
	if (!document.querySelector('[aria-busy]') && document.querySelector('form input:enabled')) {
		window.formSeen = performance.now();
		observer.disconnect();
	}
}).observe(document, { subtree: true, childList: true, attributes: true });`

// timeToForm loads the sign-in page in Chromium so many times, each time without
// anything cached and over new connections, and returns the times in milliseconds.
func (s *system) timeToForm(ctx context.Context, times int) (millis []float64, err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	ctx, end := chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(chromedp.ExecPath(chromium), chromedp.NoSandbox,
		chromedp.IgnoreCertErrors, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-component-update", true)))
	defer end()
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("start Chromium: %w", err)
	}
	for range times + 1 {
		took, err := s.loadPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("show the sign-in page: %w", err)
		}
		millis = append(millis, took)
	}
	return millis[1:], nil // during the first load the browser still starts
}

func (s *system) loadPage(ctx context.Context) (millis float64, err error) {
	tab, end := chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	defer end()
	script := cdp.AddScriptToEvaluateOnNewDocumentParams{Source: formObserver}
	if _, err := chromedp.Call(tab, cdp.AddScriptToEvaluateOnNewDocument, script); err != nil {
		return 0, err
	}
	if err := chromedp.Do(tab, chromedp.Navigate(s.host+"/sso?jwtRequest="+s.loginRequest())); err != nil {
		return 0, err
	}
	return chromedp.Run(tab, chromedp.Poll[float64]("window.formSeen", chromedp.WithPollingTimeout(30*time.Second)))
}
