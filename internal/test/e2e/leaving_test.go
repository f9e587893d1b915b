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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestLeaving follows the documentation. The operator is uninstalled while a policy cannot be deleted:
// it is orphaned, and objects are converted without policy and operator. After a new installation, the
// operator adopts the same pods. Its namespace is deleted, and the next one converts every object again.
// After a migration, when only one version is served, it is removed, and nothing of it remains.
func TestLeaving(t *testing.T) {
	release.Only(t, "TestUninstallGuard", "TestDeletedPolicy", "TestBlock", "TestStories")
	ctx := t.Context()
	crontab := converting(ctx, t, "leaving.example.com", storesOld)
	t.Cleanup(func() { reinstall(context.WithoutCancel(ctx), t) })
	orphan(ctx, t, crontab)

	run(ctx, t, "kubectl", "delete", "namespace", system, "--timeout=3m")
	expect.Equal(t, "objects convert without a converter", false, readAll(ctx, crontab) == nil)
	reinstall(ctx, t)
	expect.Success(t, "objects convert again", func(ctx context.Context) error { return readAll(ctx, crontab) })
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)

	applySample(ctx, t, crontab, crontab.CRDStorage)
	expect.NoError(t, cluster.Create(ctx, writtenAtNew(crontab)))
	expect.Eventually(t, "it is proven that all objects are stored at "+crontab.New, func() (bool, string) {
		status := getPolicy(ctx, t, crontab).Status
		return status.MigrationEvidence != nil && status.CRD.StorageVersion == crontab.New, fmt.Sprint(status.Conditions)
	})
	serveNewOnly(ctx, t, crontab)
	uninstall(ctx, t, crontab)
	checkNothingIsLeft(ctx, t, crontab)
}

// orphan plays what to do if a deletion is blocked. Without an operator, pods convert, also one that replaces
// another. The operator is installed again, and adopts the pods. No read fails.
func orphan(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	generation := getCRD(ctx, t, crontab).Generation
	load := startLoad(ctx, t, crontab)
	player := newPlayer(t, t.TempDir())
	player.Names = strings.NewReplacer("crontabs.example.com", crontab.CRD())
	play(t, player, "blocked")
	waitManagers(ctx, t, 0)
	expect.NoError(t, readAll(ctx, crontab))
	expect.NoError(t, cluster.Delete(ctx, &converters(ctx, t, crontab)[0]))
	waitConverters(ctx, t, crontab) // another pod starts without a manager
	before := uids(converters(ctx, t, crontab))

	reinstall(ctx, t)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	expect.Equal(t, "pods, which the operator takes over,", before, uids(converters(ctx, t, crontab)))
	expect.Equal(t, "the CustomResourceDefinition has generation", generation, getCRD(ctx, t, crontab).Generation)
	load.check(t)
}

// writtenAtNew returns an object that is only written at the new version.
func writtenAtNew(crontab scenarios.CronTab) *unstructuredObject {
	object := crontab.Object(objects)
	object.SetAPIVersion(crontab.Group + "/" + crontab.New)
	delete(object.Object, "hostPort")
	object.Object["host"], object.Object["port"] = "worker-10.example.com", "1034"
	return object
}

func serveNewOnly(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	crd := getCRD(ctx, t, crontab)
	base := crd.DeepCopy()
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == crontab.New
	}
	expect.NoError(t, cluster.Patch(ctx, crd, client.MergeFrom(base)))
}

// uninstall runs the documented commands while a client reads. If a command waits until no policy is
// left, so does the test.
func uninstall(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	reader := fleet.Read(ctx, crontab.At(crontab.New), crontab.Object(3).GetName(), func(object *unstructuredObject) error {
		return atNew(object, crontab.Object(3))
	})
	for _, manager := range managers(ctx, t) {
		leftOut[manager.Name] = true
	}
	player := newPlayer(t, teller.Dir)
	player.Names = strings.NewReplacer("crontabs.example.com", crontab.CRD())
	for i, part := range parts(t, "uninstalling") {
		if player.Judge = nil; i == 1 {
			player.Judge = hasNoAnswer
			waitGone(ctx, t, &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crontab.CRD()}})
		}
		expect.NoError(t, player.Play(ctx, part))
	}
	expect.NoError(t, reader.Check())
}

func hasNoAnswer(_, answer string) error {
	if answer != "" {
		return errors.New("something is left")
	}
	return nil
}

// checkNothingIsLeft checks that no object of any kind, except events, belongs to the operator or
// its installation, and that all objects of the CronTab are there, stored at the new version.
func checkNothingIsLeft(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	for _, which := range []string{"-l " + names.ManagedByLabel + "=" + names.ManagedBy, "| grep conversion || true"} {
		left, err := teller.Run(ctx, "bash", "-euo", "pipefail", "-c", `kinds=$(kubectl api-resources --verbs=list,delete -o name | grep -v ^events | paste -sd,)
kubectl get --all-namespaces --ignore-not-found -o name "$kinds" `+which)
		if err != nil || left != "" {
			t.Errorf("kubectl get %s: %v\n%s", which, err, left)
		}
	}
	crd := getCRD(ctx, t, crontab)
	if crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter || len(crd.Finalizers) > 0 || strings.Contains(fmt.Sprint(crd.Annotations, crd.Labels), "conversion-operator") {
		t.Errorf("the CustomResourceDefinition has strategy %s, finalizers %v, annotations %v and labels %v",
			crd.Spec.Conversion.Strategy, crd.Finalizers, crd.Annotations, crd.Labels)
	}
	items, err := fleet.List(ctx, crontab.At(crontab.New))
	if err != nil || len(items) != objects+1 {
		t.Fatalf("there are %d objects, want %d: %v", len(items), objects+1, err)
	}
	for i := range items {
		if err := atNew(&items[i], crontab.Object(i)); err != nil {
			t.Error(err)
		}
	}
	checkStored(ctx, t, crontab, objects+1)
}

// checkStored reads etcd, if it can be read here: all objects are stored at the new version.
func checkStored(ctx context.Context, t *testing.T, crontab scenarios.CronTab, count int) {
	t.Helper()
	stored, err := scenarios.ReadStored(ctx, crontab.Group, "crontabs")
	expect.NoError(t, err)
	if at := crontab.Group + "/" + crontab.New; stored != nil && (!stored.Only(at) || stored.Versions[at] != count) {
		t.Errorf("etcd holds %s, want %d at %s", stored, count, at)
	}
}

// reinstall installs the operator as at first, and returns when the previous managers are gone.
func reinstall(ctx context.Context, t *testing.T) {
	t.Helper()
	expect.NoError(t, scenarios.Install(ctx, teller, scenarios.PropagationDelay))
	waitManagers(ctx, t, 2)
}

// waitRolledOut waits until all managers are of the current Deployment.
func waitRolledOut(ctx context.Context, t *testing.T) {
	t.Helper()
	run(ctx, t, "kubectl", "-n", system, "rollout", "status", manager, "--timeout=3m")
	waitManagers(ctx, t, 2)
}
