// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"errors"
	"fmt"
	"maps"
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
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
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

// observations change a healthy observation, and the one before.
var observations = map[string]func(now, before *Observation){
	"a policy":        func(_, _ *Observation) {},
	"a paused policy": func(now, before *Observation) { pausePolicy(now, before) },
	"nothing":         func(now, _ *Observation) { *now = Observation{Subject: &Subject{Name: "a"}} },
	"a blocked removal": func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "v1 stays: .spec.note")
	},
	"a rotation that waits for others": func(now, _ *Observation) {
		now.State.Subjects = map[string]*Subject{"b": {CRD: now.CRD, Fleet: "blue"}}
		now.Fleet.Status.Certificate, now.Fleet.Status.Conditions[2].Status = &v1alpha1.CertificateStatus{Rotation: v1alpha1.RotationAddingCA}, metav1.ConditionFalse
	},
	"a removal that goes on, and accepts losses": func(now, _ *Observation) {
		now.Subject.retire("v1 to Remove" + accepting)
		now.Reads = now.Reads[:1]
	},
	"a removal that accepted losses": func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove+accepting, metav1.ConditionTrue, "")
		now.CRD.Spec.Versions, now.Reads, now.Stored[0].Annotations = now.CRD.Spec.Versions[:1], now.Reads[:1], nil
	},
	"migration evidence that is in the record only": func(now, before *Observation) {
		before.CRD.Status.StoredVersions, now.Policy.Status.MigrationEvidence = []string{hub, joined}, nil
	},
	"others prune while it is paused": func(now, before *Observation) {
		pausePolicy(now, before)
		before.CRD.Status.StoredVersions, now.Pruned = []string{hub, joined}, 101
	},
	"bytes are left where others pruned": func(now, _ *Observation) {
		now.Stored[0].Version, now.Pruned, now.Policy.Status = joined, 101, v1alpha1.ConversionPolicyStatus{}
	},
	"bytes are written where others pruned": func(now, _ *Observation) { now.Stored[0].Version, now.Pruned = joined, 99 },
	"bytes at another version":              func(now, _ *Observation) { now.Stored[0].Version = joined },
	"bytes at a version that is safe to remove": func(now, _ *Observation) {
		now.Stored[0].Version, now.Policy.Status.Versions[1].SafeToRemove = joined, true
	},
	"bytes at a version that is not served": func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementUnserve, metav1.ConditionTrue, "")
		now.Stored[0].Version, now.CRD.Spec.Versions[1].Served = joined, false
	},
	"no bytes":                func(now, _ *Observation) { now.Stored = nil },
	"bytes of another":        func(now, _ *Observation) { now.Stored[0].Name = "other" },
	"bytes of another, too":   func(now, _ *Observation) { now.Stored = append(now.Stored, Stored{"other", hub, 100, nil}) },
	"a read of another value": func(now, _ *Observation) { now.Reads[1].Got = map[string]any{"hostPort": "host:80"} },
	"a failed read":           func(now, _ *Observation) { now.Reads[1].Got, now.Reads[1].Refused = nil, errors.New("refused") },
	"preserved: nothing":      func(now, _ *Observation) { now.Stored[0].Annotations = nil },
	"preserved: another value": func(now, _ *Observation) {
		now.Stored[0].Annotations[annotation(now.Subject, joined)] = `{"format": 3, "hidden": {"/spec/note": "other"}}`
	},
	"preserved: too much":       func(now, _ *Observation) { now.Stored[0].Annotations[annotation(now.Subject, nested)] = `{}` },
	"preserved: safe to remove": func(now, _ *Observation) { now.Policy.Status.Versions[1].SafeToRemove = true },
	"preserved: removed": func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "v1 stays: .spec.note")
		now.CRD.Spec.Versions = now.CRD.Spec.Versions[:1]
	},
	"pruned without migration evidence": func(now, before *Observation) {
		before.CRD.Status.StoredVersions = []string{hub, joined}
		now.Policy.Status.MigrationEvidence, now.Records[0].Failed = nil, 1
	},
	"paused: pruned": func(now, before *Observation) {
		pausePolicy(now, before)
		before.CRD.Status.StoredVersions = []string{hub, joined}
	},
	"paused: another conversion": func(now, before *Observation) {
		pausePolicy(now, before)
		now.CRD.Spec.Conversion = nil
	},
	"paused: ready": func(now, _ *Observation) { now.Subject.Policy.Paused = true },
	"paused: still": func(now, _ *Observation) {
		pausePolicy(now)
		now.Subject.Policy.Paused = false
	},
	"suspended: migrates": func(now, _ *Observation) {
		now.Subject.Policy.Migration.Suspend, now.Children[1].Object["status"] = true, map[string]any{"active": int64(1)}
	},
	"policy: none":                      func(now, _ *Observation) { now.Policy = v1alpha1.ConversionPolicy{} },
	"policy: its status is older":       func(now, _ *Observation) { now.Policy.Generation++ },
	"definition: none":                  func(now, _ *Observation) { now.CRD = apiextensionsv1.CustomResourceDefinition{} },
	"definition: the status is older":   func(now, _ *Observation) { now.CRD.Generation++ },
	"definition: a version less":        func(now, _ *Observation) { now.CRD.Spec.Versions = now.CRD.Spec.Versions[:1] },
	"definition: unserved":              func(now, _ *Observation) { now.CRD.Spec.Versions[1].Served = false },
	"definition: deprecated":            func(now, _ *Observation) { now.CRD.Spec.Versions[1].Deprecated = true },
	"definition: stores at another":     func(now, _ *Observation) { now.Subject.store(joined) },
	"definition: names another Service": func(now, _ *Observation) { observed.WebhookService(&now.CRD).Name = "converter-fleet-green" },
	"retired: not":                      func(now, _ *Observation) { retired(now, v1alpha1.RetirementDeprecate, metav1.ConditionFalse, "") },
	"retired: in spite of losses": func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionTrue, "v1 stays: .spec.note")
	},
	"retired: not, without what is lost": func(now, _ *Observation) {
		retired(now, v1alpha1.RetirementRemove, metav1.ConditionFalse, "v1 stays: 1 objects hold values of it")
	},
	"rulesets: another": func(now, _ *Observation) { now.Rulesets[0].Hash = "other" },
	"rulesets: elsewhere too": func(now, _ *Observation) {
		now.Rulesets = append(now.Rulesets, ruleset{"converter-fleet-green", "old"})
	},
	"pods: no ruleset": func(now, _ *Observation) { now.Pods[0].RulesetHashes = nil },
	"pods: untrusted": func(now, _ *Observation) {
		now.Pods[0].Refused = &probe.Error{Reason: probe.ReasonTLSVerificationFailed}
	},
	"pods: expires soon":         func(now, _ *Observation) { now.Pods[0].NotAfter = now.Time.Add(time.Minute) },
	"fleet: none":                func(now, _ *Observation) { now.Fleet = v1alpha1.ConverterFleet{} },
	"fleet: its status is older": func(now, _ *Observation) { now.Fleet.Generation++ },
	"fleet: not ready":           func(now, _ *Observation) { now.Fleet.Status.ReadyReplicas = 0 },
	"fleet: not available":       func(now, _ *Observation) { now.Fleet.Status.Conditions = now.Fleet.Status.Conditions[:1] },
	"fleet: rotates": func(now, _ *Observation) {
		now.Fleet.Status.Certificate = &v1alpha1.CertificateStatus{Rotation: v1alpha1.RotationAddingCA}
	},
	"left: rights of a migration": func(now, _ *Observation) { now.Children[0].SetName(names.MigrationRights(crdOf("a"))) },
	"left: rights of cleaning":    func(now, _ *Observation) { now.Children[0].SetName(names.CleanRights(crdOf("a"))) },
	"left: an earlier migration":  func(now, _ *Observation) { now.Policy.Status.Migration.Run = "next" },
	"left: a Secret": func(now, _ *Observation) {
		*now = Observation{Subject: &Subject{Name: "a"}, Children: now.Children[:1]}
	},
}

// TestInvariants: testdata/violations.txt has what observations violate always, and at rest. Each invariant is violated by one.
func TestInvariants(t *testing.T) {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(observations)) {
		now, before := healthy(t), healthy(t)
		observations[name](&now, &before)
		fmt.Fprintf(&text, "%s\n", name)
		for when, invariants := range [][]Invariant{Always, AtRest} {
			for _, each := range invariants {
				if len(each.broken(now, before)) > 0 {
					fmt.Fprintf(&text, "  %s: %s\n", []string{"always", "at rest"}[when], each.Name)
				}
			}
		}
	}
	golden.Check(t, text.String(), "violations.txt")
	for _, each := range slices.Concat(Always, AtRest) {
		expect.Contains(t, "violations", text.String(), each.Name)
	}
}

// TestStillPruned: a pruning by another client is over once no bytes are left where it pruned.
func TestStillPruned(t *testing.T) {
	now := healthy(t)
	now.Pruned = 101
	expect.Equal(t, "pruned, while no bytes are left there,", 0, now.StillPruned())
	now.Stored[0].Version = joined
	expect.Equal(t, "pruned, as bytes are left there,", 101, now.StillPruned())
}
