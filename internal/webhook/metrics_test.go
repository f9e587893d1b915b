// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/metricstable"
)

// outcomeFunc implements Converter by a function that returns the outcome.
type outcomeFunc func(object string) (conversion.Outcome, error)

func (f outcomeFunc) Answer(dst, text []byte, _ string, _ func() bool) ([]byte, conversion.Outcome, error) {
	s := scanner{data: text}
	object := s.value()
	outcome, err := f(string(object))
	outcome.Read = len(object)
	return append(dst, object...), outcome, err
}

// scrape returns the metrics of the handler.
func scrape(t *testing.T, handler *Handler) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.metrics.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, MetricsPath, nil))
	wantEqual(t, "status of a scrape", http.StatusOK, recorder.Code)
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
		BuildVersion: "v0.0.0", MaxBodyBytes: 1000, MaxBytesInFlight: 10000, Log: logr.Discard(),
	})
}

func TestMetricsCount(t *testing.T) {
	review := func(version string, objects ...string) string {
		return v1Review(`{"uid":"u","desiredAPIVersion":"example.com/` + version + `","objects":[` + strings.Join(objects, ",") + `]}`)
	}
	object := func(name string) string { return `{"apiVersion":"example.com/v1beta1","name":"` + name + `"}` }
	const crd = `{crd="crontabs.example.com"`
	const fromTo = crd + `,from="v1beta1",to="v1"`
	cases := map[string]struct {
		body string
		busy bool
		want []string
	}{
		"success": {
			body: review("v1", object("a"), object("b")),
			want: []string{
				`conversion_duration_seconds_count` + fromTo + `} 2`,
				`request_conversion_duration_seconds_count` + crd + `} 1`,
				`request_duration_seconds_count` + crd + `,result="success"} 1`,
				`requests_total` + crd + `,failure_type="",result="success"} 1`,
			},
		},
		"preserved data": {
			body: review("v1", object("kept"), object("a"), object("kept")),
			want: []string{
				`conversion_duration_seconds_count` + fromTo + `} 3`,
				`preserved_bytes_sum` + fromTo + `} 2000`,
				`preserved_bytes_count` + fromTo + `} 2`,
				`preserved_values_dropped_total` + fromTo + `} 6`,
				`request_conversion_duration_seconds_count` + crd + `} 1`,
				`request_duration_seconds_count` + crd + `,result="success"} 1`,
				`requests_total` + crd + `,failure_type="",result="success"} 1`,
			},
		},
		"failure": {
			body: review("v1", object("a"), object("bad"), object("c")),
			want: []string{
				`conversion_duration_seconds_count` + fromTo + `} 1`,
				`conversion_failures_total` + crd + `,failure_type="convert_error",from="v1beta1",to="v1"} 1`,
				`request_conversion_duration_seconds_count` + crd + `} 1`,
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="convert_error",result="failure"} 1`,
			},
		},
		"overflow": {
			body: review("v1", object("overflow")),
			want: []string{
				`conversion_failures_total` + crd + `,failure_type="overflow",from="v1beta1",to="v1"} 1`,
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="overflow",result="failure"} 1`,
			},
		},
		"more than annotations hold": {
			body: review("v1", object("large")),
			want: []string{
				`conversion_duration_seconds_count` + fromTo + `} 1`,
				`request_conversion_duration_seconds_count` + crd + `} 1`,
				`request_duration_seconds_count` + crd + `,result="success"} 1`,
				`requests_total` + crd + `,failure_type="",result="success"} 1`,
				`truncated_objects_total` + fromTo + `} 1`,
			},
		},
		"truncated": {
			body: review("v1", object("truncated")),
			want: []string{
				`conversion_failures_total` + crd + `,failure_type="truncated",from="v1beta1",to="v1"} 1`,
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="truncated",result="failure"} 1`,
			},
		},
		"over budget": {
			body: review("v1", object("costly")),
			want: []string{
				`conversion_failures_total` + crd + `,failure_type="over_budget",from="v1beta1",to="v1"} 1`,
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="over_budget",result="failure"} 1`,
			},
		},
		"panic": {
			body: review("v1", object("panic")),
			want: []string{
				`conversion_failures_total` + crd + `,failure_type="panic",from="v1beta1",to="v1"} 1`,
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="panic",result="failure"} 1`,
			},
		},
		"versions that the ruleset does not have": {
			body: review("v9", object("a"), object("elsewhere")),
			want: []string{
				`conversion_duration_seconds_count` + crd + `,from="other",to="other"} 2`,
				`request_conversion_duration_seconds_count` + crd + `} 1`,
				`request_duration_seconds_count` + crd + `,result="success"} 1`,
				`requests_total` + crd + `,failure_type="",result="success"} 1`,
			},
		},
		"an object of another version": {
			body: review("v1", object("elsewhere")),
			want: []string{
				`conversion_duration_seconds_count` + crd + `,from="other",to="other"} 1`,
				`request_conversion_duration_seconds_count` + crd + `} 1`,
				`request_duration_seconds_count` + crd + `,result="success"} 1`,
				`requests_total` + crd + `,failure_type="",result="success"} 1`,
			},
		},
		"not a review": {
			body: `{}`,
			want: []string{
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="invalid_review",result="failure"} 1`,
			},
		},
		"another group": {
			body: strings.Replace(review("v1", object("a")), "example.com/v1", "example.org/v1", 1),
			want: []string{
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="invalid_review",result="failure"} 1`,
			},
		},
		"too large": {
			body: strings.Repeat(" ", 1001),
			want: []string{
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="body_too_large",result="failure"} 1`,
			},
		},
		"busy": {
			body: review("v1", object("a")), busy: true,
			want: []string{
				`request_duration_seconds_count` + crd + `,result="failure"} 1`,
				`requests_total` + crd + `,failure_type="overloaded",result="failure"} 1`,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			handler := newMeasured()
			if tc.busy {
				handler.limiters.first.maxWait = 0
				if _, err := handler.limiters.first.acquire(t.Context(), new(share), 10000); err != nil {
					t.Fatal(err)
				}
			}
			before := counted(scrape(t, handler))
			post(handler, tc.body)
			after := counted(scrape(t, handler))
			if diff := cmp.Diff(tc.want, slices.DeleteFunc(after, func(line string) bool { return slices.Contains(before, line) })); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
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

// TestMetricsExistFromTheStart checks that all series exist before the first call, so that rates
// include the first failure, and that calls cannot add series.
func TestMetricsExistFromTheStart(t *testing.T) {
	handler := newMeasured()
	before := ours.FindAllString(scrape(t, handler), -1)
	for _, version := range []string{"v1", "v1beta1", "v7", "v8", "v9"} {
		post(handler, v1Review(`{"uid":"u","desiredAPIVersion":"example.com/`+version+`","objects":[{"name":"kept"},{"name":"bad"}]}`))
	}
	after := ours.FindAllString(scrape(t, handler), -1)
	wantEqual(t, "number of series", len(before), len(after))
	for _, want := range []string{`ruleset_info{crd="crontabs.example.com",hash="abc"} 1`, `bytes_in_flight_limit{crd="crontabs.example.com"} 10000`} {
		if !slices.Contains(before, namespace+"_"+want) {
			t.Errorf("%s is missing", want)
		}
	}
	if !strings.Contains(scrape(t, handler), "\ngo_goroutines ") {
		t.Error("the metrics of the Go runtime are missing")
	}
}

func TestMetricsHandlerAnswersNothingElse(t *testing.T) {
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/debug/pprof/": 404, "/ruleset": 404, "/convert": 404} {
		recorder := httptest.NewRecorder()
		newMeasured().metrics.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		wantEqual(t, path, want, recorder.Code)
	}
}

// TestMetricsAreDocumented compares the table in the documentation with the metrics.
func TestMetricsAreDocumented(t *testing.T) {
	table := metricstable.Table{Page: "../../api/docs/metrics.md", Name: "CONVERTER METRICS", Prefix: namespace}
	table.Check(t, scrape(t, newMeasured()))
}

// TestAlertsUseExistingLabels checks that the label values in alerts exist from the start.
func TestAlertsUseExistingLabels(t *testing.T) {
	scraped := scrape(t, newMeasured())
	for _, pair := range metricstable.Asked(t, "../..", namespace) {
		if !strings.Contains(scraped, pair) {
			t.Errorf("%s is missing", pair)
		}
	}
}
