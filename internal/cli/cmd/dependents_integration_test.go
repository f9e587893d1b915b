//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/dependents"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// dependentsLive runs the command with and without rights, and repairs an object. The definition
// stores v1beta1, so v1 goes.
func dependentsLive(t *testing.T, writer client.Client) {
	search := func(args ...string) (report dependents.Report, stdout, stderr string, code int) {
		t.Helper()
		stdout, stderr, err := run(append([]string{"dependents", crontabs, "--qps=1000"}, args...)...)
		if slices.Contains(args, "-o=json") && ExitCode(err) != exitUnable {
			expect.NoError(t, json.Unmarshal([]byte(stdout), &report))
		}
		return report, stdout, stderr, ExitCode(err)
	}
	if report, _, stderr, code := search("-o=json", "--helm"); code != 0 || len(report.Dependents) > 0 || report.Cost.Objects < 2*objectsEach || report.To != "v1beta1" {
		t.Errorf("exit code %d; stderr is %q; report is %+v", code, stderr, report)
	}
	log := write(t, "audit.log", `{"stage":"ResponseComplete","verb":"get","userAgent":"kubectl","user":{"username":"jo"},"objectRef":{"resource":"crontabs","apiGroup":"example.com","apiVersion":"v1"}}`)
	if _, stdout, _, code := search("--audit-log", log); code != 1 || !strings.Contains(stdout, "jo (kubectl)") {
		t.Errorf("exit code %d; stdout is %q", code, stdout)
	}
	dependentsAsReader(t, writer, search)
	repairLive(t, writer, search)
}

type searchDependents = func(args ...string) (report dependents.Report, stdout, stderr string, code int)

// dependentsAsReader searches as a user who may list only ConfigMaps.
func dependentsAsReader(t *testing.T, writer client.Client, search searchDependents) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "dependents"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}},
	}}
	expect.NoError(t, writer.Create(t.Context(), role))
	expect.NoError(t, writer.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "reader"}},
	}))
	expect.Eventually(t, "the reader may list ConfigMaps", func() (bool, string) {
		report, _, stderr, code := search("--as=reader", "-o=json")
		missed := func(what string) bool {
			return slices.ContainsFunc(report.NotChecked, func(missed dependents.NotChecked) bool { return missed.What == what })
		}
		return code == 3 && missed("secrets") && missed("crontabs.example.com") && !missed("configmaps"), stderr
	})
}

func repairLive(t *testing.T, writer client.Client, search searchDependents) {
	t.Helper()
	owner := &unstructured.Unstructured{Object: map[string]any{"replicas": int64(1)}}
	owner.SetAPIVersion("example.com/v1beta1")
	owner.SetKind("CronTab")
	expect.NoError(t, writer.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "c000"}, owner))
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: "CronTab", Name: "c000", UID: owner.GetUID()},
	}}}
	expect.NoError(t, writer.Create(t.Context(), owned))
	if _, stdout, stderr, code := search("--version=v1"); code != 1 || !strings.Contains(stdout, "OwnerReference") || !strings.Contains(stderr, "dependents found; see the report") {
		t.Errorf("exit code %d; stdout is\n%s\nstderr is\n%s", code, stdout, stderr)
	}
	if _, stdout, _, code := search("--version=v1", "--repair", "--dry-run"); code != 1 || !strings.Contains(stdout, "possible") {
		t.Errorf("exit code %d; stdout is\n%s", code, stdout)
	}
	folder := t.TempDir()
	record, mapped := filepath.Join(folder, "record"), filepath.Join(folder, "map.yaml")
	if _, stdout, stderr, code := search("--version=v1", "--repair", "--record", record, "--helm-map", mapped); code != 0 || !strings.Contains(stdout, "example.com/v1 → example.com/v1beta1") {
		t.Errorf("exit code %d; stdout is\n%s\nstderr is\n%s", code, stdout, stderr)
	}
	repair := dependents.Repair{}
	expect.NoError(t, json.Unmarshal([]byte(readFile(t, record)), &repair))
	expect.NoError(t, writer.Get(t.Context(), client.ObjectKeyFromObject(owned), owned))
	if owned.OwnerReferences[0].APIVersion != "example.com/v1beta1" || repair.ResourceVersionAfter != owned.ResourceVersion || repair.UID != string(owned.UID) {
		t.Errorf("the object is %+v, the record %+v", owned.ObjectMeta, repair)
	}
	expect.Contains(t, "the map", readFile(t, mapped), "newAPI")
}
