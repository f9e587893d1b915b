// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
