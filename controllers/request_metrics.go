// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// +kubebuilder:rbac:urls=/metrics,verbs=get

const (
	// metricsAge is how long the metrics of an API server are reused for other policies, unless
	// one needs later ones. They are megabytes.
	metricsAge = 5 * time.Minute
	// metricsTimeout bounds reading them.
	metricsTimeout = time.Minute
	// maxMetricsLine is more than the length of any line of them.
	maxMetricsLine = 1 << 20
)

// Stable metrics of an API server: pkg/endpoints/metrics of k8s.io/apiserver. The gauge is 1 after
// a client requested a deprecated version.
const (
	deprecatedGauge = "apiserver_requested_deprecated_apis"
	requestCounter  = "apiserver_request_total"
	startGauge      = "process_start_time_seconds"
)

// requestMetricsReader reads the request counters of an API server. One reading serves all
// policies.
type requestMetricsReader struct {
	config *rest.Config
	now    func() time.Time

	mu     sync.Mutex
	read   time.Time
	server string
	counts map[schema.GroupVersionResource]int64
}

// requests returns the number of requests for one resource, by version.
func (m *requestMetricsReader) requests(ctx context.Context, s step.ReadRequests) observed.BackgroundCheck {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil || m.read.Before(s.Since) || m.now().Sub(m.read) > metricsAge {
		if err := m.gather(ctx); err != nil {
			return observed.BackgroundCheck{Reason: "MetricsUnreadable", Message: err.Error()}
		}
	}
	found := &observed.Requests{Server: m.server, Counts: map[string]int64{}}
	for resource, count := range m.counts {
		if resource.Group == s.Group && resource.Resource == s.Resource {
			found.Counts[resource.Version] = count
		}
	}
	return observed.BackgroundCheck{Requests: found}
}

func (m *requestMetricsReader) gather(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	began := m.now()
	config := rest.CopyConfig(m.config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	text, err := client.Get().AbsPath("/metrics").Stream(ctx)
	if apierrors.IsForbidden(err) {
		return errors.New("the operator may not get /metrics of the API server: allow its ClusterRole to, or rely on time alone")
	}
	if err != nil {
		return fmt.Errorf("reading /metrics of the API server: %w", err)
	}
	server, counts, err := countRequests(text)
	err = errors.Join(err, text.Close())
	if err == nil {
		m.read, m.server, m.counts = began, server, counts
	}
	return err
}

// countRequests sums up the requests for each resource. The counter of a resource may be missing,
// so that the gauge is the only trace of a request; it counts as one.
func countRequests(text io.Reader) (server string, counts map[schema.GroupVersionResource]int64, err error) {
	requested := map[schema.GroupVersionResource]bool{}
	counts = map[schema.GroupVersionResource]int64{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxMetricsLine)
	for lines.Scan() {
		name, resource, value := parseMetric(lines.Text())
		switch {
		case name == startGauge:
			server = strconv.FormatInt(int64(value), 10)
		case name == deprecatedGauge && value > 0:
			requested[resource] = true
		case name == requestCounter:
			counts[resource] += int64(value)
		}
	}
	for resource := range requested {
		counts[resource] = max(counts[resource], 1)
	}
	if lines.Err() == nil && server == "" {
		return "", nil, errors.New("/metrics of the API server lacks " + startGauge)
	}
	return server, counts, lines.Err()
}

var metricLabel = regexp.MustCompile(`\b(group|version|resource)="([^"]*)"`)

// parseMetric parses a line of one of the metrics above. The name is empty for other lines.
func parseMetric(line string) (name string, resource schema.GroupVersionResource, value float64) {
	name, number, _ := strings.Cut(line, " ")
	name, labels, _ := strings.Cut(name, "{")
	if name != startGauge && name != deprecatedGauge && name != requestCounter {
		return "", resource, 0
	}
	if labels != "" {
		// A label's value may have a space in it.
		labels, number, _ = strings.Cut(line, "} ")
	}
	for _, match := range metricLabel.FindAllStringSubmatch(labels, -1) {
		switch match[1] {
		case "group":
			resource.Group = match[2]
		case "version":
			resource.Version = match[2]
		case "resource":
			resource.Resource = match[2]
		}
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return "", resource, 0
	}
	return name, resource, value
}
