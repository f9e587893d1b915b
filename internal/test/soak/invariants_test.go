// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// healthy is an observation without violations: one object, written at v1, stored at v1beta1, after
// a migration.
func healthy(t *testing.T) Observation {
	t.Helper()
	now, s := *expect.YAML[Observation](t, "testdata", "healthy.yaml"), &Subject{Name: "a"}
	s.begin("blue")
	s.add(joined)
	s.Objects["job"] = record{"hostPort": "host:80", "note": "note"}
	now.Subject, now.Stored = s, map[string]Stored{"job": storedAt(hub)}
	now.CRD.Spec.Versions, now.Policy.Spec = s.CRD.DeepCopy().Spec.Versions, *s.Policy.DeepCopy()
	now.After = *now.CRD.DeepCopy()
	return now
}

// storedAt is the object in etcd.
func storedAt(version string) Stored {
	return preserving(version, joined, `{"format": 3, "rules": "x", "hidden": {"/spec/note": "note"}}`)
}

func preserving(version, of, text string) Stored {
	return Stored{version, 100, map[string]string{annotation(&Subject{Name: "a"}, of): text}}
}

// pausePolicy pauses the policy, which says so.
func pausePolicy(all ...*Observation) {
	for _, now := range all {
		now.Subject.Policy.Paused, now.Policy.Spec.Paused = true, true
		now.Policy.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPaused}
	}
}

// retired lets the policy retire v1, with this end.
func retired(now *Observation, action v1alpha1.RetirementAction, status metav1.ConditionStatus, message string) {
	now.Subject.retire(joined, action, false)
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
		now.Reads[joined]["job"] = map[string]any{"hostPort": "host:80"}
	}},
	{"etcd has []", func(now, _ *Observation) { now.Stored = nil }},
	{"etcd has [job other]", func(now, _ *Observation) { now.Stored["other"] = storedAt(hub) }},
	{"listed versions: violated by a: job is stored at v1", func(now, _ *Observation) { now.Stored["job"] = storedAt(joined) }},
	{"listed versions: violated by a: job is stored at v1", func(now, _ *Observation) {
		now.Stored["job"] = storedAt(joined)
		now.Pruned = 99
	}},
	{"preserves <nil> of v1; expected map[format:3 hidden:map[/spec/note:note]]", func(now, _ *Observation) { now.Stored["job"] = Stored{Version: hub} }},
	{"preserves map[format:3 hidden:map[/spec/note:other]", func(now, _ *Observation) {
		now.Stored["job"] = preserving(hub, joined, `{"format": 3, "rules": "x", "hidden": {"/spec/note": "other"}}`)
	}},
	{"of v2; expected <nil>", func(now, _ *Observation) { now.Stored["job"] = preserving(hub, nested, `{}`) }},
	{"v1 is gone, and job has .spec.note", func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "")
		now.CRD.Spec.Versions = now.CRD.Spec.Versions[:1]
	}},
	{"job holds .spec.note, and status.versions calls v1 safe to remove", func(now, _ *Observation) {
		now.Policy.Status.Versions[1].SafeToRemove = true
	}},
	{"[v1] went from status.storedVersions; expected evidence", func(now, before *Observation) {
		before.CRD.Status.StoredVersions = []string{hub, joined}
		now.Policy.Status.MigrationEvidence, now.Records[0].Failed = nil, 1
	}},
	{"the evidence says that all are at v1beta1", func(now, _ *Observation) { now.Stored["job"] = storedAt(joined) }},
	{"StorageMigrated is True while objects are written at v1beta1", func(now, _ *Observation) { now.Stored["job"] = storedAt(joined) }},
	{"stored at v1, which status.versions calls safe to remove", func(now, _ *Observation) {
		now.Stored["job"] = storedAt(joined)
		now.Policy.Status.Versions[1].SafeToRemove = true
	}},
	{"job is stored at v1, which is not served any more", func(now, _ *Observation) {
		now.Stored["job"] = storedAt(joined)
		now.Subject.retire(joined, v1alpha1.RetirementUnserve, false)
		now.CRD.Spec.Versions[1].Served = false
	}},
	{"[v1] went from status.storedVersions", func(now, before *Observation) {
		pausePolicy(now, before)
		before.After.Status.StoredVersions = []string{hub, joined}
	}},
	{"spec.conversion is nil; it was", func(now, before *Observation) {
		pausePolicy(now, before)
		now.After.Spec.Conversion = nil
	}},
	{"does not verify", func(now, _ *Observation) {
		now.Pods[0].Refused = &probe.Error{Reason: probe.ReasonTLSVerificationFailed}
	}},
	{"job cannot be read at v1: refused", func(now, _ *Observation) {
		now.Reads[joined], now.Refused = nil, map[string]error{joined: errors.New("refused")}
	}},
	{"there is no policy, or its status", func(now, _ *Observation) { now.Policy = v1alpha1.ConversionPolicy{} }},
	{"its status is of other generations", func(now, _ *Observation) { now.Policy.Generation++ }},
	{"its status is of other generations", func(now, _ *Observation) { now.CRD.Generation++ }},
	{"Ready is True", func(now, _ *Observation) { now.Subject.Policy.Paused = true }},
	{"Ready is Unknown, Paused", func(now, _ *Observation) {
		pausePolicy(now)
		now.Subject.Policy.Paused = false
	}},
	{"a-migrate-run has pods", func(now, _ *Observation) {
		now.Subject.Policy.Migration.Suspend, now.Children[1].Object["status"] = true, map[string]any{"active": int64(1)}
	}},
	{"job is stored at v1; objects are written at v1beta1", func(now, _ *Observation) { now.Stored["job"] = storedAt(joined) }},
	{"the versions are []", func(now, _ *Observation) { now.CRD = apiextensionsv1.CustomResourceDefinition{} }},
	{"the versions are [v1beta1 (served: true, storage: true, deprecated: false)]; expected", func(now, _ *Observation) { now.CRD.Spec.Versions = now.CRD.Spec.Versions[:1] }},
	{"v1 (served: false, storage: false, deprecated: false)]; expected", func(now, _ *Observation) { now.CRD.Spec.Versions[1].Served = false }},
	{"v1 (served: true, storage: false, deprecated: true)]; expected", func(now, _ *Observation) { now.CRD.Spec.Versions[1].Deprecated = true }},
	{"v1 (served: true, storage: false, deprecated: false)]; expected", func(now, _ *Observation) { now.Subject.store(joined) }},
	{"VersionsRetired is False", func(now, _ *Observation) { retired(now, v1alpha1.RetirementDeprecate, metav1.ConditionFalse, "") }},
	{"VersionsRetired is True", func(now, _ *Observation) { retired(now, v1alpha1.RetirementRemove, metav1.ConditionTrue, "") }},
	{`expected False with ["Blocked" "v1 stays: " ".spec.note"]`, func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "v1 stays: 1 objects hold values of it")
	}},
	{"converts through the Service \"converter-fleet-green\"", func(now, _ *Observation) { observed.WebhookService(&now.CRD).Name = "converter-fleet-green" }},
	{"where [other] are stored", func(now, _ *Observation) { now.Rulesets["converter-fleet-blue"] = []string{"other"} }},
	{"pod pod has []", func(now, _ *Observation) { now.Pods[0].RulesetHashes = nil }},
	{"there is no fleet blue", func(now, _ *Observation) { now.Fleet = v1alpha1.ConverterFleet{} }},
	{"its status is of another generation", func(now, _ *Observation) { now.Fleet.Generation++ }},
	{"and 0 as ready", func(now, _ *Observation) { now.Fleet.Status.ReadyReplicas = 0 }},
	{"WebhookAvailable of the fleet", func(now, _ *Observation) { now.Fleet.Status.Conditions = now.Fleet.Status.Conditions[:1] }},
	{"rotates: AddingCA", func(now, _ *Observation) {
		now.Fleet.Status.Certificate = &v1alpha1.CertificateStatus{Rotation: v1alpha1.RotationAddingCA}
	}},
	{"converter-fleet-green has the rulesets [old]", func(now, _ *Observation) { now.Rulesets["converter-fleet-green"] = []string{"old"} }},
	{"that pod pod serves ends at", func(now, _ *Observation) { now.Pods[0].NotAfter = now.Time.Add(time.Minute) }},
	{": no migration goes on", func(now, _ *Observation) { now.Children[0].SetName(names.MigrationRights(crdOf("a"))) }},
	{": no version is on its way out", func(now, _ *Observation) { now.Children[0].SetName(names.CleanRights(crdOf("a"))) }},
	{"Job a-migrate-run: that migration is over", func(now, _ *Observation) { now.Policy.Status.Migration.Run = "next" }},
	{"Secret a-tls: its policy and its definition are gone", func(now, _ *Observation) {
		*now = Observation{Subject: &Subject{Name: "a"}, Children: now.Children[:1]}
	}},
}

func TestInvariantsFail(t *testing.T) {
	failed := map[string]bool{}
	for _, violation := range violations {
		t.Run(violation.says, func(t *testing.T) {
			now, before := healthy(t), healthy(t)
			violation.spoil(&now, &before)
			all := Check(slices.Concat(Always, AtRest), now, before)
			at := slices.IndexFunc(all, func(wrong error) bool { return strings.Contains(wrong.Error(), violation.says) })
			if at < 0 {
				t.Fatalf("violated: %q", all)
			}
			name, _, _ := strings.Cut(all[at].Error(), ": violated by a: ")
			failed[name] = true
		})
	}
	for _, each := range slices.Concat(Always, AtRest) {
		expect.Equal(t, "a case violates "+each.name, true, failed[each.name])
	}
}

// TestAllowed has observations that violate no invariant, or none of those that always hold.
func TestAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		invariants []Invariant
		change     func(now, before *Observation)
	}{
		"a policy":        {AtRest, func(_, _ *Observation) {}},
		"a paused policy": {AtRest, func(now, before *Observation) { pausePolicy(now, before) }},
		"nothing":         {AtRest, func(now, _ *Observation) { *now = Observation{Subject: &Subject{Name: "a"}} }},
		"a blocked removal": {AtRest, func(now, _ *Observation) {
			retired(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "v1 stays: .spec.note")
		}},
		"a rotation waits for others": {AtRest, func(now, _ *Observation) {
			now.State.Subjects = map[string]*Subject{"b": {CRD: &now.CRD, Fleet: "blue"}}
			now.Fleet.Status.Certificate, now.Fleet.Status.Conditions[2].Status = &v1alpha1.CertificateStatus{Rotation: v1alpha1.RotationAddingCA}, metav1.ConditionFalse
		}},
		"a read fails": {nil, func(now, _ *Observation) { delete(now.Reads, joined) }},
		"a removal goes on, which accepts losses": {nil, func(now, _ *Observation) {
			retire(target{Subject: now.Subject}, Step{Detail: "v1 to Remove" + accepting})
			expect.Equal(t, "versions, and the note", []any{[]string{hub}, nil}, []any{now.Subject.served(), now.Subject.Objects["job"]["note"]})
			delete(now.Reads, joined)
		}},
		"the record is ahead": {nil, func(now, before *Observation) {
			before.CRD.Status.StoredVersions, now.Policy.Status.MigrationEvidence = []string{hub, joined}, nil
		}},
		"others prune while it is paused": {nil, func(now, before *Observation) {
			pausePolicy(now, before)
			before.After.Status.StoredVersions, now.Pruned = []string{hub, joined}, 101
		}},
		"bytes are left where others pruned": {nil, func(now, _ *Observation) {
			now.Stored["job"] = storedAt(joined)
			now.Pruned, now.Policy.Status = 101, v1alpha1.ConversionPolicyStatus{}
			expect.Equal(t, "pruned, as bytes are left there,", 101, now.StillPruned())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			now, before := healthy(t), healthy(t)
			c.change(&now, &before)
			expect.NoError(t, errors.Join(Check(slices.Concat(Always, c.invariants), now, before)...))
		})
	}
	now := healthy(t)
	now.Pruned = 101
	expect.Equal(t, "pruned, while no bytes are left there,", 0, now.StillPruned())
}
