package main

import (
	"io"
	"math"
	"strings"
	"testing"
	"time"
)

func TestARatioComparesTheSameRounds(t *testing.T) {
	product, other := newSeries("product"), newSeries("other")
	product.rates = []float64{10, 50, 30, 8}
	other.rates = []float64{100, 1000, 100, 0} // the machine was fast in one round, and the last is void
	got := product.over(other)
	if got != (Ratio{Median: 0.1, Low: 0.05, High: 0.3}) {
		t.Errorf("the ratio is %+v", got)
	}
	if void := product.over(&series{rates: make([]float64, 4)}); void != (Ratio{}) || void.String() != "-" {
		t.Errorf("a ratio over nothing is %+v", void)
	}
}

func TestMedian(t *testing.T) {
	for _, try := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(try.of); math.Abs(got-try.want) > 1e-9 {
			t.Errorf("the median of %v is %g, want %g", try.of, got, try.want)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.0000617: "0.0000617", 0.2771: "0.277", 1: "1.00", 9.999: "10.00", 31.25: "31.2", 104: "104", 31176.4: "31176"} {
		if got := number(n); got != want {
			t.Errorf("%g is shown as %s, want %s", n, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	read := func(args ...string) (Options, error) { return readOptions(args, io.Discard) }
	t.Run("short changes the defaults and not what is given", func(t *testing.T) {
		o, err := read("-short", "-rounds", "7")
		if err != nil || o.Rounds != 7 || o.Accounts != 100 || o.Duration != 800*time.Millisecond {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("only measures what it names", func(t *testing.T) {
		o, err := read("-only", "get,refresh")
		if err != nil || !o.wants("get") || o.wants("login") || o.wants(startsName) {
			t.Errorf("%+v, %v", o, err)
		}
	})
	for _, refused := range []string{
		"-connections 65", "-connections 0", "-only walk", "-loop half", "-loop open", "-duration 1h", "-rounds 0",
		"-accounts 0", "-rate -1", "-only starts -apikey apikey.json", "fast",
	} {
		t.Run("refuses "+refused, func(t *testing.T) {
			if o, err := read(strings.Fields(refused)...); err == nil {
				t.Errorf("%+v", o)
			}
		})
	}
}
