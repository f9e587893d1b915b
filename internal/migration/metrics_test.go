// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/metricstable"
)

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, MetricsPath, nil))
	if recorder.Code != http.StatusOK {
		t.Fatalf("status %d: %s", recorder.Code, recorder.Body)
	}
	return recorder.Body.String()
}

var (
	ours  = regexp.MustCompile(`(?m)^` + metricsNamespace + `_(.*)$`)
	noise = regexp.MustCompile(`_bucket|_seconds_sum|_info| 0$`)
)

// counted returns our metrics that are not zero, without those that vary.
func counted(scraped string) []string {
	var lines []string
	for _, match := range ours.FindAllStringSubmatch(scraped, -1) {
		if !noise.MatchString(match[1]) {
			lines = append(lines, strings.Replace(match[1], `crd="crontabs.example.com"`, "", 1))
		}
	}
	return lines
}

func measured(engine *Engine) *Metrics {
	engine.Metrics = NewMetrics(testPin.Name, "v0.0.0")
	return engine.Metrics
}

// One object is refused, one is written by another client first, and one patch gets a Retry-After.
func TestMetricsOfARun(t *testing.T) {
	api := newFakeAPI(6)
	throttled := false
	api.onPatch = func(key string) error {
		switch {
		case key == objectKey(1):
			return forbidden("a001")
		case key == objectKey(2) && !throttled:
			throttled = true
			return overloaded(7)
		case key == objectKey(3) && api.objects[key].version != "v1":
			api.write(key, "v1")
		}
		return nil
	}
	engine := newTestEngine(api, &fakeStore{})
	metrics := measured(engine)
	mustRun(t, engine)
	want := []string{
		`object_failures_total{,reason="AdmissionDenied"} 1`,
		`objects_done{} 6`,
		`objects_found{} 6`,
		`objects_total{,outcome="current"} 1`,
		`objects_total{,outcome="failed"} 1`,
		`objects_total{,outcome="rewritten"} 4`,
		`patch_duration_seconds_count{} 9`,
		`patches_in_flight_limit{} 1`,
		`patches_total{code="200",} 6`,
		`patches_total{code="403",} 1`,
		`patches_total{code="409",} 1`,
		`patches_total{code="429",} 1`,
		`state{,state="Completed"} 1`,
	}
	got := counted(scrape(t, metrics))
	got = slices.DeleteFunc(got, func(line string) bool { return strings.HasPrefix(line, "start_timestamp_seconds{} ") })
	expect.Equal(t, "result", want, got)
}

// Two of three patches wait if one per second is allowed.
func TestMetricsOfAThrottledRun(t *testing.T) {
	engine := newTestEngine(newFakeAPI(3), &fakeStore{})
	engine.MaxWritesPerSecond = 1
	metrics := measured(engine)
	mustRun(t, engine)
	expect.Contains(t, "metrics", scrape(t, metrics), metricsNamespace+`_throttled_seconds_total{crd="crontabs.example.com"} 2`)
}

// Prometheus shows that all patches wait.
func TestMetricsOfAnOutage(t *testing.T) {
	api := newFakeAPI(3)
	engine := newTestEngine(api, &fakeStore{})
	metrics := measured(engine)
	var waiting bool
	api.onPatch = func(string) error { return unavailable() }
	api.onDryRun = func(string) error {
		if waiting = strings.Contains(scrape(t, metrics), metricsNamespace+`_waiting{crd="crontabs.example.com"} 1`); waiting {
			api.onPatch = nil
			return nil
		}
		return unavailable()
	}
	mustRun(t, engine)
	expect.Equal(t, "a scrape during the outage shows that the run waits", true, waiting)
	expect.Contains(t, "metrics after the outage", scrape(t, metrics), metricsNamespace+`_waiting{crd="crontabs.example.com"} 0`)
}

// A pod that continues a run shows the counts of previous pods from the start.
func TestMetricsOfAResumedRun(t *testing.T) {
	store := &fakeStore{}
	mustRun(t, newTestEngine(newFakeAPI(4), store))
	engine := newTestEngine(newFakeAPI(0), store)
	metrics := measured(engine)
	mustRun(t, engine)
	got := scrape(t, metrics)
	for _, want := range []string{`objects_done{crd="crontabs.example.com"} 4`, `state{crd="crontabs.example.com",state="Completed"} 1`, `objects_total{crd="crontabs.example.com",outcome="rewritten"} 0`} {
		expect.Contains(t, "metrics", got, metricsNamespace+"_"+want)
	}
}

func TestCodeOfAnUnansweredPatch(t *testing.T) {
	expect.Equal(t, "code", noCode, codeOf(errors.New("connection refused")))
}

// The port serves nothing but metrics, in particular no profiles.
func TestMetricsHandlerAnswersNothingElse(t *testing.T) {
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/debug/pprof/": 404} {
		recorder := httptest.NewRecorder()
		NewMetrics(testPin.Name, "v0.0.0").Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		expect.Equal(t, path+": status", want, recorder.Code)
	}
}

// TestMetricsAreDocumented compares the table in the documentation with the metrics.
func TestMetricsAreDocumented(t *testing.T) {
	table := metricstable.Table{Page: "../../api/docs/metrics.md", Name: "MIGRATION METRICS", Prefix: metricsNamespace}
	table.Check(t, scrape(t, NewMetrics(testPin.Name, "v0.0.0")))
}

// TestAlertsUseExistingLabels checks that the label values in alerts exist from the start.
func TestAlertsUseExistingLabels(t *testing.T) {
	asked := metricstable.Asked(t, "../..", metricsNamespace)
	expect.Contains(t, "metrics", scrape(t, NewMetrics(testPin.Name, "v0.0.0")), asked...)
}
