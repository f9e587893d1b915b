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

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/metricstable"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestManagerMetrics: the manager serves metrics of its policies to authorised clients, and a
// migration pod serves its own.
func TestManagerMetrics(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := converting(ctx, t, "metrics.example.com", storesOld)
	const account = "metrics-reader"
	run(ctx, t, "kubectl", "-n", scenarios.Namespace, "create", "serviceaccount", account)
	token, err := teller.Run(ctx, "kubectl", "-n", scenarios.Namespace, "create", "token", account)
	expect.NoError(t, err)
	expectStatus := func(token string, want int) {
		status, _ := scrape(ctx, managerURL(ctx, t), token)
		expect.Equal(t, fmt.Sprintf("status with the token %q", token), want, status)
	}
	expectStatus("", http.StatusUnauthorized)
	expectStatus(token, http.StatusForbidden)
	run(ctx, t, "kubectl", "create", "clusterrolebinding", account, "--clusterrole=conversion-operator-metrics-reader", "--serviceaccount="+scenarios.Namespace+":"+account)
	// The manager caches a denied request for half a minute.
	ofManager := func() string {
		_, body := scrape(ctx, managerURL(ctx, t), token)
		return body
	}
	waitMetrics(t, map[string]func() string{
		`conversion_operator_policy_status_condition{condition="Ready",policy="` + crontab.CRD() + `",status="True"} 1`: ofManager,
		`leader_election_master_status{name="conversion-operator"} 1`:                                                   ofManager,
	})
	table := metricstable.Table{Page: "../../../api/docs/metrics.md", Name: "OTHER METRICS"}
	table.Names = metricstable.Names(t, table.Page, table.Name)
	table.Check(t, ofManager())

	applySample(ctx, t, crontab, crontab.CRDStorage)
	label := `="` + crontab.CRD() + `"`
	ofMigration := func() string {
		running := ofPolicy(ctx, t, crontab, names.MigrationComponent)
		if len(running) == 0 || running[0].Status.PodIP == "" {
			return ""
		}
		_, body := scrape(ctx, "http://"+net.JoinHostPort(running[0].Status.PodIP, "8080"), "")
		return body
	}
	waitMetrics(t, map[string]func() string{
		`conversion_operator_policy_migration_state{policy` + label + `,state="Running"} 1`:        ofManager,
		`conversion_operator_policy_migration_step_info{policy` + label + `,step="Propagating"} 1`: ofManager,
		`conversion_operator_policy_migration_start_timestamp_seconds{policy` + label + `} `:       ofManager,
		`conversion_operator_migration_state{crd` + label + `,state="Propagating"} 1`:              ofMigration,
		`conversion_operator_migration_start_timestamp_seconds{crd` + label + `} `:                 ofMigration,
	})
	waitEvent(ctx, t, crontab, v1alpha1.ReasonStoredVersionsPruned) // the end of the test takes away what the migration may do
}

// managerURL is the address of the manager that leads. The other one has not reconciled anything.
func managerURL(ctx context.Context, t *testing.T) string {
	t.Helper()
	leader := leaderPod(ctx, t, getLease(ctx, t))
	if leader == nil {
		return ""
	}
	return "https://" + net.JoinHostPort(leader.Status.PodIP, "8443")
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

// scrape reads metrics as Prometheus does. The status is 0 if nothing answers.
func scrape(ctx context.Context, server, token string) (status int, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/metrics", http.NoBody)
	if err != nil {
		return 0, ""
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	// The manager creates its certificate at each start.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, string(text)
}
