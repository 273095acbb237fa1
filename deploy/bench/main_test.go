package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	read := func(args ...string) (options, error) { return readOptions(args, io.Discard) }
	t.Run("short changes the defaults and not what is given", func(t *testing.T) {
		o, err := read("-short", "-rounds", "7")
		if err != nil || o.Rounds != 7 || o.Accounts != 100 || o.Duration != 400*time.Millisecond {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("only measures what it names", func(t *testing.T) {
		o, err := read("-only", "get,refresh")
		if err != nil || !o.wants("get") || o.wants("login", "starts") {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("a running deployment is not searched by scale unless its database is named", func(t *testing.T) {
		o, err := read("-apikey", "apikey.json", "-database", "")
		if err != nil || o.wants("scale") || !o.wants("get") {
			t.Errorf("%+v, %v", o, err)
		}
		if o, err = read("-apikey", "apikey.json", "-database", "postgres://"); err != nil || !o.wants("scale") {
			t.Errorf("%+v, %v", o, err)
		}
	})
	for _, refused := range []string{
		"-connections 65", "-connections 0", "-only walk", "-duration 1h", "-rounds 0", "-accounts 0", "-large 10",
		"-directories a,b", "-distributed -apikey apikey.json", "fast",
	} {
		t.Run("refuses "+refused, func(t *testing.T) {
			if o, err := read(strings.Fields(refused)...); err == nil {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for n, want := range map[float64]string{
		0: "", 0.0000617: "6.17e-05", 0.2771: "0.28", 1: "1.00", 31.25: "31.2", 104: "104", 31176.4: "31176",
	} {
		if got := number(n); got != want {
			t.Errorf("%g is shown as %s, want %s", n, got, want)
		}
	}
}

func TestTheReportIsOneTableWithWhatFailedAndWhatWasSkipped(t *testing.T) {
	r := newReport(options{Rounds: 3}, time.Now())
	all := newOutcome(time.Second)
	all.count(2*time.Millisecond, nil)
	all.count(0, refusal{429, "too many requests"})
	w := row{Section: "operations", Name: "get", Unit: "/s", Value: spread{500, 400, 600}, Against: "row", Ratio: spread{0.7, 0.65, 0.75}}
	r.add(w.figures(all))
	r.skip("quota", "control groups cannot be written here")
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"OPERATIONS", "500", "400", "600", "row", "0.70", "0.65", "0.75", "2.00",
		"1 x 429, for example too many requests", "skipped quota: control groups"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the report:\n%s", want, out.String())
		}
	}
}
