// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// paired subtrees are two versions that differ in nothing.
var twins = strings.ReplaceAll(bothStoredNew, "hostPort: {type: string}", "host: {type: string}, port: {type: string}")

func withoutRules(w *world) { w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules = nil }

func (w *world) pass(d time.Duration) { w.observed.Now = w.observed.Now.Add(d) }

func (w *world) delete() { w.observed.Policy.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} }

// deleted is a world whose policy is deleted.
func deleted(t *testing.T) *world {
	t.Helper()
	w := active(t)
	w.delete()
	return w
}

// deletionChanges: the converter goes only when no object needs it any more.
var deletionChanges = changes{
	"two versions are served":           func(*world) {},
	"the storage version is not served": func(w *world) { w.observed.CRD.Spec.Versions[1].Served = false },
	"the conversion was dropped":        func(w *world) { w.Drop("kubectl-replace") },
	"the old version is not served":     func(w *world) { w.observed.CRD.Spec.Versions[0].Served = false },
	"the old version is not served, and claims were added": func(w *world) {
		w.observed.CRD.Spec.Versions[0].Served = false
		w.claim()
	},
	"the old version is not served, and may be stored": func(w *world) {
		w.observed.CRD.Spec.Versions[0].Served = false
		w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
	},
	"the old version is not served, and no one looked": func(w *world) {
		w.observed.CRD.Spec.Versions[0].Served = false
		w.observed.CRD.Generation += 2
	},
	"another converter": func(w *world) {
		w.change("helm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
	},
	"the CRD is gone":                 func(w *world) { w.observed.CRD = nil },
	"the CRD is going":                func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} },
	"versions that differ in nothing": func(w *world) { withoutRules(w); w.applyCRD(twins) },
	"versions that differ in nothing, and none is to be restored": func(w *world) {
		withoutRules(w)
		w.applyCRD(twins)
		w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
	},
	"versions that differ, and none is to be restored": func(w *world) {
		w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
	},
	"rules that do not fit, and none is to be restored": func(w *world) {
		w.changeRules("")
		w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
	},
	"it is orphaned": func(w *world) { w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionOrphan },
	"it is orphaned while the CRD is going": func(w *world) {
		w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
		w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	},
	"it is orphaned and paused": func(w *world) {
		w.observed.Policy.Spec.Paused = true
		w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	},
	"it is orphaned, and the conversion was dropped": func(w *world) {
		w.observed.Runs = nil
		w.Drop("kubectl-replace")
		w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	},
}

func deletionBlocked(w *world) {
	w.say("Everything is active; the old version is still stored.")
	w.activate(bothStoredNew)
	w.say("The policy is deleted.")
	w.delete()
	w.converge()
	w.say("The old version is no longer served.")
	w.observed.CRD.Spec.Versions[0].Served = false
	w.observed.CRD.Generation++
	w.converge()
	w.say("A client prunes storedVersions by hand, which proves nothing.")
	w.observed.CRD.Status.StoredVersions = []string{"v1"}
	w.converge()
	w.say("The old version is removed.")
	w.define(onlyNew)
	w.say("It comes back before API servers have had their time, and objects are converted again.")
	w.define(bothStoredNew)
	w.say("It is removed for good.")
	w.define(onlyNew)
	w.say("API servers have had their time.")
	w.settleAPIServers()
}

func restored(w *world) {
	w.say("Two versions that differ in nothing, and a policy without rules.")
	withoutRules(w)
	w.activate(twins)
	w.say("The policy is deleted.")
	w.delete()
	w.converge()
	w.say("Strategy None would give the same, and is to be restored.")
	w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
	w.converge()
	w.say("API servers have had their time.")
	w.settleAPIServers()
}

func deletionOrphan(w *world) {
	w.say("Everything is active, and a migration runs.")
	w.define(bothStoredNew)
	w.say("The policy is deleted, which is blocked.")
	w.delete()
	w.converge()
	w.say("Its converter is to be orphaned.")
	w.observed.Policy.Spec.DeletionPolicy = v1alpha1.DeletionOrphan
	w.converge()
	w.say("The policy is created again, and takes over what is there: no write of the CustomResourceDefinition, no new pods.")
	w.observed.Policy = newWorld(w.t, policyYAML).observed.Policy
	w.converge()
}

func recreatedCRD(w *world) {
	w.say("Everything is active, and a migration has proven that all is stored at v1.")
	w.define(bothStoredNew)
	w.completes(3)
	w.say("The CustomResourceDefinition is being deleted: to list its objects takes the converter.")
	w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now}
	w.converge()
	w.say("It is gone.")
	w.observed.CRD = nil
	w.converge()
	w.say("It is created again. It is another one: nothing is known of its objects.")
	w.applyCRD(bothStoredNew)
	w.observed.CRD.UID, w.Owners = "another", nil
	w.converge()
}

// loseNamespace takes everything that is in the operator's namespace.
func (w *world) loseNamespace() {
	lost := w.observed
	lost.Authority, lost.Certificate, lost.Pods, lost.Revisions, lost.Runs, lost.Endpoints = nil, nil, nil, nil, nil, 0
}

func namespaceDeleted(w *world) {
	w.say("Everything is active.")
	w.activate(bothStoredNew)
	w.say("The operator's namespace is deleted, and with it operator and converter. Both are installed again.")
	w.loseNamespace()
	w.converge()
}

func moved(w *world) {
	w.say("Everything is active.")
	w.activate(bothStoredNew)
	w.say("The operator is installed in another namespace, and no more in the first.")
	w.loseNamespace()
	w.observed.Settings.Namespace = "elsewhere"
	w.converge()
}

// orphan is what a manager does about the rest of the policy.
func (w *world) orphan(released time.Time) (plan.Plan, bool) {
	state := *w.observed
	state.Policy = &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crontabs}}
	return plan.MakeOrphan(state, released)
}

func TestOrphans(t *testing.T) {
	cases := map[string]struct {
		change func(*world)
		age    time.Duration
		needed bool
		want   []string
	}{
		"active":                          {func(*world) {}, time.Hour, true, nil},
		"active, the CRD is going":        {func(w *world) { w.observed.CRD.DeletionTimestamp = &metav1.Time{Time: w.observed.Now} }, time.Hour, true, nil},
		"active, a certificate is due":    {func(w *world) { w.pass(certificates.DefaultDuration * 3 / 4) }, 0, true, []string{"WriteCertificate"}},
		"active, the certificate is gone": {func(w *world) { w.observed.Certificate = nil }, 0, true, []string{"WriteCertificate"}},
		"active, the authority is gone":   {func(w *world) { w.observed.Authority = nil }, 0, true, nil},
		"active, a migration runs": {func(w *world) {
			w.observed.Rights = true
			w.observed.Runs = []observed.Run{{ID: "a", Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
		}, 0, true, []string{"DeleteRun", "DeleteRights"}},
		"released just now":      {func(w *world) { w.Drop("kubectl-replace") }, time.Second, false, nil},
		"released some time ago": {func(w *world) { w.Drop("kubectl-replace") }, time.Hour, false, []string{"DeleteChildren"}},
		"the CRD is gone":        {func(w *world) { w.observed.CRD = nil }, 0, false, []string{"DeleteChildren"}},
		"another converter": {func(w *world) {
			w.change("helm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
		}, time.Hour, false, []string{"DeleteChildren"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.observed.Runs, w.observed.Rights = nil, false
			c.change(w)
			decided, needed := w.orphan(w.observed.Now.Add(-c.age))
			expect.Equal(t, "needed", c.needed, needed)
			expect.Equal(t, "steps", c.want, kinds(decided.Steps))
			if waits := !c.needed && c.want == nil; waits && decided.RecheckAfter <= 0 {
				t.Error("no one looks again")
			}
		})
	}
}

func orphaned(w *world) {
	w.say("Everything is active, and a migration runs.")
	w.define(bothStoredNew)
	w.say("The policy's finalizer is removed by force, and the policy is gone.")
	w.tend(w.observed.Now)
	w.say("Two months later the certificate is due.")
	w.pass(certificates.DefaultDuration * 3 / 4)
	w.tend(w.observed.Now)
	w.say("Another client takes over the conversion.")
	w.change("helm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
	released := w.observed.Now
	w.tend(released)
	w.say("API servers have had their time.")
	w.pass(w.observed.Settings.PropagationDelay)
	w.tend(released)
}

// tend does what is to be done about the orphan, once, and tells.
func (w *world) tend(released time.Time) {
	decided, needed := w.orphan(released)
	w.tellSteps(decided.Steps)
	switch {
	case needed:
		w.tell("the converter is kept: the CustomResourceDefinition converts through it")
	case len(decided.Steps) == 0:
		w.tell("the converter is kept until no API server asks it")
	}
	for _, step := range decided.Steps {
		w.do(step)
	}
}

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
	for path := range w.Owners {
		w.Owners[path] = "velero-server"
	}
	w.VersionsBy = "velero-server"
	w.Account("velero-server")
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
	for path := range w.Owners {
		w.Owners[path] = names.ManagedBy
	}
	w.Account(names.ManagedBy)
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
	w.CreateFleet("default")
	w.restoreObjects()
	return w
}

func restoredEtcd(t *testing.T) *world {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.say("Everything is active, and objects are stored at v1beta1. etcd is saved.")
	w.define(bothStoredOld)
	policy, crd, owners := w.observed.Policy.DeepCopy(), w.observed.CRD.DeepCopy(), w.Owners
	authority, certificate, revisions := w.observed.Authority.DeepCopy(), w.observed.Certificate.DeepCopy(), slices.Clone(w.observed.Revisions)
	w.say("The rules change, v1 becomes the storage version, all objects are migrated, and v1beta1 is removed.")
	w.changeRules("/")
	w.applyCRD(bothStoredNew)
	w.trigger("now")
	w.completes(3)
	w.settleAPIServers()
	w.define(onlyNew)
	w.say("etcd is restored. Pods keep what they mounted, and the manager is started again.")
	w.observed.Policy, w.observed.CRD, w.Owners = policy, crd, owners
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
	if after := w.observed.Policy.Status.Retirement[0]; !after.UnservedTime.After(before.UnservedTime.Time) {
		t.Errorf("the wait is %+v, and was %+v", after, before)
	}
}

// TestRestoredForReport: a policy that only reports foreign writes waits for its users, and keeps the
// restored converter.
func TestRestoredForReport(t *testing.T) {
	w := migrated(t)
	w.observed.Policy.Spec.Drift = v1alpha1.DriftTolerate
	before := w.StoredRulesets("")
	w.restoreObjects()
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.ConversionConfiguredCondition, "False", v1alpha1.ReasonDrifted, "velero-server")
	if kept := w.StoredRulesets(""); !slices.Contains(kept, before[0]) || w.observed.Pods[0].Revisions[0] != before[0] {
		t.Errorf("pods have %v, and %v are stored; want %v", w.observed.Pods[0].Revisions, kept, before)
	}
	w.observed.Policy.Spec.Drift = v1alpha1.DriftRepair
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonSucceeded, "conversion is active")
}
