// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// healthy is an observation without violations: one object, written at v1, stored at v1beta1, after
// a migration.
func healthy() observation {
	object := record{HostPort: "host:80", Note: "note"}
	policy := &v1alpha1.ConversionPolicy{}
	policy.Generation = 2
	policy.Status = v1alpha1.ConversionPolicyStatus{
		ObservedGeneration: 2,
		CRD:                &v1alpha1.CRDStatus{UID: "uid", Generation: 5},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue},
			{Type: v1alpha1.StorageMigratedCondition, Status: metav1.ConditionTrue, ObservedGeneration: 2},
		},
		Migration:         &v1alpha1.MigrationStatus{Run: "run", State: v1alpha1.MigrationSucceeded},
		MigrationEvidence: &v1alpha1.MigrationEvidence{CRDUID: "uid", CRDGeneration: 5, StorageVersion: hub},
		Versions: []v1alpha1.VersionStatus{{Name: hub}, {Name: joined, BlockedBy: []v1alpha1.VersionBlock{
			{Reason: v1alpha1.BlockedPreservedData}, {Reason: v1alpha1.BlockedServed}}}},
	}
	now := observation{
		Time: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		Subject: subject{Name: "a", Exists: true, Policy: true, Fleet: "blue", Versions: []string{hub, joined}, Served: []string{hub, joined}, Storage: hub,
			Records: map[string]record{"job": object}},
		Objects: map[string]entry{"job": {Record: object, Labels: map[string]string{"client": "in-v1"}, WrittenAt: joined}},
		Defined: true, Active: true, Service: "converter-fleet-blue", Ruleset: "hash", UID: "uid", Generation: 5, Storage: hub,
		Has: []string{hub, joined}, Serves: []string{hub, joined},
		Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter},
		Listed:     []string{hub}, ListedAfter: []string{hub},
		Policy:    policy,
		Records:   []contract.Record{{CRDUID: "uid", State: contract.StateCompleted}},
		Children:  []child{{Kind: "Secret", Name: "a-tls"}, {Kind: "Job", Name: "a-migrate-run", Run: "run"}},
		Stored:    map[string]string{"job": hub},
		Revisions: map[string]int64{"job": 100},
		Preserved: map[string]map[string]map[string]any{"job": {joined: {".spec.note": "note"}}},
		Reads:     map[string]map[string]read{},
		Mounted:   time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC),
		Pods:      []podObservation{{Name: "pod", Ready: true, NotAfter: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), Trusted: true, Rulesets: []string{"hash"}}},
		Rulesets:  map[string][]string{"converter-fleet-blue": {"hash"}}, Fleet: readyFleet(), Size: 1, Follow: true,
	}
	for _, version := range now.Subject.Served {
		now.Reads[version] = map[string]read{"job": {Spec: object.spec(version), Labels: map[string]string{"client": "in-v1"}}}
	}
	return now
}

func TestHealthy(t *testing.T) {
	now := map[string]observation{"a": healthy()}
	for _, always := range []bool{true, false} {
		if wrong := check(invariants, always, now, now); len(wrong) > 0 {
			t.Errorf("violated: %q", wrong)
		}
	}
	gone := map[string]observation{"a": {Subject: subject{Name: "a"}}}
	for _, always := range []bool{true, false} {
		if wrong := check(invariants, always, gone, gone); len(wrong) > 0 {
			t.Errorf("violated where there is nothing: %q", wrong)
		}
	}
}

// violation changes one thing in a healthy observation.
type violation struct {
	invariant, says string
	spoil           func(now, before *observation)
}

var violations = []violation{
	{"what is read is what was written", "is read at v1 as", func(now, _ *observation) {
		now.Reads[joined]["job"] = read{Spec: map[string]any{"hostPort": "host:80"}, Labels: now.Objects["job"].Labels}
	}},
	{"what is read is what was written", "has the labels map[]", func(now, _ *observation) {
		now.Reads[hub]["job"] = read{Spec: now.Reads[hub]["job"].Spec}
	}},
	{"etcd has the objects that were written, and no others", "etcd has []", func(now, _ *observation) {
		now.Stored = nil
	}},
	{"etcd has the objects that were written, and no others", "etcd has [job other]", func(now, _ *observation) {
		now.Stored["other"] = hub
	}},
	{"stored bytes are at listed versions", "job is stored at v2", func(now, _ *observation) {
		now.Stored["job"] = nested
		stopMigrations(now)
	}},
	{"storedVersions is pruned with evidence", "[v1] went from", func(now, before *observation) {
		before.Listed = []string{hub, joined}
		now.Policy.Status.MigrationEvidence, now.Records = nil, nil
	}},
	{"storedVersions is pruned with evidence", "[v1] went from", func(now, before *observation) {
		before.Listed = []string{hub, joined}
		now.Policy.Status.MigrationEvidence, now.Records[0].Failed = nil, 1
	}},
	{"storedVersions is pruned with evidence", "[v1] went from", func(now, before *observation) {
		before.Listed = []string{hub, joined}
		now.Policy.Status.MigrationEvidence, now.Records[0].State = nil, contract.StateRunning
	}},
	{"what the status says of stored bytes is true", "the evidence says that all are at v1beta1", func(now, _ *observation) {
		evidence := now.Policy.Status.MigrationEvidence
		now.Stored["job"], now.Listed = joined, []string{hub, joined}
		stopMigrations(now)
		now.Policy.Status.MigrationEvidence = evidence
	}},
	{"what the status says of stored bytes is true", "calls safe to remove", func(now, _ *observation) {
		said := now.Policy.Status.Versions
		now.Stored["job"], now.Listed = joined, []string{hub, joined}
		stopMigrations(now)
		said[1].SafeToRemove = true
		now.Policy.Status.Versions, now.Preserved = said, nil
	}},
	{"converter pods serve certificates that are valid and trusted", "that ended at", func(now, _ *observation) {
		now.Pods[0].NotAfter, now.Subject.Policy = now.Time.Add(-time.Second), false
	}},
	{"converter pods serve certificates that are valid and trusted", "does not verify", func(now, _ *observation) {
		now.Pods[0].Trusted = false
	}},
	{"every object is readable in every served version", "job at v1: refused", func(now, _ *observation) {
		now.Reads[joined]["job"] = read{Err: "refused"}
	}},
	{"every object is readable in every served version", "job at v1:", func(now, _ *observation) {
		delete(now.Reads, joined)
	}},
	{"the policy is ready, or says that it is suspended", "there is no policy", func(now, _ *observation) {
		now.Policy, now.Children = nil, nil
	}},
	{"the policy is ready, or says that it is suspended", "not of the policy's generation", func(now, _ *observation) {
		now.Policy.Generation++
	}},
	{"the policy is ready, or says that it is suspended", "not of the definition's generation", func(now, _ *observation) {
		now.Policy.Status.CRD.Generation--
	}},
	{"the policy is ready, or says that it is suspended", "Ready is False, WebhookUnavailable: why", func(now, _ *observation) {
		now.Policy.Status.Conditions[0] = metav1.Condition{
			Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "WebhookUnavailable", Message: "why"}
	}},
	{"the policy is ready, or says that it is suspended", "there is no condition", func(now, _ *observation) {
		now.Policy.Status.Conditions = nil
	}},
	{"certificates are renewed in time", "that pods mount ends at", func(now, _ *observation) {
		now.Mounted = now.Time.Add(time.Minute)
	}},
	{"certificates are renewed in time", "that pod pod serves ends at", func(now, _ *observation) {
		now.Pods[0].NotAfter = now.Time.Add(time.Minute)
	}},
	{"nothing is left of what is over", "Role a: no migration goes on", func(now, _ *observation) {
		now.Children = []child{{Kind: "Role", Name: names.MigrationRights(crdOf("a"))}}
	}},
	{"nothing is left of what is over", "Job old: that migration is over", func(now, _ *observation) {
		now.Children = append(now.Children, child{Kind: "Job", Name: "old", Run: "old"})
	}},
	{"nothing is left of what is over", "Secret a-tls: its policy and its definition are gone", func(now, _ *observation) {
		*now = observation{Subject: subject{Name: "a"}, Children: now.Children[:1]}
	}},
}

// TestInvariantsFail makes one change at a time. Each invariant has a case, and no other invariant
// may fail in it.
func TestInvariantsFail(t *testing.T) {
	failed := map[string]bool{}
	for _, test := range slices.Concat(violations, versionViolations, preservedViolations, fleetViolations) {
		t.Run(test.invariant+"/"+test.says, func(t *testing.T) {
			now, before := healthy(), healthy()
			test.spoil(&now, &before)
			for _, each := range invariants {
				wrong := each.violated(now, before)
				if each.name != test.invariant {
					if len(wrong) > 0 {
						t.Errorf("%s is violated too: %q", each.name, wrong)
					}
					continue
				}
				says := strings.ReplaceAll(strings.Join(wrong, "\n"), names.MigrationRights(crdOf("a")), "a")
				if len(wrong) != 1 || !strings.Contains(says, test.says) {
					t.Errorf("%s says %q, want something with %q", each.name, wrong, test.says)
				}
				failed[each.name] = true
			}
		})
	}
	for _, each := range invariants {
		if !failed[each.name] {
			t.Errorf("no case violates %q", each.name)
		}
	}
}

// TestAllowedObservations has observations that violate no invariant.
func TestAllowedObservations(t *testing.T) {
	cases := map[string]func(now, before *observation){
		"a read fails while things are killed": func(now, _ *observation) { now.Reads[joined]["job"] = read{Err: "refused"} },
		"a version is pruned, and the status does not say so yet": func(now, before *observation) {
			before.Listed, now.Policy.Status.MigrationEvidence = []string{hub, joined}, nil
		},
		"a version is pruned and added again while etcd is read": func(now, _ *observation) {
			now.Stored["job"], now.ListedAfter = joined, []string{hub, joined}
			stopMigrations(now)
		},
		"evidence is of an older generation": func(now, _ *observation) {
			now.Stored["job"], now.Listed, now.Generation, now.Storage = joined, []string{hub, joined}, 6, joined
		},
		"bytes are left where another client has pruned": func(now, before *observation) {
			before.Listed, now.Stored["job"] = []string{hub, joined}, joined
			now.Pruned = pruning{Revision: 101, Versions: []string{joined}}
			stopMigrations(now)
		},
		"another client prunes while the policy is suspended": func(now, before *observation) {
			suspend(now)
			suspend(before)
			before.ListedAfter, now.Pruned = []string{hub, joined}, pruning{Revision: 101, Versions: []string{joined}}
		},
		"the operator goes on where a policy is suspended no more": func(now, before *observation) {
			suspend(before)
			before.ListedAfter, now.Conversion = []string{hub, joined}, nil
		},
		"the operator has not seen yet that a policy is suspended": func(now, before *observation) {
			suspend(now)
			suspend(before)
			before.Policy.Generation++
			now.Conversion = nil
		},
		"StorageMigrated was said before the policy was suspended": func(now, _ *observation) {
			suspend(now)
			now.Stored["job"], now.Listed, now.Storage = joined, []string{hub, joined}, joined
			now.Policy.Status.MigrationEvidence, now.Policy.Status.Versions = nil, nil
		},
		"a version that is to go is stored while it is served": func(now, _ *observation) {
			now.Subject.Retires = map[string]v1alpha1.RetirementAction{joined: v1alpha1.RetirementUnserve}
			now.Stored["job"], now.Listed = joined, []string{hub, joined}
			stopMigrations(now)
		},
		"a pod that is not ready serves anything": func(now, _ *observation) {
			now.Pods[0] = podObservation{Name: "pod", NotAfter: now.Time.Add(-time.Hour)}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			now, before := healthy(), healthy()
			change(&now, &before)
			if wrong := check(invariants, true, map[string]observation{"a": now}, map[string]observation{"a": before}); len(wrong) > 0 {
				t.Errorf("violated: %q", wrong)
			}
		})
	}
}

func TestSuspendedCountsAsReady(t *testing.T) {
	now := healthy()
	now.Policy.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse},
		{Type: v1alpha1.StorageMigratedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMigrationSuspended},
	}
	if wrong := notReady(now, now); len(wrong) != 1 {
		t.Errorf("no one suspended it, and this is said: %q", wrong)
	}
	now.Subject.MigrationsSuspended = true
	if wrong := notReady(now, now); len(wrong) != 0 {
		t.Errorf("it is suspended, and this is said: %q", wrong)
	}
}

func TestTargets(t *testing.T) {
	cases := map[string][]string{
		"etcd\x00--data-dir=/x\x00":                             {"etcd"},
		"kube-apiserver\x00--etcd-servers=x\x00":                {"kube-apiserver"},
		"/conversion-operator\x00manager\x00--leader-elect\x00": {"one manager", "all managers"},
		"/conversion-operator\x00serve\x00":                     {"one converter", "all converters"},
		"/conversion-operator\x00run-migration\x00":             {"all migrations"},
		"containerd\x00--config=x\x00":                          {"containerd"},
		"containerd-shim-runc-v2\x00-id\x00":                    nil,
		"bash\x00-c\x00etcd\x00":                                nil,
		"":                                                      nil,
	}
	for line, want := range cases {
		var got []string
		for _, each := range targets {
			if each.matches([]byte(line)) {
				got = append(got, each.name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is taken for %q, want %q", line, got, want)
		}
	}
}
