// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// TestRestoreStories restores clusters. Every story ends with a policy that converts.
func TestRestoreStories(t *testing.T) {
	stories := map[string]func(*testing.T) *world{
		"restored-by-backup":         restoredByBackup,
		"restored-managed-fields":    restoredManagedFields,
		"restored-without-namespace": restoredWithoutNamespace,
		"restored-fleet":             restoredFleet,
		"restored-fleet-alone":       restoredFleetAlone,
		"restored-etcd":              restoredEtcd,
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			w := story(t)
			w.converge()
			w.settleAPIServers()
			expectCondition(t, w.observed.Policy.Status, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonSucceeded, "conversion is active and verified")
			checkStory(t, name, w)
		})
	}
}

// restoreObjects creates policy and CustomResourceDefinition again, as a tool does that backs up
// objects: with other uids, and without a status. The tool is the field manager of everything.
func (w *world) restoreObjects() {
	crd, policy, now := w.observed.CRD, w.observed.Policy, metav1.NewTime(w.observed.Now)
	policy.UID, policy.Generation, policy.CreationTimestamp, policy.Status = "restored", 1, now, v1alpha1.ConversionPolicyStatus{}
	crd.UID, crd.Generation, crd.CreationTimestamp = "restored", 1, now
	crd.Status.StoredVersions = []string{"v1"}
	for path := range w.owners {
		w.owners[path] = "velero-server"
	}
	w.versionsBy = "velero-server"
	w.account("velero-server")
	w.observed.Samples, w.observed.APIServer, w.observed.Written, w.observed.Requested, w.observed.Cleared, w.observed.Resampled = nil, nil, nil, nil, nil, nil
	w.observed.Rights, w.observed.ReadRights, w.observed.CleanRights = false, false, false
	if w.watch != nil {
		w.watch.requested = map[string]time.Time{}
	}
}

// migrated is a world in which all objects are migrated.
func migrated(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, policyYAML)
	w.say("Everything is active, and a migration has proven that all is stored at v1.")
	w.define(bothStoredNew)
	w.completes(3)
	return w
}

func restoredByBackup(t *testing.T) *world {
	w := migrated(t)
	w.say("Everything is restored from a backup of objects, which has no status.")
	w.restoreObjects()
	return w
}

func restoredManagedFields(t *testing.T) *world {
	w := migrated(t)
	w.say("Everything is restored, with managedFields. The CustomResourceDefinition still trusts an authority that was replaced since.")
	w.restoreObjects()
	for path := range w.owners {
		w.owners[path] = names.ManagedBy
	}
	w.account(names.ManagedBy)
	w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = w.pair(pki.NewAuthority("before", w.observed.Now, time.Hour)).Certificate
	return w
}

func restoredWithoutNamespace(t *testing.T) *world {
	w := migrated(t)
	w.say("Policy and CustomResourceDefinition are restored, and nothing in the namespace of the operator.")
	w.loseNamespace()
	w.restoreObjects()
	return w
}

func restoredFleet(t *testing.T) *world {
	w := inFleet(t)
	w.say("Everything is restored, with the fleet and its rulesets.")
	w.restoreObjects()
	return w
}

func restoredFleetAlone(t *testing.T) *world {
	w := inFleet(t)
	w.say("The objects are restored, and nothing in the namespace of the operator. The fleet has another authority.")
	w.loseRulesets("default")
	w.observed.Pods = slices.DeleteFunc(w.observed.Pods, func(pod observed.Pod) bool { return pod.Fleet == "default" })
	w.createFleet("default")
	w.restoreObjects()
	return w
}

func restoredEtcd(t *testing.T) *world {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.say("Everything is active, and objects are stored at v1beta1. etcd is saved.")
	w.define(bothStoredOld)
	policy, crd, owners := w.observed.Policy.DeepCopy(), w.observed.CRD.DeepCopy(), w.owners
	authority, certificate, revisions := w.observed.Authority.DeepCopy(), w.observed.Certificate.DeepCopy(), slices.Clone(w.observed.Revisions)
	w.say("The rules change, v1 becomes the storage version, all objects are migrated, and v1beta1 is removed.")
	w.changeRules("/")
	w.applyCRD(bothStoredNew)
	w.trigger("now")
	w.completes(3)
	w.settleAPIServers()
	w.define(onlyNew)
	w.say("etcd is restored. Pods keep what they mounted, and the manager is started again.")
	w.observed.Policy, w.observed.CRD, w.owners = policy, crd, owners
	w.observed.Authority, w.observed.Certificate, w.observed.Revisions, w.observed.Runs = authority, certificate, revisions, nil
	w.observed.Samples, w.observed.APIServer, w.observed.Written, w.observed.Requested = nil, nil, nil, nil
	return w
}

// TestSecretsLostDuringDrift: another client has written caBundle, and there is no certificate. Pods
// may have one in memory.
func TestSecretsLostDuringDrift(t *testing.T) {
	for name, change := range map[string]func(w *world, bundle []byte) []byte{
		"the same authority": func(_ *world, bundle []byte) []byte { return append([]byte("\n"), bundle...) },
		"another authority": func(w *world, _ []byte) []byte {
			return w.pair(pki.NewAuthority("theirs", w.observed.Now, time.Hour)).Certificate
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := migrated(t)
			w.observed.Authority, w.observed.Certificate = nil, nil
			w.change("kubectl-edit", func(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = change(w, client.CABundle) })
			before := w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle
			for range 5 { // before API servers have had their time
				w.observed.Now = w.observed.Now.Add(time.Second)
				w.carryOut(w.plan())
			}
			if after := w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle; !bytes.Contains(after, bytes.TrimSpace(before)) {
				t.Error("API servers no longer trust a certificate that pods may have in memory")
			}
			w.converge()
			w.settleAPIServers()
			w.settleAPIServers()
			expectCondition(t, w.observed.Policy.Status, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonSucceeded, "conversion is active")
		})
	}
}

// TestRestoredDuringRetirement: the retirement continues, and its waiting time begins again.
func TestRestoredDuringRetirement(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	promoted(w)
	w.later(week)
	expectCondition(t, w.observed.Policy.Status, v1alpha1.VersionsRetiredCondition, "False", v1alpha1.ReasonSoaking, "")
	before := w.observed.Policy.Status.Retirement[0].DeepCopy()
	w.restoreObjects()
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.VersionsRetiredCondition, "False", v1alpha1.ReasonSoaking, "")
	if after := w.observed.Policy.Status.Retirement[0]; !after.UnservedTime.After(before.UnservedTime.Time) || after.CRDUID == before.CRDUID {
		t.Errorf("the wait is %+v, and was %+v", after, before)
	}
}

// TestRestoredForReport: a policy that only reports foreign writes waits for its users, and keeps the
// restored converter.
func TestRestoredForReport(t *testing.T) {
	w := migrated(t)
	w.observed.Policy.Spec.Drift = v1alpha1.DriftReport
	before := w.storedRulesets("")
	w.restoreObjects()
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.ConversionConfiguredCondition, "False", v1alpha1.ReasonConversionDrifted, "velero-server")
	if kept := w.storedRulesets(""); !slices.Contains(kept, before[0]) || w.observed.Pods[0].Revisions[0] != before[0] {
		t.Errorf("pods have %v, and %v are stored; want %v", w.observed.Pods[0].Revisions, kept, before)
	}
	w.observed.Policy.Spec.Drift = v1alpha1.DriftRepair
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonSucceeded, "conversion is active")
}
