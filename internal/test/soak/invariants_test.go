// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"errors"
	"fmt"
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
	now.Subject = s
	now.CRD.Spec.Versions, now.Policy.Spec = s.CRD.DeepCopy().Spec.Versions, *s.Policy.DeepCopy()
	return now
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
	now.Subject.retire("v1 to " + string(action))
	now.Policy.Status.Conditions = append(now.Policy.Status.Conditions, metav1.Condition{
		Type: v1alpha1.VersionsRetiredCondition, Status: status, Reason: v1alpha1.ReasonBlocked, Message: message})
	now.CRD.Spec.Versions[1].Deprecated = true
}

// storeAtV1 has the object stored at v1.
func storeAtV1(now, _ *Observation) { now.Stored[0].Version = joined }

// violations change one thing in a healthy observation, which violates the invariant whose name begins so. Each
// invariant has one.
var violations = []struct {
	of    string
	spoil func(now, before *Observation)
}{
	{"what is read", func(now, _ *Observation) { now.Reads[1].Got = map[string]any{"hostPort": "host:80"} }},
	{"etcd has", func(now, _ *Observation) { now.Stored = nil }},
	{"etcd has", func(now, _ *Observation) { now.Stored = append(now.Stored, Stored{"other", hub, 100, nil}) }},
	{"etcd has", func(now, _ *Observation) { now.Stored[0].Name = "other" }},
	{"stored bytes are at", storeAtV1},
	{"stored bytes are at", func(now, _ *Observation) { now.Stored[0].Version, now.Pruned = joined, 99 }},
	{"annotations hold", func(now, _ *Observation) { now.Stored[0].Annotations = nil }},
	{"annotations hold", func(now, _ *Observation) {
		now.Stored[0].Annotations[annotation(now.Subject, joined)] = `{"format": 3, "hidden": {"/spec/note": "other"}}`
	}},
	{"annotations hold", func(now, _ *Observation) { now.Stored[0].Annotations[annotation(now.Subject, nested)] = `{}` }},
	{"a version stays", func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "")
		now.CRD.Spec.Versions = now.CRD.Spec.Versions[:1]
	}},
	{"what may be removed is stored nowhere", func(now, _ *Observation) {
		now.Stored[0].Version, now.Policy.Status.Versions[1].SafeToRemove = joined, true
	}},
	{"what may be removed takes", func(now, _ *Observation) { now.Policy.Status.Versions[1].SafeToRemove = true }},
	{"storedVersions is pruned", func(now, before *Observation) {
		before.CRD.Status.StoredVersions = []string{hub, joined}
		now.Policy.Status.MigrationEvidence, now.Records[0].Failed = nil, 1
	}},
	{"migration evidence", storeAtV1},
	{"StorageMigrated", storeAtV1},
	{"what a policy stops serving", func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementUnserve, metav1.ConditionTrue, "")
		now.Stored[0].Version, now.CRD.Spec.Versions[1].Served = joined, false
	}},
	{"a paused policy", func(now, before *Observation) {
		pausePolicy(now, before)
		before.CRD.Status.StoredVersions = []string{hub, joined}
	}},
	{"a paused policy", func(now, before *Observation) {
		pausePolicy(now, before)
		now.CRD.Spec.Conversion = nil
	}},
	{"caBundle verifies", func(now, _ *Observation) {
		now.Pods[0].Refused = &probe.Error{Reason: probe.ReasonTLSVerificationFailed}
	}},
	{"every object is readable", func(now, _ *Observation) { now.Reads[1].Refused = errors.New("refused") }},
	{"the policy is ready", func(now, _ *Observation) { now.Policy = v1alpha1.ConversionPolicy{} }},
	{"the policy is ready", func(now, _ *Observation) { now.Policy.Generation++ }},
	{"the policy is ready", func(now, _ *Observation) { now.CRD.Generation++ }},
	{"the policy is ready", func(now, _ *Observation) { now.Subject.Policy.Paused = true }},
	{"the policy is ready", func(now, _ *Observation) {
		pausePolicy(now)
		now.Subject.Policy.Paused = false
	}},
	{"no migration goes on", func(now, _ *Observation) {
		now.Subject.Policy.Migration.Suspend, now.Children[1].Object["status"] = true, map[string]any{"active": int64(1)}
	}},
	{"every object is stored", storeAtV1},
	{"versions are as", func(now, _ *Observation) { now.CRD = apiextensionsv1.CustomResourceDefinition{} }},
	{"versions are as", func(now, _ *Observation) { now.CRD.Spec.Versions = now.CRD.Spec.Versions[:1] }},
	{"versions are as", func(now, _ *Observation) { now.CRD.Spec.Versions[1].Served = false }},
	{"versions are as", func(now, _ *Observation) { now.CRD.Spec.Versions[1].Deprecated = true }},
	{"versions are as", func(now, _ *Observation) { now.Subject.store(joined) }},
	{"versions are retired", func(now, _ *Observation) { retired(now, v1alpha1.RetirementDeprecate, metav1.ConditionFalse, "") }},
	{"versions are retired", func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionTrue, "v1 stays: .spec.note")
	}},
	{"versions are retired", func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "v1 stays: 1 objects hold values of it")
	}},
	{"the definition converts", func(now, _ *Observation) { observed.WebhookService(&now.CRD).Name = "converter-fleet-green" }},
	{"the ruleset that a definition names is stored", func(now, _ *Observation) { now.Rulesets[0].Hash = "other" }},
	{"the ruleset that a definition names is in", func(now, _ *Observation) { now.Pods[0].RulesetHashes = nil }},
	{"the fleet is ready", func(now, _ *Observation) { now.Fleet = v1alpha1.ConverterFleet{} }},
	{"the fleet is ready", func(now, _ *Observation) { now.Fleet.Generation++ }},
	{"the fleet is ready", func(now, _ *Observation) { now.Fleet.Status.ReadyReplicas = 0 }},
	{"the fleet is ready", func(now, _ *Observation) { now.Fleet.Status.Conditions = now.Fleet.Status.Conditions[:1] }},
	{"the fleet is ready", func(now, _ *Observation) {
		now.Fleet.Status.Certificate = &v1alpha1.CertificateStatus{Rotation: v1alpha1.RotationAddingCA}
	}},
	{"rulesets are stored only", func(now, _ *Observation) {
		now.Rulesets = append(now.Rulesets, ruleset{"converter-fleet-green", "old"})
	}},
	{"certificates are renewed", func(now, _ *Observation) { now.Pods[0].NotAfter = now.Time.Add(time.Minute) }},
	{"nothing is left", func(now, _ *Observation) { now.Children[0].SetName(names.MigrationRights(crdOf("a"))) }},
	{"nothing is left", func(now, _ *Observation) { now.Children[0].SetName(names.CleanRights(crdOf("a"))) }},
	{"nothing is left", func(now, _ *Observation) { now.Policy.Status.Migration.Run = "next" }},
	{"nothing is left", func(now, _ *Observation) {
		*now = Observation{Subject: &Subject{Name: "a"}, Children: now.Children[:1]}
	}},
}

func TestInvariantsFail(t *testing.T) {
	for _, each := range slices.Concat(Always, AtRest) {
		cases := 0
		for i, violation := range violations {
			if !strings.HasPrefix(each.Name, violation.of) {
				continue
			}
			now, before := healthy(t), healthy(t)
			violation.spoil(&now, &before)
			expect.Equal(t, fmt.Sprintf("%q is violated in case %d", each.Name, i), true, Check([]Invariant{each}, now, before) != nil)
			cases++
		}
		expect.Equal(t, fmt.Sprintf("there are cases of %q", each.Name), true, cases > 0)
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
		"a read fails": {nil, func(now, _ *Observation) { now.Reads[1].Got, now.Reads[1].Refused = nil, errors.New("refused") }},
		"a removal goes on, which accepts losses": {nil, func(now, _ *Observation) {
			now.Subject.retire("v1 to Remove" + accepting)
			expect.Equal(t, "versions, and the note", []any{[]string{hub}, nil}, []any{now.Subject.served(), now.Subject.Objects["job"]["note"]})
			now.Reads = now.Reads[:1]
		}},
		"the record is ahead": {nil, func(now, before *Observation) {
			before.CRD.Status.StoredVersions, now.Policy.Status.MigrationEvidence = []string{hub, joined}, nil
		}},
		"others prune while it is paused": {nil, func(now, before *Observation) {
			pausePolicy(now, before)
			before.CRD.Status.StoredVersions, now.Pruned = []string{hub, joined}, 101
		}},
		"bytes are left where others pruned": {nil, func(now, _ *Observation) {
			now.Stored[0].Version, now.Pruned, now.Policy.Status = joined, 101, v1alpha1.ConversionPolicyStatus{}
			expect.Equal(t, "pruned, as bytes are left there,", 101, now.StillPruned())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			now, before := healthy(t), healthy(t)
			c.change(&now, &before)
			expect.NoError(t, Check(slices.Concat(Always, c.invariants), now, before))
		})
	}
	now := healthy(t)
	now.Pruned = 101
	expect.Equal(t, "pruned, while no bytes are left there,", 0, now.StillPruned())
}
