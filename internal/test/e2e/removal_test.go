//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestRemoveOperator follows the documentation after a migration: objects of two versions are all
// stored in one, the only served version. No read fails, the objects are unchanged, and nothing of
// the operator remains.
func TestRemoveOperator(t *testing.T) {
	release.Only(t, "TestRetain", "TestDeletion")
	ctx := t.Context()
	crontab := convertedInGroup(ctx, t, "removed.example.com")
	applySample(ctx, t, crontab, crontab.CRDStorage)
	newer := writtenAtNew(crontab)
	expect.NoError(t, cluster.Create(ctx, newer.DeepCopy()))
	expect.Eventually(t, "it is proven that all objects are stored at "+crontab.New, func() (bool, string) {
		policy := getPolicy(ctx, t, crontab.CRD())
		return policy.Status.MigrationEvidence != nil && policy.Status.CRD.StorageVersion == crontab.New, fmt.Sprint(policy.Status.Conditions)
	})
	serveNewOnly(ctx, t, crontab)
	reader := fleet.Read(ctx, crontab.At(crontab.New), crontab.Object(3).GetName(), func(object *unstructuredObject) error {
		return checkRead(object, crontab.Object(3))
	})

	t.Cleanup(func() { reinstall(context.WithoutCancel(ctx), t) })
	for _, manager := range pods(ctx, t, client.MatchingLabels{names.ComponentLabel: "manager"}) {
		leftOut.add(manager.Name)
	}
	uninstall(ctx, t, crontab)
	if reads, err := reader.Stop(); err != nil || reads == 0 {
		t.Errorf("%d reads, and then: %v", reads, err)
	}
	checkNothingIsLeft(ctx, t, crontab)
	checkOnlyNew(ctx, t, crontab, newer)
}

// writtenAtNew returns an object that was only written at the new version.
func writtenAtNew(crontab scenarios.CronTab) *unstructuredObject {
	object := crontab.Object(10)
	object.SetAPIVersion(crontab.Group + "/" + crontab.New)
	delete(object.Object, "hostPort")
	object.Object["host"], object.Object["port"] = "worker-10.example.com", "1034"
	return object
}

func serveNewOnly(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	crd := getCRD(ctx, t, crontab.CRD())
	base := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == crontab.New
	}
	expect.NoError(t, cluster.Patch(ctx, crd, client.MergeFrom(base)))
}

// uninstall runs the documented commands. If a command waits until no policy is left, so does the
// test.
func uninstall(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	player := newPlayer(t, teller.Dir)
	player.Names = strings.NewReplacer("crontabs.example.com", crontab.CRD())
	for i, part := range parts(t, "uninstalling") {
		if player.Judge = nil; i == 1 {
			player.Judge = hasNoAnswer
			expect.Eventually(t, "the policy is gone", func() (bool, string) {
				err := cluster.Get(ctx, client.ObjectKey{Name: crontab.CRD()}, &v1alpha1.ConversionPolicy{})
				return apierrors.IsNotFound(err), fmt.Sprint(err)
			})
		}
		expect.NoError(t, player.Play(ctx, part))
	}
}

func hasNoAnswer(_, answer string) error {
	if answer != "" {
		return errors.New("something is left")
	}
	return nil
}

// checkNothingIsLeft checks that no object of any kind, except events, belongs to the operator or
// its installation.
func checkNothingIsLeft(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	for _, which := range []string{"-l " + names.ManagedByLabel + "=" + names.ManagedBy, "| grep conversion || true"} {
		left, err := teller.Run(ctx, "bash", "-euo", "pipefail", "-c", `kinds=$(kubectl api-resources --verbs=list,delete -o name | grep -v ^events | paste -sd,)
kubectl get --all-namespaces --ignore-not-found -o name "$kinds" `+which)
		if err != nil || left != "" {
			t.Errorf("kubectl get %s: %v\n%s", which, err, left)
		}
	}
	crd := getCRD(ctx, t, crontab.CRD())
	if crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter || len(crd.Finalizers) > 0 || strings.Contains(fmt.Sprint(crd.Annotations, crd.Labels), "conversion-operator") {
		t.Errorf("the CustomResourceDefinition has strategy %s, finalizers %v, annotations %v and labels %v",
			crd.Spec.Conversion.Strategy, crd.Finalizers, crd.Annotations, crd.Labels)
	}
}

// checkOnlyNew reads all objects at the new version, and in etcd if reachable.
func checkOnlyNew(ctx context.Context, t *testing.T, crontab scenarios.CronTab, newer *unstructuredObject) {
	t.Helper()
	items, err := fleet.List(ctx, crontab.At(crontab.New))
	expect.NoError(t, err)
	for i := range items {
		want := crontab.Object(i)
		if items[i].GetName() != want.GetName() {
			t.Fatalf("object %d is %s, want %s", i, items[i].GetName(), want.GetName())
		}
		if err := checkRead(&items[i], want); err != nil {
			t.Error(err)
		}
	}
	if len(items) != 11 || items[10].GetName() != newer.GetName() {
		t.Errorf("there are %d objects, want ten and %s", len(items), newer.GetName())
	}
	stored, err := scenarios.ReadStored(ctx, crontab.Group, "crontabs")
	expect.NoError(t, err)
	if stored != nil && !stored.Only(crontab.Group+"/"+crontab.New) {
		t.Errorf("stored: %s, want all at %s", stored, crontab.New)
	}
}
