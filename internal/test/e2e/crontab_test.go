//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

type unstructuredObject = unstructured.Unstructured

// inGroup returns the CronTab of the hostPort story in another group, so that a test has its own
// CRD, and deletes it when the test ends.
func inGroup(t *testing.T, group string) scenarios.CronTab {
	t.Helper()
	crontab := scenarios.HostPort()
	t.Cleanup(func() { remove(t, "crontabs."+group) })
	inExample := crontab.Object
	crontab.Group = group
	crontab.Object = func(i int) *unstructuredObject {
		object := inExample(i)
		object.SetAPIVersion(group + "/" + crontab.Old)
		return object
	}
	return crontab
}

// converting returns a CronTab in a group that converts by the sample's rules, in pods of its own, and
// has ten objects at the old version. The version that is stored is that of the manifest.
func converting(ctx context.Context, t *testing.T, group string, stores func(scenarios.CronTab) (manifest string)) scenarios.CronTab {
	t.Helper()
	crontab := inGroup(t, group)
	applySample(ctx, t, crontab, stores(crontab))
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), objects, crontab.Object))
	return crontab
}

const objects = 10

func storesOld(crontab scenarios.CronTab) string { return crontab.CRDBoth }

func storesNew(crontab scenarios.CronTab) string { return crontab.CRDStorage }

// remove deletes a CRD with its objects, which may need the converter, and then the policy.
func remove(t *testing.T, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it has ended
	for _, object := range []client.Object{
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}},
	} {
		if err := client.IgnoreNotFound(cluster.Delete(ctx, object)); err != nil {
			t.Error(err)
		}
		waitGone(ctx, t, object)
	}
}

func waitGone(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	expect.Eventually(t, fmt.Sprintf("%T %s is gone", object, object.GetName()), func() (bool, string) {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), fmt.Sprint(err, object.GetFinalizers())
	})
}

// applySample applies a sample manifest in the CronTab's group.
func applySample(ctx context.Context, t *testing.T, crontab scenarios.CronTab, file string) {
	t.Helper()
	object := &unstructuredObject{}
	expect.NoError(t, yaml.Unmarshal([]byte(readSample(t, crontab, file)), object))
	if file == crontab.Policy {
		expect.NoError(t, unstructured.SetNestedMap(object.Object, map[string]any{"type": "Dedicated"}, "spec", "workload")) // pods of its own
	}
	err := cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("author"), client.ForceOwnership)
	expect.NoError(t, err)
}

// readSample reads a sample manifest, and replaces its group by the CronTab's.
func readSample(t *testing.T, crontab scenarios.CronTab, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(teller.Dir, crontab.Samples, file))
	expect.NoError(t, err)
	return strings.NewReplacer("crontabs.example.com", crontab.CRD(), "group: example.com", "group: "+crontab.Group,
		"apiVersion: example.com/", "apiVersion: "+crontab.Group+"/", "shortNames: [ct]", "").Replace(string(text))
}

// get reads an object: if its kind has namespaces, the one in the operator's.
func get[T client.Object](ctx context.Context, t *testing.T, name string, object T) T {
	t.Helper()
	expect.NoError(t, cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: name}, object))
	return object
}

func getPolicy(ctx context.Context, t *testing.T, crontab scenarios.CronTab) *v1alpha1.ConversionPolicy {
	t.Helper()
	return get(ctx, t, crontab.CRD(), &v1alpha1.ConversionPolicy{})
}

func getCRD(ctx context.Context, t *testing.T, crontab scenarios.CronTab) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return get(ctx, t, crontab.CRD(), &apiextensionsv1.CustomResourceDefinition{})
}

// change merges a patch into the CronTab's policy.
func change(ctx context.Context, t *testing.T, crontab scenarios.CronTab, patch string) {
	t.Helper()
	expect.NoError(t, cluster.Patch(ctx, getPolicy(ctx, t, crontab), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// waitReady waits until the policy is Ready with a reason.
func waitReady(ctx context.Context, t *testing.T, crontab scenarios.CronTab, reason string) {
	t.Helper()
	expect.Eventually(t, crontab.CRD()+" is ready: "+reason, func() (bool, string) {
		ready := apimeta.FindStatusCondition(getPolicy(ctx, t, crontab).Status.Conditions, v1alpha1.ReadyCondition)
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.Reason == reason, fmt.Sprintf("%+v", ready)
	})
}

// waitMessage waits until a condition of the policy has a reason, and a text in its message.
func waitMessage(ctx context.Context, t *testing.T, crontab scenarios.CronTab, condition, reason, text string) (message string) {
	t.Helper()
	expect.Eventually(t, condition+" is "+reason, func() (bool, string) {
		found := apimeta.FindStatusCondition(getPolicy(ctx, t, crontab).Status.Conditions, condition)
		if found == nil {
			return false, "no condition"
		}
		message = found.Message
		return found.Reason == reason && strings.Contains(message, text), found.Reason + ": " + message
	})
	return message
}

// waitEvent waits for an event of the policy: events are written after the status.
func waitEvent(ctx context.Context, t *testing.T, crontab scenarios.CronTab, reason string) {
	t.Helper()
	selector := fields.Set{"regarding.uid": string(getPolicy(ctx, t, crontab).UID), "reason": reason}.AsSelector()
	expect.Eventually(t, "there is an event "+reason, func() (bool, string) {
		events := &eventsv1.EventList{}
		expect.NoError(t, cluster.List(ctx, events, &client.ListOptions{FieldSelector: selector}))
		return len(events.Items) > 0, fmt.Sprint(getPolicy(ctx, t, crontab).Status.Conditions)
	})
}

// errWrong is that an object differs from what was written.
var errWrong = errors.New("wrong")

// readBoth reads an object at both versions, and compares it with what was written at the old one. At least
// one of the versions is converted.
func readBoth(ctx context.Context, crontab scenarios.CronTab, want *unstructuredObject) error {
	old, err := fleet.Get(ctx, crontab.At(crontab.Old), want.GetName())
	if err != nil {
		return err
	}
	if old.Object["hostPort"] != want.Object["hostPort"] {
		return fmt.Errorf("%w: %s is %v at %s, and was written as %v", errWrong, want.GetName(), old.Object["hostPort"], crontab.Old, want.Object["hostPort"])
	}
	object, err := fleet.Get(ctx, crontab.At(crontab.New), want.GetName())
	if err != nil {
		return err
	}
	return atNew(object, want)
}

// atNew compares an object at the new version with what was written at the old one.
func atNew(object, want *unstructuredObject) error {
	got := fmt.Sprintf("%v:%v", object.Object["host"], object.Object["port"])
	if object.GetName() != want.GetName() || got != want.Object["hostPort"] {
		return fmt.Errorf("%w: %s is %s at %s, want %s as %v", errWrong, object.GetName(), got, object.GetAPIVersion(), want.GetName(), want.Object["hostPort"])
	}
	return nil
}

// readAll reads the objects of converting at both versions.
func readAll(ctx context.Context, crontab scenarios.CronTab) error {
	var errs []error
	for i := range objects {
		errs = append(errs, readBoth(ctx, crontab, crontab.Object(i)))
	}
	return errors.Join(errs...)
}

// readsUntilRight reads until many consecutive reads succeed, and returns the number of failures before.
// Wrong data fails the test.
func readsUntilRight(ctx context.Context, t *testing.T, crontab scenarios.CronTab) (failures int) {
	t.Helper()
	right := 0
	expect.Eventually(t, "reads are answered", func() (bool, string) {
		err := readBoth(ctx, crontab, crontab.Object(0))
		if errors.Is(err, errWrong) {
			t.Fatal(err)
		}
		if err != nil {
			failures, right = failures+1, 0
			return false, err.Error()
		}
		right++
		return right == 50, ""
	})
	return failures
}

func run(ctx context.Context, t *testing.T, words ...string) {
	t.Helper()
	if out, err := teller.Run(ctx, words...); err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
}
