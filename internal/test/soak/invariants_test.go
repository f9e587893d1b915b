// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// healthy is an observation without violations: one object, written at v1, stored at v1beta1, after
// a migration.
func healthy(t *testing.T) Observation {
	t.Helper()
	noon, year := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC), 365*24*time.Hour
	object := Object{record: record{HostPort: "host:80", Own: map[string]any{joined: "note"}}, Labels: map[string]string{"client": "in-v1"}, WrittenAt: joined}
	now := Observation{Time: noon, Mounted: noon.Add(year), ListedAfter: []string{hub}, Size: 1, Follow: true,
		Subject: Subject{Name: "a", Exists: true, Policy: &v1alpha1.ConversionPolicySpec{}, Fleet: "blue", Versions: []string{hub, joined}, Served: []string{hub, joined}, Storage: hub,
			Objects: map[string]Object{"job": object}},
		Records:  []contract.Record{{CRDUID: "uid", State: contract.StateCompleted}},
		Children: []child{{Kind: "Secret", Name: "a-tls"}, {Kind: "Job", Name: "a-migrate-run", Run: "run"}},
		Stored:   map[string]Stored{"job": {hub, 100, map[string]map[string]any{joined: {".spec.note": "note"}}}},
		Pods:     []podObservation{{Name: "pod", Ready: true, NotAfter: noon.Add(year), Rulesets: []string{"hash"}}},
		Rulesets: map[string][]string{"converter-fleet-blue": {"hash"}}, Fleet: &v1alpha1.ConverterFleet{}, Policy: &v1alpha1.ConversionPolicy{},
		Reads: map[string]map[string]read{},
	}
	for _, version := range now.Subject.Served {
		now.Reads[version] = map[string]read{"job": {spec: object.spec(version), labels: object.Labels}}
	}
	var err error
	now.CRD, err = now.Subject.Definition(nil)
	expect.NoError(t, err)
	path := "/convert/hash"
	now.CRD.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Name: "converter-fleet-blue", Path: &path}}}}
	now.CRD.UID, now.CRD.Generation, now.CRD.Status.StoredVersions, now.Conversion = "uid", 5, []string{hub}, now.CRD.Spec.Conversion
	now.Fleet.Status = v1alpha1.ConverterFleetStatus{Replicas: 1, ReadyReplicas: 1, Conditions: []metav1.Condition{
		isTrue(v1alpha1.ReadyCondition), isTrue(v1alpha1.CertificatesReadyCondition), isTrue(v1alpha1.WebhookAvailableCondition)}}
	now.Policy.Status = v1alpha1.ConversionPolicyStatus{CRD: &v1alpha1.CRDStatus{UID: "uid", Generation: 5},
		Conditions:        []metav1.Condition{isTrue(v1alpha1.ReadyCondition), isTrue(v1alpha1.StorageMigratedCondition)},
		Migration:         &v1alpha1.MigrationStatus{Run: "run", State: v1alpha1.MigrationSucceeded},
		MigrationEvidence: &v1alpha1.MigrationEvidence{CRDUID: "uid", CRDGeneration: 5, StorageVersion: hub},
		Versions:          []v1alpha1.VersionStatus{{Name: hub}, {Name: joined, BlockedBy: []v1alpha1.VersionBlock{{Reason: v1alpha1.BlockedPreservedData}}}},
	}
	return now
}

func isTrue(name string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionTrue}
}

// storedAt moves the object in etcd, and suspend suspends the policy, which says so.
func storedAt(now *Observation, version string) {
	now.Stored["job"] = Stored{Version: version, Revision: 100}
}

func suspend(all ...*Observation) {
	for _, now := range all {
		now.Subject.Policy.Suspend, now.Policy.Spec.Suspend = true, true
		now.Policy.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonSuspended}
	}
}

// retire lets the policy retire v1, with this end.
func retire(now *Observation, action v1alpha1.RetirementAction, status metav1.ConditionStatus, message string) {
	now.Subject.retire(joined, action, nil)
	now.Policy.Status.Conditions = append(now.Policy.Status.Conditions, metav1.Condition{
		Type: v1alpha1.VersionsRetiredCondition, Status: status, Reason: v1alpha1.ReasonBlocked, Message: message})
	now.CRD.Spec.Versions[1].Deprecated = true
}

// violations change one thing in a healthy observation. Each invariant has one.
var violations = []struct {
	says  string
	spoil func(now, before *Observation)
}{
	{"is read at v1 as", func(now, _ *Observation) {
		now.Reads[joined]["job"] = read{spec: map[string]any{"hostPort": "host:80"}, labels: now.Subject.Objects["job"].Labels}
	}},
	{"has the labels map[]", func(now, _ *Observation) { now.Reads[hub]["job"] = read{spec: now.Reads[hub]["job"].spec} }},
	{"etcd has []", func(now, _ *Observation) { now.Stored = nil }},
	{"etcd has [job other]", func(now, _ *Observation) { now.Stored["other"] = Stored{Version: hub} }},
	{"listed versions: violated by a: job is stored at v1", func(now, _ *Observation) { storedAt(now, joined) }},
	{"listed versions: violated by a: job is stored at v1", func(now, _ *Observation) {
		storedAt(now, joined)
		now.Pruned = Pruning{Revision: 99, Versions: []string{joined}}
	}},
	{"hold map[]; expected map[.spec.note:note]", func(now, _ *Observation) { storedAt(now, hub) }},
	{"hold map[.spec.note:other]", func(now, _ *Observation) { now.Stored["job"].Preserved[joined][".spec.note"] = "other" }},
	{"hold map[.spec.timeoutSeconds:5]; expected map[]", func(now, _ *Observation) {
		now.Stored["job"].Preserved[nested] = map[string]any{".spec.timeoutSeconds": 5}
	}},
	{"v1 is gone, and job has values of it: [.spec.note]", func(now, _ *Observation) {
		now.Subject.Blocked, now.CRD.Spec.Versions = map[string]string{joined: "job"}, now.CRD.Spec.Versions[:1]
	}},
	{"job holds .spec.note of v1, which status.versions calls safe to remove", func(now, _ *Observation) {
		now.Policy.Status.Versions[1].SafeToRemove = true
		now.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: joined, AcceptedLosses: []string{".spec.not"}}}
	}},
	{"[v1] went from status.storedVersions; expected evidence", func(now, before *Observation) {
		before.CRD.Status.StoredVersions = []string{hub, joined}
		now.Policy.Status.MigrationEvidence, now.Records[0].Failed = nil, 1
	}},
	{"the evidence says that all are at v1beta1", func(now, _ *Observation) { storedAt(now, joined) }},
	{"StorageMigrated is True while objects are written at v1beta1", func(now, _ *Observation) { storedAt(now, joined) }},
	{"stored at v1, which status.versions calls safe to remove", func(now, _ *Observation) {
		storedAt(now, joined)
		now.Policy.Status.Versions[1].SafeToRemove = true
	}},
	{"job is stored at v1, which is not served any more", func(now, _ *Observation) {
		storedAt(now, joined)
		now.Subject.retire(joined, v1alpha1.RetirementUnserve, nil)
		now.CRD.Spec.Versions[1].Served = false
	}},
	{"v1 went from status.storedVersions", func(now, before *Observation) {
		suspend(now, before)
		before.ListedAfter = []string{hub, joined}
	}},
	{"spec.conversion is nil; it was", func(now, before *Observation) {
		suspend(now, before)
		now.Conversion = nil
	}},
	{"does not verify", func(now, _ *Observation) {
		now.Pods[0].Refused = &probe.Error{Reason: probe.ReasonTLSVerificationFailed}
	}},
	{"job at v1: refused", func(now, _ *Observation) { now.Reads[joined]["job"] = read{err: "refused"} }},
	{"job at v1: ", func(now, _ *Observation) { delete(now.Reads, joined) }},
	{"there is no policy", func(now, _ *Observation) { now.Policy = nil }},
	{"the status is of other generations", func(now, _ *Observation) { now.Policy.Generation++ }},
	{"Ready is True", func(now, _ *Observation) { now.Subject.Policy.Suspend = true }},
	{"Ready is Unknown, Suspended", func(now, _ *Observation) {
		suspend(now)
		now.Subject.Policy.Suspend = false
	}},
	{"Job a-migrate-run has pods", func(now, _ *Observation) { now.Subject.Policy.Suspend, now.Children[1].Active = true, true }},
	{"job is stored at v1; objects are written at v1beta1", func(now, _ *Observation) { storedAt(now, joined) }},
	{"there is a definition: false", func(now, _ *Observation) { now.CRD = nil }},
	{"its versions are [v1beta1 (served: true, storage: true, deprecated: false)]; expected", func(now, _ *Observation) { now.CRD.Spec.Versions = now.CRD.Spec.Versions[:1] }},
	{"v1 (served: false, storage: false, deprecated: false)]; expected", func(now, _ *Observation) { now.CRD.Spec.Versions[1].Served = false }},
	{"v1 (served: true, storage: false, deprecated: true)]; expected", func(now, _ *Observation) { now.CRD.Spec.Versions[1].Deprecated = true }},
	{"v1 (served: true, storage: false, deprecated: false)]; expected", func(now, _ *Observation) { now.Subject.Storage = joined }},
	{"VersionsRetired is False", func(now, _ *Observation) { retire(now, v1alpha1.RetirementDeprecate, metav1.ConditionFalse, "") }},
	{"expected it to be blocked by map[v1:job]", func(now, _ *Observation) { retire(now, v1alpha1.RetirementRemove, metav1.ConditionTrue, "") }},
	{"the status does not say that v1 is blocked by [.spec.note]", func(now, _ *Observation) {
		retire(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "v1 stays: 1 objects hold values of it")
	}},
	{"converts through the Service converter-fleet-green", func(now, _ *Observation) { webhookOf(now.CRD).Service.Name = "converter-fleet-green" }},
	{"where [other] are stored", func(now, _ *Observation) { now.Rulesets["converter-fleet-blue"] = []string{"other"} }},
	{"pod pod has []", func(now, _ *Observation) { now.Pods[0].Rulesets = nil }},
	{"there is no fleet blue", func(now, _ *Observation) { now.Fleet = nil }},
	{"not of the fleet's generation", func(now, _ *Observation) { now.Fleet.Generation++ }},
	{"and 0 as ready", func(now, _ *Observation) { now.Fleet.Status.ReadyReplicas = 0 }},
	{"WebhookAvailable of the fleet", func(now, _ *Observation) { now.Fleet.Status.Conditions = now.Fleet.Status.Conditions[:2] }},
	{"rotates: AddingCA", func(now, _ *Observation) {
		now.Fleet.Status.Rotation = &v1alpha1.RotationStatus{State: v1alpha1.RotationAddingCA}
	}},
	{"is being deleted", func(now, _ *Observation) {
		now.Fleet.Status.Conditions = append(now.Fleet.Status.Conditions, isTrue(v1alpha1.DeletionBlockedCondition))
	}},
	{"converter-fleet-green has the rulesets [old]", func(now, _ *Observation) { now.Rulesets["converter-fleet-green"] = []string{"old"} }},
	{"that pods mount ends at", func(now, _ *Observation) { now.Mounted = now.Time.Add(time.Minute) }},
	{"that pod pod serves ends at", func(now, _ *Observation) { now.Pods[0].NotAfter = now.Time.Add(time.Minute) }},
	{": no migration goes on", func(now, _ *Observation) { now.Children[0].Name = names.MigrationRights(crdOf("a")) }},
	{": no version is on its way out", func(now, _ *Observation) { now.Children[0].Name = names.CleanRights(crdOf("a")) }},
	{"Job a-migrate-run: that migration is over", func(now, _ *Observation) { now.Policy.Status.Migration.Run = "next" }},
	{"Secret a-tls: its policy and its definition are gone", func(now, _ *Observation) {
		*now = Observation{Subject: Subject{Name: "a"}, Children: now.Children[:1]}
	}},
}

func TestInvariantsFail(t *testing.T) {
	failed := map[string]bool{}
	for _, violation := range violations {
		t.Run(violation.says, func(t *testing.T) {
			now, before := healthy(t), healthy(t)
			violation.spoil(&now, &before)
			all := append(Check(true, now, before), Check(false, now, before)...)
			at := slices.IndexFunc(all, func(wrong string) bool { return strings.Contains(wrong, violation.says) })
			if at < 0 {
				t.Fatalf("violated: %q", all)
			}
			name, _, _ := strings.Cut(all[at], ": violated by a: ")
			failed[name] = true
		})
	}
	for _, each := range invariants {
		expect.Equal(t, "a case violates "+each.name, true, failed[each.name])
	}
}

// TestAllowed has observations that violate no invariant, or none of those that always hold.
func TestAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		always bool
		change func(now, before *Observation)
	}{
		"a policy":           {false, func(_, _ *Observation) {}},
		"a suspended policy": {false, func(now, before *Observation) { suspend(now, before) }},
		"nothing":            {false, func(now, _ *Observation) { *now = Observation{Subject: Subject{Name: "a"}} }},
		"a blocked removal": {false, func(now, _ *Observation) {
			retire(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "v1 stays: .spec.note")
		}},
		"a read fails": {true, func(now, _ *Observation) { now.Reads[joined]["job"] = read{err: "refused"} }},
		"the record is ahead": {true, func(now, before *Observation) {
			before.CRD.Status.StoredVersions, now.Policy.Status.MigrationEvidence = []string{hub, joined}, nil
		}},
		"others prune while it is suspended": {true, func(now, before *Observation) {
			suspend(now, before)
			before.ListedAfter, now.Pruned = []string{hub, joined}, Pruning{Revision: 101, Versions: []string{joined}}
		}},
		"bytes are left where others pruned": {true, func(now, _ *Observation) {
			storedAt(now, joined)
			now.Pruned, now.Policy.Status = Pruning{Revision: 101, Versions: []string{joined}}, v1alpha1.ConversionPolicyStatus{}
		}},
		"a pod that is not ready serves anything": {true, func(now, _ *Observation) {
			now.Pods[0] = podObservation{Refused: &probe.Error{Reason: probe.ReasonTLSVerificationFailed}}
		}},
		"a rotation waits for others": {false, func(now, _ *Observation) {
			now.Follow, now.Fleet.Status.Rotation, now.Fleet.Status.Conditions[1].Status = false, &v1alpha1.RotationStatus{State: v1alpha1.RotationAddingCA}, metav1.ConditionFalse
		}},
	} {
		t.Run(name, func(t *testing.T) {
			now, before := healthy(t), healthy(t)
			c.change(&now, &before)
			wrong := Check(true, now, before)
			if !c.always {
				wrong = append(wrong, Check(false, now, before)...)
			}
			expect.Equal(t, "violated", "[]", fmt.Sprintf("%q", wrong))
		})
	}
}

// TestForgetPruned: once no object is stored at the pruned version, prunings by the operator need
// evidence again.
func TestForgetPruned(t *testing.T) {
	p := &player{pruned: map[string]Pruning{"a": {Revision: 101, Versions: []string{joined}}}}
	now := healthy(t)
	storedAt(&now, joined)
	p.forgetPruned(map[string]Observation{"a": now})
	expect.Equal(t, "remembered, as bytes are left there,", 1, len(p.pruned))
	p.forgetPruned(map[string]Observation{"a": healthy(t)})
	expect.Equal(t, "remembered, while none are left there,", 0, len(p.pruned))
}
