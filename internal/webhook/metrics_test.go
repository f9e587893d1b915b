// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/metricstable"
)

// outcomeFunc implements Converter by a function that returns the outcome.
type outcomeFunc func(object string) (conversion.Outcome, error)

func (f outcomeFunc) Answer(dst, text []byte, _ string, _ func(int64) bool) ([]byte, conversion.Outcome, error) {
	end, err := tree.Skip(text, 0)
	if err != nil {
		return dst, conversion.Outcome{}, err
	}
	object := text[:end]
	outcome, err := f(string(object))
	outcome.Read = len(object)
	return append(dst, object...), outcome, err
}

// scrape returns the metrics of the handler.
func scrape(t *testing.T, handler *Handler) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.metrics.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, MetricsPath, nil))
	expect.Equal(t, "status of a scrape", http.StatusOK, recorder.Code)
	return recorder.Body.String()
}

func newMeasured() *Handler {
	return NewHandler(only(outcomeFunc(func(object string) (conversion.Outcome, error) {
		outcome := conversion.Outcome{From: "v1beta1"}
		switch {
		case strings.Contains(object, "kept"):
			outcome.PreservedBytes, outcome.DroppedValues = 1000, 3
		case strings.Contains(object, "overflow"):
			return outcome, fmt.Errorf("too much: %w", &conversion.OverflowError{Version: "v1beta1"})
		case strings.Contains(object, "large"):
			outcome.Omitted = &conversion.Omitted{}
		case strings.Contains(object, "truncated"):
			return outcome, &conversion.TruncatedError{}
		case strings.Contains(object, "costly"):
			return outcome, &conversion.BudgetError{Cost: 2, Limit: 1}
		case strings.Contains(object, "bad"):
			return outcome, fmt.Errorf("bad")
		case strings.Contains(object, "panic"):
			panic("oh")
		case strings.Contains(object, "elsewhere"):
			outcome.From = ""
		}
		return outcome, nil
	}), [2]string{"v1", "v1beta1"}, [2]string{"v1beta1", "v1"}), HandlerOptions{
		BuildVersion: "v0.0.0", MaxBodyBytes: 1000, Log: logr.Discard(),
	})
}

func TestMetricsCount(t *testing.T) {
	review := func(version string, objects ...string) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"example.com/` + version + `","objects":[` + strings.Join(objects, ",") + `]}`)
	}
	object := func(name string) string { return `{"apiVersion":"example.com/v1beta1","name":"` + name + `"}` }
	const crd = `{crd="crontabs.example.com"`
	const fromTo = crd + `,from="v1beta1",to="v1"`
	succeeds := func(lines ...string) []string {
		return append(lines,
			`request_conversion_duration_seconds_count`+crd+`} 1`,
			`request_duration_seconds_count`+crd+`,result="success"} 1`,
			`requests_total`+crd+`,failure_type="",result="success"} 1`)
	}
	refused := func(failure string) []string {
		return []string{
			`request_duration_seconds_count` + crd + `,result="failure"} 1`,
			`requests_total` + crd + `,failure_type="` + failure + `",result="failure"} 1`,
		}
	}
	fails := func(failure string) []string {
		return append([]string{`conversion_failures_total` + crd + `,failure_type="` + failure + `",from="v1beta1",to="v1"} 1`}, refused(failure)...)
	}
	cases := map[string]struct {
		body string
		busy bool
		want []string
	}{
		"success": {
			body: review("v1", object("a"), object("b")),
			want: succeeds(`conversion_duration_seconds_count` + fromTo + `} 2`),
		},
		"preserved data": {
			body: review("v1", object("kept"), object("a"), object("kept")),
			want: succeeds(
				`conversion_duration_seconds_count`+fromTo+`} 3`,
				`preserved_bytes_sum`+fromTo+`} 2000`,
				`preserved_bytes_count`+fromTo+`} 2`,
				`preserved_values_dropped_total`+fromTo+`} 6`),
		},
		"failure": {
			body: review("v1", object("a"), object("bad"), object("c")),
			want: append(fails("convert_error"),
				`conversion_duration_seconds_count`+fromTo+`} 1`,
				`request_conversion_duration_seconds_count`+crd+`} 1`),
		},
		"overflow": {body: review("v1", object("overflow")), want: fails("overflow")},
		"more than annotations hold": {
			body: review("v1", object("large")),
			want: append(succeeds(`conversion_duration_seconds_count`+fromTo+`} 1`), `truncated_objects_total`+fromTo+`} 1`),
		},
		"truncated":   {body: review("v1", object("truncated")), want: fails("truncated")},
		"over budget": {body: review("v1", object("costly")), want: fails("over_budget")},
		"panic":       {body: review("v1", object("panic")), want: fails("panic")},
		"versions that the ruleset does not have": {
			body: review("v9", object("a"), object("elsewhere")),
			want: succeeds(`conversion_duration_seconds_count` + crd + `,from="other",to="other"} 2`),
		},
		"an object of another version": {
			body: review("v1", object("elsewhere")),
			want: succeeds(`conversion_duration_seconds_count` + crd + `,from="other",to="other"} 1`),
		},
		"not a review":  {body: `{}`, want: refused("invalid_review")},
		"another group": {body: strings.Replace(review("v1", object("a")), "example.com/v1", "example.org/v1", 1), want: refused("invalid_review")},
		"too large":     {body: strings.Repeat(" ", 1001), want: refused("body_too_large")},
		"busy":          {body: review("v1", object("a")), busy: true, want: refused("overloaded")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			handler := newMeasured()
			if tc.busy {
				makeBusy(t, handler)
			}
			before := counted(scrape(t, handler))
			post(handler, tc.body)
			after := counted(scrape(t, handler))
			changed := slices.DeleteFunc(after, func(line string) bool { return slices.Contains(before, line) })
			expect.Equal(t, "metrics", slices.Sorted(slices.Values(tc.want)), slices.Sorted(slices.Values(changed)))
		})
	}
}

var (
	ours  = regexp.MustCompile(`(?m)^` + namespace + `_(.*)$`)
	noise = regexp.MustCompile(`_bucket|_seconds_sum|^bytes_in_flight|_info|_timestamp| 0$`)
)

// counted returns our metrics that are not zero, without those that vary.
func counted(scraped string) []string {
	var lines []string
	for _, match := range ours.FindAllStringSubmatch(scraped, -1) {
		if !noise.MatchString(match[1]) {
			lines = append(lines, match[1])
		}
	}
	return lines
}

// TestSeriesOfAnIdleKind checks that before its first call, a kind has only the series that alerts
// and the dashboard need: a pod may serve a thousand kinds. Probes of the operator, which each kind
// gets in each pod, add none. Calls add a bounded number.
func TestSeriesOfAnIdleKind(t *testing.T) {
	const crd, success = `{crd="crontabs.example.com"`, `requests_total{crd="crontabs.example.com",failure_type="",result="success"}`
	series := func(handler *Handler) (all []string) {
		for _, line := range ours.FindAllStringSubmatch(scrape(t, handler), -1) {
			name, _, _ := strings.Cut(line[1], " ")
			all = append(all, name)
		}
		return all
	}
	want := []string{
		`build_info{goversion="` + runtime.Version() + `",version="v0.0.0"}`,
		`bytes_in_flight` + crd + `}`,
		`bytes_in_flight_limit` + crd + `}`,
		`certificate_expiry_timestamp_seconds` + crd + `}`,
		`preserved_values_dropped_total` + crd + `,from="v1",to="v1beta1"}`,
		`preserved_values_dropped_total` + crd + `,from="v1beta1",to="v1"}`,
		`requests_in_flight` + crd + `}`,
		success,
		`requests_total` + crd + `,failure_type="overloaded",result="failure"}`,
		`ruleset_info` + crd + `,hash="abc"}`,
		`rulesets_failed`,
	}
	handler := newMeasured()
	expect.Equal(t, "series", want, series(handler))
	sendReview(handler, ProbeAgent+"/v1", "example.com/v1", named("a", "kept"))
	sendReview(handler, "", ProbeGroup+"/v1", `{"apiVersion":"`+ProbeGroup+`/v1","kind":"`+ProbeKind+`"}`)
	expect.Equal(t, "series after probes", want, series(handler))
	expect.Equal(t, "probes are counted", true, slices.Contains(counted(scrape(t, handler)), success+" 2"))

	flood := func(versions ...string) {
		for _, version := range versions {
			for _, text := range []string{"kept", "bad", "elsewhere"} {
				sendReview(handler, "", "example.com/"+version, named("a", text))
			}
		}
	}
	flood("v1", "v1beta1", "v7")
	before := len(series(handler))
	flood("v8", "v9")
	expect.Equal(t, "number of series after calls for more versions", before, len(series(handler)))
	expect.Contains(t, "the metrics", scrape(t, handler), "\ngo_goroutines ")
}

func TestMetricsHandlerAnswersNothingElse(t *testing.T) {
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/debug/pprof/": 404, "/ruleset": 404, "/convert": 404} {
		recorder := httptest.NewRecorder()
		newMeasured().metrics.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		expect.Equal(t, path, want, recorder.Code)
	}
}

// scrapeAll returns the metrics of a handler that has every one of them.
func scrapeAll(t *testing.T) string {
	t.Helper()
	handler := newMeasured()
	kind := handler.served.Load().other
	for _, text := range []string{"kept", "large", "overflow", "bad"} {
		sendReview(handler, "", "example.com/v1", named("a", text))
	}
	for _, pair := range kind.metrics.allPairs() {
		for reason := range pair.failures {
			pair.failures[reason].Add(1)
		}
	}
	for reason := range failures {
		kind.metrics.requests[reason].Add(1)
	}
	kind.metrics.admissions[admitted].Add(1)
	return scrape(t, handler)
}

// TestMetricsAreDocumented compares the table in the documentation with the metrics.
func TestMetricsAreDocumented(t *testing.T) {
	table := metricstable.Table{Page: "../../api/docs/metrics.md", Name: "CONVERTER METRICS", Prefix: namespace}
	table.Check(t, scrapeAll(t))
}

// TestAlertsUseExistingLabels checks that the label values in alerts exist.
func TestAlertsUseExistingLabels(t *testing.T) {
	expect.Contains(t, "the metrics", scrapeAll(t), metricstable.Asked(t, "../..", namespace)...)
}

// TestHistogram compares a histogram with one of the library.
func TestHistogram(t *testing.T) {
	got, scale := newHistogram(sizeBounds), []float64{}
	for _, upper := range sizeBounds.upper {
		scale = append(scale, float64(upper))
	}
	want := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "h", Help: "h", Buckets: scale})
	as := prometheus.NewDesc("h", "h", nil, nil)
	collected := make(chan prometheus.Metric, 1)
	if got.collect(collected, as); len(collected) > 0 {
		t.Error("a histogram without observations is exported")
	}
	for _, value := range []int64{0, 1, 64, 65, 1 << 10, 5000, 256 << 10, 256<<10 + 1, 1 << 40} {
		got.observe(value)
		want.Observe(float64(value))
	}
	got.collect(collected, as)
	var gotText, wantText dto.Metric
	expect.NoError(t, errors.Join((<-collected).Write(&gotText), want.Write(&wantText)))
	wantText.Histogram.CreatedTimestamp = nil
	expect.Equal(t, "histogram", wantText.String(), gotText.String())
}
