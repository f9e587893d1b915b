//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/audit"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// auditLive audits an API server with a definition whose versions differ, and a policy that no
// manager reconciles.
func auditLive(t *testing.T, kubeconfig string) {
	stdout, stderr, err := run("audit", "--kubeconfig", kubeconfig, "-o=json")
	report := audit.Report{}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v; stderr is %q", err, stderr)
	}
	var got []string
	for _, finding := range report.Findings {
		got = append(got, fmt.Sprintf("%s %s %s %s", finding.Severity, finding.CRD, finding.ID, finding.Version))
	}
	want := []string{
		"Error crontabs.example.com NoneLosesFields v1",
		"Warning crontabs.example.com NoneHidesFields v1",
		"Warning crontabs.example.com PolicyNotReady ",
	}
	if diff := cmp.Diff(want, got); diff != "" || ExitCode(err) != 1 || len(report.NotChecked) > 0 {
		t.Errorf("findings (-want +got):\n%s; exit code %d, not checked: %v", diff, ExitCode(err), report.NotChecked)
	}
	if stdout, stderr, err := run("audit", "--kubeconfig", kubeconfig, "crontabs.example.com", "--severity=error", "--no-reads"); ExitCode(err) != 1 ||
		!strings.Contains(stdout, "NoneLosesFields") || !strings.HasPrefix(stderr, "1 definition: 1 error, 0 warnings, 0 notes; 2 less severe not shown") {
		t.Errorf("%v; stdout is\n%s\nstderr is\n%s", err, stdout, stderr)
	}
	if _, stderr, err := run("audit", "--kubeconfig", kubeconfig, "--as=nobody"); ExitCode(err) != 2 || !strings.Contains(stderr, `cannot list resource "customresourcedefinitions"`) {
		t.Errorf("%v; stderr is %q", err, stderr)
	}
}

// auditAsItsRole audits as a user with the audit role only: everything is checked except reads of
// objects.
func auditAsItsRole(t *testing.T, writer client.Client, kubeconfig string) {
	text, err := os.ReadFile("../../config/rbac/audit/role.yaml")
	expect.NoError(t, err)
	role := &rbacv1.ClusterRole{}
	expect.NoError(t, yaml.UnmarshalStrict(text, role))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "auditor"}},
	}
	for _, object := range []client.Object{role, binding} {
		expect.NoError(t, writer.Create(t.Context(), object))
	}
	awaitRights(t, writer)
	for _, test := range []struct {
		args       []string
		notChecked bool
	}{{[]string{"--no-reads"}, false}, {nil, true}} {
		stdout, stderr, err := run(append([]string{"audit", "--kubeconfig", kubeconfig, "--as=auditor", "-o=json"}, test.args...)...)
		report := audit.Report{}
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatalf("%v; stderr is %q", err, stderr)
		}
		if ExitCode(err) != 1 || len(report.Findings) < 3 || len(report.NotChecked) > 0 != test.notChecked {
			t.Errorf("%v: %d findings, not checked: %v; %v", test.args, len(report.Findings), report.NotChecked, err)
		}
	}
}

// awaitRights waits until the API server has seen the binding of the role.
func awaitRights(t *testing.T, writer client.Client) {
	t.Helper()
	expect.Eventually(t, "the auditor may list policies", func() (bool, string) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "auditor",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Group: "conversion-operator.io", Resource: "conversionpolicies"},
		}}
		err := writer.Create(t.Context(), review)
		return err == nil && review.Status.Allowed, fmt.Sprint(err, review.Status)
	})
}
