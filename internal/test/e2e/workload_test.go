//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestWorkload shapes converter pods anew while an object is read all the time: they
// listen at another port, with a priority, and with what a patch adds to them.
func TestWorkload(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "workload.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 5, crontab.Object))
	reader := fleet.Read(ctx, crontab.At(crontab.New), "job-0001", func(object *unstructuredObject) error {
		if host, _, _ := unstructured.NestedString(object.Object, "host"); host != "worker-1.example.com" {
			return fmt.Errorf("host is %q", host)
		}
		return nil
	})
	change(ctx, t, crontab, `{"spec":{"workload":{"port":10260,"priorityClassName":"system-cluster-critical","patches":[
		{"target":{"kind":"Deployment"},"patch":"[{\"op\": \"add\", \"path\": \"/spec/template/metadata/labels/team\", \"value\": \"data\"}]"}]}}}`)
	expect.Eventually(t, "all pods are of the new shape, and ready", func() (bool, string) {
		found := pods(ctx, t, client.MatchingLabels{plan.ComponentLabel: plan.ConverterComponent, plan.InstanceLabel: plan.ChildName(crontab.CRD())})
		for _, pod := range found {
			if pod.Labels["team"] != "data" || plan.PortOf(&pod.Spec) != 10260 || pod.Spec.PriorityClassName != "system-cluster-critical" {
				return false, pod.Name + " is of the old shape"
			}
		}
		return len(found) == 2, fmt.Sprintf("%d pods", len(found))
	})
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	if reads, err := reader.Stop(); err != nil {
		t.Errorf("after %d reads: %v", reads, err)
	}
	if proven := getPolicy(ctx, t, crontab.CRD()).Status.Webhook; proven.Available != "2/2" {
		t.Errorf("converter pods: %s", proven.Available)
	}
}
