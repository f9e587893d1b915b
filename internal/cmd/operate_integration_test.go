// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/overview"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const crontabs = "crontabs.example.com"

// operateLive follows and changes a policy of an API server. The test itself writes the status.
func operateLive(t *testing.T, writer client.Client, kubeconfig string) {
	plugin := func(args ...string) (stdout, stderr string, err error) {
		t.Helper()
		return run(append(args, "--kubeconfig", kubeconfig)...)
	}
	policy := func() *v1alpha1.ConversionPolicy {
		t.Helper()
		policy := &v1alpha1.ConversionPolicy{}
		expect.NoError(t, writer.Get(t.Context(), client.ObjectKey{Name: crontabs}, policy))
		return policy
	}
	succeeds := func(want string, args ...string) {
		t.Helper()
		stdout, stderr, err := plugin(args...)
		if err != nil || !strings.Contains(stdout, want) {
			t.Errorf("%v: %v, stderr %q; stdout lacks %q:\n%s", args, err, stderr, want, stdout)
		}
	}
	fails := func(code int, want string, args ...string) {
		t.Helper()
		if _, stderr, err := plugin(args...); ExitCode(err) != code || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, want %d; stderr lacks %q:\n%s", args, ExitCode(err), code, want, stderr)
		}
	}

	succeeds("Ready:      Unknown, NotSeen", "status", crontabs)
	fails(2, "the cluster has no ConversionPolicy nothing.example.com", "status", "nothing.example.com")
	fails(2, "the cluster has no ConversionPolicy nothing.example.com", "trigger", "nothing.example.com")
	fails(1, "not Ready after 1ms: crontabs.example.com is at NotSeen", "status", crontabs, "--until-ready", "--timeout=1ms")
	fails(2, `cannot list resource "conversionpolicies"`, "status", "--as=nobody")
	fails(1, "delete the policies, then the fleets, and wait until they are gone:\n  ConversionPolicy crontabs.example.com\n", "uninstall-check")
	fails(2, `cannot list resource "conversionpolicies"`, "uninstall-check", "--as=nobody")

	succeeds("spec.migration.suspend is true", "suspend", crontabs, "--migration")
	succeeds("spec.migration.suspend was already true", "suspend", crontabs, "--migration")
	succeeds("migrations are suspended: it starts after conversion-operator resume crontabs.example.com --migration", "trigger", crontabs, "--text=first")
	succeeds("spec.migration.suspend is false", "resume", crontabs, "--migration")
	succeeds("spec.suspend is true", "suspend", crontabs)
	succeeds("spec.suspend is false", "resume", crontabs)
	fails(2, `spec.migration.trigger is already "first"`, "trigger", crontabs, "--text=first")
	now := policy()
	if now.Spec.Migration.Trigger != "first" || now.Spec.Migration.Suspend || now.Spec.Suspend {
		t.Errorf("spec is %+v", now.Spec)
	}
	if owners := ownersOf(now, "spec.migration.trigger"); !cmp.Equal(owners, []string{fieldManager}) {
		t.Errorf("spec.migration.trigger is of %v", owners)
	}

	applied := &unstructured.Unstructured{}
	applied.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ConversionPolicy"))
	applied.SetName(crontabs)
	expect.NoError(t, unstructured.SetNestedField(applied.Object, false, "spec", "migration", "suspend"))
	expect.NoError(t, writer.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("gitops"), client.ForceOwnership))
	fails(2, "spec.migration.suspend is applied by the field manager gitops", "suspend", crontabs, "--migration")
	succeeds("the manifest that gitops applied has another value", "suspend", crontabs, "--migration", "--force-conflicts")
	succeeds("spec.migration.suspend is false", "resume", crontabs, "--migration", "--force-conflicts")

	followLive(t, writer, kubeconfig, plugin, policy)
	explainLive(t, plugin)
}

// followLive follows a policy until it becomes Ready.
func followLive(
	t *testing.T, writer client.Client, kubeconfig string,
	plugin func(...string) (string, string, error), policy func() *v1alpha1.ConversionPolicy,
) {
	report := func(status metav1.ConditionStatus, reason string, stalled metav1.ConditionStatus) {
		t.Helper()
		now := policy()
		now.Status.ObservedGeneration = now.Generation
		for condition, status := range map[string]metav1.ConditionStatus{v1alpha1.ReadyCondition: status, v1alpha1.StalledCondition: stalled} {
			apimeta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{
				Type: condition, Status: status, Reason: reason, Message: "as the test says", ObservedGeneration: now.Generation,
			})
		}
		expect.NoError(t, writer.Status().Update(t.Context(), now))
	}
	report(metav1.ConditionFalse, v1alpha1.ReasonObjectsFailed, metav1.ConditionTrue)
	if _, stderr, err := plugin("status", "--until-ready"); ExitCode(err) != 1 || !strings.Contains(stderr, "does not become Ready by itself: ObjectsFailed") {
		t.Errorf("%v; stderr is %q", err, stderr)
	}

	report(metav1.ConditionFalse, v1alpha1.ReasonMigrating, metav1.ConditionFalse)
	reading, written := newLines()
	ended := make(chan error)
	go func() {
		root := NewCommand([]string{pluginFile, "status", crontabs, "--until-ready", "--kubeconfig", kubeconfig})
		root.SetOut(written)
		ended <- root.ExecuteContext(t.Context())
		close(written)
	}()
	if line := <-reading; !strings.HasSuffix(line, "crontabs.example.com: Ready=False Migrating: as the test says\n") {
		t.Errorf("line is %q", line)
	}
	report(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, metav1.ConditionFalse)
	if line := <-reading; !strings.HasSuffix(line, "crontabs.example.com: Ready=True Succeeded: as the test says\n") {
		t.Errorf("line is %q", line)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	stdout, _, err := plugin("status", "--until-ready", "-o=json")
	found := overview.Report{}
	expect.NoError(t, json.Unmarshal([]byte(stdout), &found))
	if err != nil || len(found.Policies) != 1 || !found.Policies[0].Settled || found.Policies[0].Ready != metav1.ConditionTrue {
		t.Errorf("%v; report is %s", err, stdout)
	}
}

// explainLive explains objects of the cluster with the policy of the cluster.
func explainLive(t *testing.T, plugin func(...string) (string, string, error)) {
	for _, args := range [][]string{{"ct/c002"}, {"crontabs.example.com", "c002"}, {"CronTab/c002", "--from=v1beta1"}} {
		stdout, stderr, err := plugin(append([]string{"explain", "-n=a"}, args...)...)
		want := `a/c002: v1beta1 → v1

FIELD OF v1   VALUE               FROM v1beta1   RULE                                        VERDICT
.host         "host"   computed   .hostPort      spokes[0].rules[0] format "{host}:{port}"   Exact
.port         "2"      computed   .hostPort      spokes[0].rules[0] format "{host}:{port}"   Exact
.replicas     2        copied     .replicas      -                                           Exact
`
		if diff := cmp.Diff(want, stdout); diff != "" || err != nil {
			t.Errorf("%v: %v, stderr %q; explanation (-want +got):\n%s", args, err, stderr, diff)
		}
	}
	for want, args := range map[string][]string{
		"the cluster has no resource jobx":                                            {"jobx/c002"},
		"the cluster has no crontabs.example.com c999: is it in another --namespace?": {"ct/c999", "-n=a"},
		`--from must be a served version, one of v1beta1, v1, is "v7"`:                {"ct/c002", "--from=v7"},
	} {
		if _, stderr, err := plugin(append([]string{"explain"}, args...)...); stderr != "Error: "+want+"\n" || ExitCode(err) != 2 {
			t.Errorf("%v: stderr is %q, want %q", args, stderr, want)
		}
	}
}

// completeLive checks suggestions from the cluster.
func completeLive(t *testing.T, kubeconfig string) {
	for typed, want := range map[string]string{
		"status": crontabs + "\n:4\n", "trigger": crontabs + "\n:4\n", "audit": "conversionpolicies.conversion-operator.io\nconverterfleets.conversion-operator.io\n" + crontabs + "\n:4\n",
		"status " + crontabs: ":4\n",
	} {
		args := append([]string{completionFile}, strings.Fields(typed)...)
		if got := start(t, append(args, "--kubeconfig="+kubeconfig, "")...); !strings.HasPrefix(got, want) {
			t.Errorf("behind %q it suggests %q, want %q", typed, got, want)
		}
	}
	if got := start(t, completionFile, "verify", "--kubeconfig="+kubeconfig, "--namespace", ""); !strings.HasPrefix(got, "a\nb\ndefault\n") {
		t.Errorf("namespaces are %q", got)
	}
}

// ownersOf returns the field managers of a field.
func ownersOf(policy *v1alpha1.ConversionPolicy, field string) []string {
	var owners []string
	for _, entry := range policy.ManagedFields {
		if owns(entry, field) {
			owners = append(owners, entry.Manager)
		}
	}
	return owners
}

// lines are written one by one.
type lines chan string

func newLines() (reading <-chan string, written lines) {
	written = make(lines)
	return written, written
}

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}
