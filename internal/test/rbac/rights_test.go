// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

const root = "../../.."

// TestEveryRightHasAReason: every right has a reason, and every reason a right.
func TestEveryRightHasAReason(t *testing.T) {
	installed, err := Installed(root, "config/default")
	expect.NoError(t, err)
	roles, err := Reasons()
	expect.NoError(t, err)
	var explained []Right
	for _, role := range roles {
		if !strings.HasPrefix(role.Role, "<policy>") {
			explained = append(explained, role.Explained()...)
		}
	}
	slices.SortFunc(explained, compare)
	expect.Equal(t, "what reasons.yaml explains of config/default", installed, explained)
}

// TestGrantedRights: with the component, the manager may not write cluster roles, and has all other
// rights.
func TestGrantedRights(t *testing.T) {
	all, err := Installed(root, "config/default")
	expect.NoError(t, err)
	fewer, err := Installed(root, "internal/test/rbac/testdata/granted-rights")
	expect.NoError(t, err)
	want := slices.DeleteFunc(slices.Clone(all), func(r Right) bool { return r.Role == "ClusterRole/conversion-operator-grants" })
	const definitions = "ClusterRole/conversion-operator-definitions"
	want = append(want, Right{definitions, "customresourcedefinitions.apiextensions.k8s.io", "get"},
		Right{definitions, "endpointslices.discovery.k8s.io", "list"}, Right{definitions, "leases.coordination.k8s.io", "list"})
	slices.SortFunc(want, compare)
	expect.Equal(t, "fewer", want, fewer)
	for _, right := range fewer {
		writes := slices.Contains([]string{"create", "patch", "delete", "update", "escalate", "bind", "*"}, right.Verb)
		if writes && strings.HasPrefix(right.On, "clusterrole") {
			t.Errorf("the component leaves %s", right)
		}
	}
}

// TestManagerCannotEscape: the manager can change neither what confines it nor the APIServices that
// tell groups of CustomResourceDefinitions.
func TestManagerCannotEscape(t *testing.T) {
	installed, err := Installed(root, "config/default")
	expect.NoError(t, err)
	for _, right := range installed {
		if strings.Contains(right.On, "admissionpolic") || strings.HasPrefix(right.On, "apiservices.") || right.On == "*" || right.Verb == "*" {
			t.Errorf("an account of the operator escapes the confinement: %s", right)
		}
	}
}

// TestPage: the page has the current tables.
func TestPage(t *testing.T) {
	roles, err := Reasons()
	expect.NoError(t, err)
	file := filepath.Join(root, "api/docs/rights.md")
	page, err := os.ReadFile(file)
	expect.NoError(t, err)
	begin, end := []byte("<!-- BEGIN RIGHTS -->\n"), []byte("<!-- END RIGHTS -->")
	head, rest, _ := bytes.Cut(page, begin)
	got, tail, found := bytes.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the tables", file)
	}
	want := []byte(Tables(roles))
	if golden.Update() {
		expect.NoError(t, os.WriteFile(file, slices.Concat(head, begin, want, end, tail), 0o600))
		return
	}
	expect.Equal(t, file+", which go test ./internal/test/rbac -update rewrites,", string(want), string(got))
}

func TestReadLog(t *testing.T) {
	file, err := os.Open("testdata/audit.log")
	expect.NoError(t, err)
	defer func() { _ = file.Close() }()
	log, err := ReadLog(file, "system", map[string]bool{"of-before": true})
	expect.NoError(t, err)
	const crds, roles = "customresourcedefinitions.apiextensions.k8s.io", "clusterroles.rbac.authorization.k8s.io"
	want := &Log{
		Used: map[Use]bool{
			{Manager, "", crds, "watch"}: true, {Manager, "", crds, "list"}: true,
			{Manager, "", "clusterrolebindings.rbac.authorization.k8s.io", "create"}: true,
			{Manager, "", roles, "patch"}:                                            true, {Manager, "", roles, "create"}: true, {Manager, "", roles, "escalate"}: true,
			{Manager, "", "/metrics", "get"}:                      true,
			{Manager, "system", "serviceaccounts", "impersonate"}: true,
			{Read, "", "crontabs.example.com", "list"}:            true,
			{Migrate, "default", "crontabs.example.com", "patch"}: true,
		},
		Forbidden: []string{
			`system:serviceaccount:system:a-migrate: patch crontabs/status.example.com in "default": no`,
			`system:serviceaccount:system:conversion-operator: get nodes in "": not you`,
		},
		Refused: []string{`system:serviceaccount:system:conversion-operator: patch ` + crds + ` in "": ValidatingAdmissionPolicy 'a' denied request`},
	}
	expect.Equal(t, "log", want, log)
}

// TestUnused: a right without use and proof is reported.
func TestUnused(t *testing.T) {
	roles := []Role{
		{Role: "ClusterRole/conversion-operator", Rules: []Reason{
			{On: "a", Verbs: []string{"get", "list"}}, {On: "b", Verbs: []string{"get"}, Proof: "TestB"}}},
		{Role: "Role/conversion-operator in conversion-system", Rules: []Reason{{On: "a", Verbs: []string{"get"}}}},
		{Role: "<policy>-read", Rules: []Reason{{On: "<objects>", Verbs: []string{"get", "list"}}}},
		{Role: "ClusterRole/for-people", Rules: []Reason{{On: "a", Verbs: []string{"get"}, Proof: "TestA"}}},
	}
	log := &Log{Used: map[Use]bool{
		{Manager, "", "a", "get"}:                    true,
		{Read, "", "crontabs.example.com", "list"}:   true,
		{Manager, "conversion-system", "a", "watch"}: true,
	}}
	want := []Right{
		{"<policy>-read", "<objects>", "get"},
		{"ClusterRole/conversion-operator", "a", "list"},
		{"Role/conversion-operator in conversion-system", "a", "get"},
	}
	expect.Equal(t, "unused", want, log.Unused(roles))
}

// TestReadLeading: writes without the lease are found, in any order of lines. Reads, dry runs and
// rejected requests are ignored.
func TestReadLeading(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(second int, pod, verb, resource string, code int32) *auditv1.Event {
		return &auditv1.Event{
			User: authenticationv1.UserInfo{Username: "system:serviceaccount:system:conversion-operator",
				Extra: map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/pod-name": {pod}}},
			Verb: verb, ObjectRef: &auditv1.ObjectReference{Resource: resource, Name: "crontabs"}, ResponseStatus: &metav1.Status{Code: code},
			RequestReceivedTimestamp: metav1.NewMicroTime(start.Add(time.Duration(second) * time.Second)),
		}
	}
	dryRun := at(0, "two", "patch", "customresourcedefinitions", 200)
	dryRun.RequestURI = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs?dryRun=All&fieldManager=conversion-operator"
	lines := strings.Builder{}
	for _, event := range []*auditv1.Event{
		dryRun,
		at(2, "one", "patch", "deployments", 200),
		at(1, "one", "create", "leases", 201),
		at(3, "two", "update", "leases", 409),
		at(4, "two", "create", "tokenreviews", 201),
		at(5, "two", "get", "deployments", 200),
		at(6, "one", "update", "leases", 200),
		at(7, "two", "update", "leases", 200),
		at(8, "two", "patch", "deployments", 200),
		at(9, "one", "patch", "deployments", 200),
		at(10, "one", "patch", "deployments", 409),
	} {
		text, err := json.Marshal(event)
		expect.NoError(t, err)
		lines.Write(append(text, '\n'))
	}
	got, err := ReadLeading(strings.NewReader(lines.String()), "system")
	expect.NoError(t, err)
	want := &Leading{Leaders: []string{"one", "two"},
		WithoutLease: []string{`2026-01-01T00:00:09Z: pod one: patch deployments crontabs, while "two" led`}}
	expect.Equal(t, "result", want, got)
}
