//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/metricstable"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestManagerMetrics: the manager serves metrics of its policies to authorised clients, and a
// migration pod serves its own.
func TestManagerMetrics(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := convertedInGroup(ctx, t, "metrics.example.com")
	const account, role = "metrics-reader", "conversion-operator-metrics-reader"
	run(ctx, t, "kubectl", "-n", scenarios.Namespace, "create", "serviceaccount", account)
	token, err := teller.Run(ctx, "kubectl", "-n", scenarios.Namespace, "create", "token", account)
	expect.NoError(t, err)
	manager := pods(ctx, t, client.MatchingLabels{names.ComponentLabel: "manager"})[0]
	address := net.JoinHostPort(manager.Status.PodIP, "8443")

	if status, _ := scrape(ctx, t, address, ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d, want 401", status)
	}
	if status, _ := scrape(ctx, t, address, token); status != http.StatusForbidden {
		t.Errorf("without the right: %d, want 403", status)
	}
	run(ctx, t, "kubectl", "create", "clusterrolebinding", account, "--clusterrole="+role, "--serviceaccount="+scenarios.Namespace+":"+account)
	want := `conversion_operator_policy_status_condition{condition="Ready",policy="` + crontab.CRD() + `",status="True"} 1`
	// The manager caches a denied request for half a minute.
	expect.Eventually(t, want, func() (bool, string) {
		status, body := scrape(ctx, t, address, token)
		return status == http.StatusOK && strings.Contains(body, want), http.StatusText(status)
	})
	table := metricstable.Table{Page: "../../../api/docs/metrics.md", Name: "OTHER METRICS"}
	table.Names = metricstable.Names(t, table.Page, table.Name)
	table.Check(t, scrapeLeader(ctx, t, token))

	applySample(ctx, t, crontab, crontab.CRDStorage)
	checkMigrationMetrics(ctx, t, crontab, func() string {
		_, body := scrape(ctx, t, address, token)
		return body
	})
	waitPruned(ctx, t, crontab) // the end of the test takes away what the migration may do
}

// scrapeLeader returns the metrics of the leading manager. The other one has not reconciled
// anything.
func scrapeLeader(ctx context.Context, t *testing.T, token string) string {
	t.Helper()
	var leader string
	expect.Eventually(t, "a manager tells that it leads", func() (bool, string) {
		for _, manager := range pods(ctx, t, client.MatchingLabels{names.ComponentLabel: "manager"}) {
			_, body := scrape(ctx, t, net.JoinHostPort(manager.Status.PodIP, "8443"), token)
			if strings.Contains(body, "\nleader_election_master_status{name=\"conversion-operator\"} 1\n") {
				leader = body
			}
		}
		return leader != "", "none does"
	})
	return leader
}

// checkMigrationMetrics checks the metrics of manager and migration pod while the migration waits
// for API servers.
func checkMigrationMetrics(ctx context.Context, t *testing.T, crontab scenarios.CronTab, manager func() string) {
	t.Helper()
	label := `="` + crontab.CRD() + `"`
	migration := func() string {
		running := pods(ctx, t, client.MatchingLabels{names.ComponentLabel: names.MigrationComponent, names.InstanceLabel: names.Child(crontab.CRD())})
		if len(running) == 0 || running[0].Status.PodIP == "" {
			return ""
		}
		return fetch(ctx, t, "http://"+net.JoinHostPort(running[0].Status.PodIP, "8080")+"/metrics")
	}
	waitMetrics(t, map[string]func() string{
		`conversion_operator_policy_migration_state{policy` + label + `,state="Running"} 1`:        manager,
		`conversion_operator_policy_migration_step_info{policy` + label + `,step="Propagating"} 1`: manager,
		`conversion_operator_policy_migration_start_timestamp_seconds{policy` + label + `} `:       manager,
		`conversion_operator_migration_state{crd` + label + `,state="Propagating"} 1`:              migration,
		`conversion_operator_migration_start_timestamp_seconds{crd` + label + `} `:                 migration,
	})
}

// waitMetrics waits until each metric was seen once, where its function reads it. The metrics of a step are
// only there during the step.
func waitMetrics(t *testing.T, wants map[string]func() string) {
	t.Helper()
	expect.Eventually(t, "every metric was seen", func() (bool, string) {
		maps.DeleteFunc(wants, func(want string, metrics func() string) bool { return strings.Contains(metrics(), "\n"+want) })
		return len(wants) == 0, fmt.Sprint("missing: ", slices.Sorted(maps.Keys(wants)))
	})
}

// fetch reads a page without TLS. It returns an empty text if nothing answers.
func fetch(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	expect.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// scrape reads metrics as Prometheus does.
func scrape(ctx context.Context, t *testing.T, address, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	expect.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	// The manager creates its certificate at each start.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	expect.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	expect.NoError(t, err)
	return answer.StatusCode, string(text)
}
