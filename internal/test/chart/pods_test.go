//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/localcluster"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestMain lets this program act as a part of the local cluster, which runs it.
func TestMain(m *testing.M) {
	localcluster.PlayRole()
	m.Run()
}

// run runs a command, and returns its output.
func run(ctx context.Context, t *testing.T, line string) (string, error) {
	t.Helper()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	command.Dir = filepath.Join(config, "..")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	t.Logf("$ %s\n%s", line, output.String())
	return output.String(), err
}

func succeeds(ctx context.Context, t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if output, err := run(ctx, t, line); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, output)
		}
	}
}

// TestInRealPods runs what the chart installs: a kind converts, helm uninstall is refused and says why,
// and objects are read at both versions all the time. When the policy is gone, everything is.
func TestInRealPods(t *testing.T) {
	ctx := t.Context()
	const (
		helm   = "bin/tools/helm --namespace operator "
		sample = "config/samples/crontab-hostport/"
	)
	succeeds(ctx, t,
		"kubectl create namespace operator",
		"kubectl label namespace operator pod-security.kubernetes.io/enforce=restricted",
		helm+"install conversions config/chart --wait --timeout=5m --set 'extraArgs={--propagation-delay=5s}'",
		"kubectl apply -f "+sample+"3-crd-both.yaml -f "+sample+"2-policy.yaml",
		"kubectl wait --for=condition=Ready conversionpolicy/crontabs.example.com --timeout=5m",
		"kubectl apply -f "+sample+"objects.yaml",
		helm+"test conversions --timeout=5m",
		helm+"upgrade conversions config/chart --wait --timeout=5m --set 'extraArgs={--propagation-delay=5s}' --set guard.enabled=true",
	)
	said, err := run(ctx, t, helm+"uninstall conversions --timeout=5m")
	if err == nil || !strings.Contains(said, "ConversionPolicy crontabs.example.com") {
		t.Errorf("helm uninstall is not refused, or does not say why: %v", err)
	}
	succeeds(ctx, t,
		"kubectl get crontabs.v1.example.com,crontabs.v1beta1.example.com -A",
		helm+"rollback conversions 2 --wait --timeout=5m",
		"kubectl delete crontabs.example.com --all -A",
		"kubectl delete conversionpolicy crontabs.example.com --wait=false",
		// The policy waits until one version is served.
		`kubectl patch crd crontabs.example.com --type=json -p '[{"op":"replace","path":"/spec/versions/1/served","value":false}]'`,
		"kubectl wait --for=delete conversionpolicy/crontabs.example.com --timeout=5m",
		"kubectl delete converterfleets --all --timeout=5m",
		helm+"uninstall conversions --wait --timeout=5m",
	)
	left, err := run(ctx, t, "kubectl -n operator get deployments,services,secrets,jobs,pods -o name")
	expect.NoError(t, err)
	if left != "" {
		t.Errorf("after the uninstallation there is:\n%s", left)
	}
}
