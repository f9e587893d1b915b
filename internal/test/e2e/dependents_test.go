//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestDependents: with the component, the operator stops serving a version only after what names it is
// gone or repaired. Otherwise garbage collection may delete objects whose owner is named at that version,
// although the owner exists. After the removal, it deletes such an object with its owner.
func TestDependents(t *testing.T) {
	release.Only(t, "TestDependentsBlockRemoval")
	ctx := t.Context()
	folder := t.TempDir()
	kustomize(t, folder, cmp.Or(os.Getenv("E2E_IMAGE"), "localhost/conversion-operator:dev"), "dependents")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		reinstall(ctx, t)
		const account = "conversion-operator-dependents"
		run(ctx, t, "kubectl", "delete", "clusterrole/"+account, "clusterrolebinding/"+account)
		run(ctx, t, "kubectl", "-n", system, "delete", "serviceaccount/"+account)
	})
	run(ctx, t, "kubectl", "apply", "--server-side", "--force-conflicts", "-k", folder)
	waitRolledOut(ctx, t)
	crontab := convertedInGroup(ctx, t, "named.example.com")
	owned, webhooks := plantDependents(ctx, t, crontab)

	retire(ctx, t, crontab, v1alpha1.RetirementUnserve)
	waitBlocked(ctx, t, crontab, "ConfigMap "+scenarios.Namespace+"/owned (OwnerReference)", "ValidatingWebhookConfiguration "+webhooks.Name+" (AdmissionWebhook)")
	if version, _ := crds.Version(getCRD(ctx, t, crontab.CRD()), crontab.Old); !version.Served {
		t.Errorf("%s is not served", crontab.Old)
	}
	expect.NoError(t, cluster.Delete(ctx, webhooks))
	// The command fails: managedFields name the version until it is not served.
	if out, err := teller.Run(ctx, operatorProgram(), "dependents", crontab.CRD(), "--version", crontab.Old, "--repair"); err == nil || !strings.Contains(out, "done     ConfigMap "+scenarios.Namespace+"/owned") {
		t.Fatalf("dependents --repair: %v\n%s", err, out)
	}
	retire(ctx, t, crontab, v1alpha1.RetirementRemove) // a change of spec starts the next search at once
	expect.Eventually(t, crontab.Old+" is removed", func() (bool, string) {
		return len(getCRD(ctx, t, crontab.CRD()).Spec.Versions) == 1, fmt.Sprint(getPolicy(ctx, t, crontab.CRD()).Status.Conditions)
	})

	owner := crontab.Object(0)
	owner.SetAPIVersion(crontab.Group + "/" + crontab.New)
	expect.NoError(t, cluster.Delete(ctx, owner))
	expect.Eventually(t, "the owned ConfigMap is deleted", func() (bool, string) {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(owned), owned)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// plantDependents creates an object that is owned by one at the old version, and a webhook for that
// version.
func plantDependents(ctx context.Context, t *testing.T, crontab scenarios.CronTab) (*corev1.ConfigMap, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	owner := crontab.Object(0)
	expect.NoError(t, cluster.Get(ctx, client.ObjectKeyFromObject(owner), owner))
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}}}}
	webhooks := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "named.example.com"}}
	webhooks.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "named.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
		FailurePolicy: ptr.To(admissionregistrationv1.Ignore), ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://localhost:1/validate")},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{crontab.Group}, APIVersions: []string{crontab.Old}, Resources: []string{"crontabs"}},
		}},
	}}
	for _, object := range []client.Object{owned, webhooks} {
		expect.NoError(t, cluster.Create(ctx, object))
		t.Cleanup(func() { _ = cluster.Delete(context.WithoutCancel(ctx), object) })
	}
	return owned, webhooks
}

// retire asks for an action on the old version as soon as nothing names it.
func retire(ctx context.Context, t *testing.T, crontab scenarios.CronTab, action v1alpha1.RetirementAction) {
	t.Helper()
	change(ctx, t, crontab, fmt.Sprintf(`{"spec":{"storageVersion":%q,"migration":{"mode":"Automatic"},"retirement":[{"version":%q,"action":%q,"after":"0s","dependents":"Check"}]}}`, crontab.New, crontab.Old, action))
}

// waitBlocked waits until these dependents keep the old version.
func waitBlocked(ctx context.Context, t *testing.T, crontab scenarios.CronTab, dependents ...string) {
	t.Helper()
	expect.Eventually(t, "dependents keep the version", func() (bool, string) {
		status := getPolicy(ctx, t, crontab.CRD()).Status
		for _, version := range status.Versions {
			for _, block := range version.BlockedBy {
				if block.Reason == v1alpha1.BlockedDependents {
					return !slices.ContainsFunc(dependents, func(name string) bool { return !strings.Contains(block.Message, name) }), block.Message
				}
			}
		}
		return false, fmt.Sprint(status.Conditions)
	})
}
