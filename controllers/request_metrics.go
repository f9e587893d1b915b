// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/operator/apiservers"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// +kubebuilder:rbac:urls=/metrics,verbs=get
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list

const (
	// metricsAge is how long the metrics of an API server are reused for other policies, unless
	// one needs later ones. They are megabytes.
	metricsAge = 5 * time.Minute
	// metricsTimeout bounds reading them.
	metricsTimeout = time.Minute
	// roundsPerServer is how often an address is asked for each API server behind it.
	roundsPerServer = 3
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

// requestMetricsReader reads the request counters of all API servers. One reading serves all
// policies, which ask one after the other.
type requestMetricsReader struct {
	config *rest.Config
	find   findServers
	now    func() time.Time

	read   time.Time
	counts serverCounts
	missed string
}

// serverCounts are the requests for each resource, by the start of the API server.
type serverCounts map[int64]map[schema.GroupVersionResource]int64

func newRequestMetricsReader(config *rest.Config, now func() time.Time) *requestMetricsReader {
	return &requestMetricsReader{config: config, find: newFindServers(config, now), now: now}
}

// findServers returns the addresses and the number of leases of API servers. It is apiservers.Find,
// except in tests.
type findServers func(context.Context) (addresses []string, leases int, err error)

func newFindServers(config *rest.Config, now func() time.Time) findServers {
	return func(ctx context.Context) ([]string, int, error) {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, 0, err
		}
		return apiservers.Find(ctx, client, now())
	}
}

// requests returns the number of requests for one resource, by API server and version.
func (m *requestMetricsReader) requests(ctx context.Context, s step.ReadRequests) observed.BackgroundCheck {
	if m.counts == nil || m.read.Before(s.Since) || m.now().Sub(m.read) > metricsAge {
		if err := m.gather(ctx); err != nil {
			return observed.BackgroundCheck{Reason: "MetricsUnreadable", Message: err.Error()}
		}
	}
	found := &observed.Requests{Missed: m.missed}
	for _, server := range slices.Sorted(maps.Keys(m.counts)) {
		counts := map[string]int64{}
		for resource, count := range m.counts[server] {
			if resource.Group == s.Group && resource.Resource == s.Resource {
				counts[resource.Version] = count
			}
		}
		found.Servers = append(found.Servers, observed.ServerRequests{Started: server, Counts: counts})
	}
	return observed.BackgroundCheck{Requests: found}
}

// gather reads the metrics of all API servers. It fails if it cannot read those of any.
func (m *requestMetricsReader) gather(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	began := m.now()
	addresses, leases, unknown := m.find(ctx)
	servers := max(len(addresses), leases)
	counts, err := m.readEach(ctx, addresses, servers)
	if len(counts) == 0 {
		// The configured address may be the only one that the manager reaches.
		if err = m.readAt(ctx, m.config, counts); err != nil {
			return err
		}
	}
	m.read, m.counts, m.missed = began, counts, ""
	switch {
	case unknown != nil:
		m.missed = "the API servers cannot be counted: " + unknown.Error()
	case len(counts) < servers && err != nil:
		m.missed = fmt.Sprintf("%d of %d API servers answered: %v", len(counts), servers, err)
	case len(counts) < servers || servers == 0:
		m.missed = fmt.Sprintf("%d of %d API servers answered", len(counts), servers)
	}
	return nil
}

// readEach reads the metrics at each address. If one address stands for several API servers, it reads
// there again: each connection may reach another one.
func (m *requestMetricsReader) readEach(ctx context.Context, addresses []string, servers int) (serverCounts, error) {
	counts := serverCounts{}
	rounds := 1
	if servers > len(addresses) {
		rounds = roundsPerServer * servers
	}
	var failed error
	for range rounds {
		failed = nil
		for _, address := range addresses {
			config, err := apiservers.At(m.config, address)
			if err == nil {
				err = m.readAt(ctx, config, counts)
			}
			if err != nil {
				failed = err
			}
		}
		if len(counts) >= servers || ctx.Err() != nil {
			break
		}
	}
	return counts, failed
}

// readAt reads the metrics of the API server that answers.
func (m *requestMetricsReader) readAt(ctx context.Context, config *rest.Config, counts serverCounts) error {
	text, err := apiservers.Open(ctx, config, "/metrics", "text/plain")
	if apierrors.IsForbidden(err) {
		return errors.New("the operator may not get /metrics of the API server: allow its ClusterRole to")
	}
	if err != nil {
		return fmt.Errorf("reading /metrics of the API server: %w", err)
	}
	started, found, err := countRequests(text)
	if err = errors.Join(err, text.Close()); err == nil {
		counts[started] = found
	}
	return err
}

// countRequests sums up the requests for each resource. The counter of a resource may be missing,
// so that the gauge is the only trace of a request; it counts as one.
func countRequests(text io.Reader) (started int64, counts map[schema.GroupVersionResource]int64, err error) {
	requested := map[schema.GroupVersionResource]bool{}
	counts = map[schema.GroupVersionResource]int64{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxMetricsLine)
	for lines.Scan() {
		name, resource, value := parseMetric(lines.Text())
		switch {
		case name == startGauge:
			started = int64(value)
		case name == deprecatedGauge && value > 0:
			requested[resource] = true
		case name == requestCounter:
			counts[resource] += int64(value)
		}
	}
	for resource := range requested {
		counts[resource] = max(counts[resource], 1)
	}
	if lines.Err() == nil && started == 0 {
		return 0, nil, errors.New("/metrics of the API server lacks " + startGauge)
	}
	return started, counts, lines.Err()
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
