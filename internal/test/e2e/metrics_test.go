//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/test/story"
)

// TestManagerMetrics: the manager tells of its policies, to who may know.
func TestManagerMetrics(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := convertedInGroup(ctx, t, "metrics.example.com")
	const account, role = "metrics-reader", "conversion-operator-metrics-reader"
	run(ctx, t, "kubectl", "-n", story.Namespace, "create", "serviceaccount", account)
	token, err := teller.Run(ctx, "kubectl", "-n", story.Namespace, "create", "token", account)
	if err != nil {
		t.Fatal(err)
	}
	manager := pods(ctx, t, client.MatchingLabels{plan.ComponentLabel: "manager"})[0]
	address := net.JoinHostPort(manager.Status.PodIP, "8443")

	if status, _ := scrape(ctx, t, address, ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d, want 401", status)
	}
	if status, _ := scrape(ctx, t, address, token); status != http.StatusForbidden {
		t.Errorf("without the right: %d, want 403", status)
	}
	run(ctx, t, "kubectl", "create", "clusterrolebinding", account, "--clusterrole="+role, "--serviceaccount="+story.Namespace+":"+account)
	want := `conversion_operator_policy_status_condition{condition="Ready",policy="` + crontab.CRD() + `",status="True"} 1`
	// The manager remembers for half a minute whom it refused.
	eventually(ctx, t, want, func() (bool, string) {
		status, body := scrape(ctx, t, address, token)
		return status == http.StatusOK && strings.Contains(body, want), http.StatusText(status)
	})
}

// scrape reads metrics as Prometheus does.
func scrape(ctx context.Context, t *testing.T, address, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	// The manager makes its certificate at each start, so nobody can know it.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
