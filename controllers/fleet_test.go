// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// inFleet is a policy with rules that asks for a fleet.
func inFleet(name, of string) v1alpha1.ConversionPolicy {
	policy := v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: &v1alpha1.DeclarativeConverter{Hub: "v2"}}
	policy.Spec.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadFleet, Fleet: &v1alpha1.FleetWorkload{Name: v1alpha1.FleetName(of)}}
	return policy
}

// converting is what a reconciliation observes of a policy whose CustomResourceDefinition converts
// through a Service, with a caBundle.
func converting(policy v1alpha1.ConversionPolicy, service, caBundle string) *observed.Cluster {
	state := &observed.Cluster{Settings: observed.Settings{Namespace: "conversion-system"}, Policy: &policy}
	state.CRD = &apiextensionsv1.CustomResourceDefinition{}
	if service != "" {
		state.CRD.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: []byte(caBundle), Service: &apiextensionsv1.ServiceReference{
				Namespace: "conversion-system", Name: service}}}}
	}
	return state
}

// listing lists what a reader does.
type listing struct {
	client.Client
	from client.Reader
}

func (l listing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return l.from.List(ctx, list, options...)
}

// TestFleetsFromSecrets: a fleet is reconciled when the Secret changes that its certificates come from.
func TestFleetsFromSecrets(t *testing.T) {
	fleets := []v1alpha1.ConverterFleet{
		{ObjectMeta: metav1.ObjectMeta{Name: "own"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "provided"}, Spec: v1alpha1.ConverterFleetSpec{
			Certificates: &v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "company"}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "issued"}, Spec: v1alpha1.ConverterFleetSpec{
			Certificates: &v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{}}}},
	}
	f := &fleetReconciler{ConversionPolicyReconciler: &ConversionPolicyReconciler{Client: listing{from: &inMemory{fleets: fleets}}}}
	_, _, issued := names.FleetSecrets("issued")
	for secret, want := range map[string][]string{"company": {"provided"}, issued: {"issued"}, "other": nil} {
		var got []string
		for _, request := range f.fleetsFrom(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: secret}}) {
			got = append(got, request.Name)
		}
		expect.Equal(t, "policies that a change of the Secret "+secret+" reconciles", want, got)
	}
}

// TestFleetUsersWake: a fleet is woken when a policy comes, converts, trusts others, or leaves, and
// not when nothing changed.
func TestFleetUsersWake(t *testing.T) {
	var woken []string
	users := fleetUsers{wake: func(fleet string) { woken = append(woken, fleet) }}
	blue := inFleet("a", "blue")
	green := inFleet("a", "green")
	alone := inFleet("a", "")
	alone.Spec.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadDedicated}
	steps := []struct {
		name  string
		state *observed.Cluster
		want  []string
	}{
		{"comes", converting(blue, "", ""), []string{"blue"}},
		{"is reconciled again", converting(blue, "", ""), nil},
		{"converts", converting(blue, names.Fleet("blue"), "A"), []string{"blue"}},
		{"is reconciled again, and converts", converting(blue, names.Fleet("blue"), "A"), nil},
		{"trusts another authority", converting(blue, names.Fleet("blue"), "B"), []string{"blue"}},
		{"is to move", converting(green, names.Fleet("blue"), "B"), []string{"blue", "green"}},
		{"has moved", converting(green, names.Fleet("green"), "C"), []string{"blue", "green"}},
		{"is to have pods of its own", converting(alone, names.Fleet("green"), "C"), nil},
		{"has pods of its own", converting(alone, names.Child("a"), "D"), []string{"green"}},
		{"is reconciled again, alone", converting(alone, names.Child("a"), "D"), nil},
	}
	for _, step := range steps {
		woken = nil
		users.record(step.state, observed.FleetsOf(step.state.Policy, step.state.CRD))
		expect.Equal(t, "woken when a policy "+step.name, step.want, woken)
	}
	users.record(converting(blue, "", ""), []string{"blue"})
	woken = nil
	users.forget("a")
	users.forget("a")
	expect.Equal(t, "woken when a policy is gone", []string{"blue"}, woken)
	expect.Equal(t, "remembered of a policy that is gone", 0, len(users.byPolicy))
}

// TestPoliciesOfFleet: policies that ask for a fleet are unknown until they were reconciled, and those
// whose CustomResourceDefinition converts through the fleet are found whatever they ask for.
func TestPoliciesOfFleet(t *testing.T) {
	var users fleetUsers
	moving := inFleet("moving", "green")
	elsewhere := inFleet("elsewhere", "green")
	joining := inFleet("joining", "blue")
	users.record(converting(moving, names.Fleet("blue"), "A"), []string{"blue", "green"})
	users.record(converting(elsewhere, names.Fleet("green"), "G"), []string{"green"})
	users.record(converting(joining, "", ""), []string{"blue"})
	users.record(converting(inFleet("gone", "blue"), names.Fleet("blue"), "A"), []string{"blue"}) // an orphan
	replaced := inFleet("replaced", "green")
	replaced.Status.ActiveRevisions = []v1alpha1.ActiveRevision{{Revision: "0123456789abcdef.blue", ReplacedTime: &metav1.Time{}}}
	theirs := converting(inFleet("theirs", "blue"), names.Fleet("blue"), "A")
	theirs.CRD.Spec.Conversion.Webhook.ClientConfig.Service.Namespace = "elsewhere"
	users.record(theirs, []string{"blue"})
	unknown := inFleet("unknown", "blue")
	got := users.policiesOf("blue", []v1alpha1.ConversionPolicy{moving, elsewhere, joining, replaced, unknown})
	want := []fleet.Policy{
		{Name: "gone", Known: true, Converts: true, CABundle: []byte("A")},
		{Name: "joining", Object: &joining, Known: true},
		{Name: "moving", Object: &moving, Known: true, Converts: true, CABundle: []byte("A")},
		{Name: "replaced", Object: &replaced},
		{Name: "theirs", Known: true},
		{Name: "unknown", Object: &unknown},
	}
	expect.Equal(t, "policies of the fleet", want, got)
}

// aRuleset is a ruleset as it is stored.
func aRuleset(t *testing.T, crd string) (hash string, stored []byte) {
	t.Helper()
	rules := &conversion.Ruleset{Format: conversion.RulesetFormat, CRD: crd, Group: "example.com", Kind: "Widget",
		Hub: "v2", Versions: []string{"v1", "v2"}, Spokes: []conversion.Spoke{{Version: "v1"}}}
	text, err := rules.Marshal()
	expect.NoError(t, err)
	return conversion.HashOf(text), conversion.Store(text)
}

// TestShardsAreReadOnce: each content is loaded once, no matter how often the shard changes with the
// rulesets of other policies, which are not returned.
func TestShardsAreReadOnce(t *testing.T) {
	const policy, other = "widgets.example.com", "gadgets.example.com"
	hash, stored := aRuleset(t, policy)
	otherHash, otherStored := aRuleset(t, other)
	key := conversion.StoredName(names.Child(policy), hash)
	shard := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: names.Shard("blue", 3)}, BinaryData: map[string][]byte{
		key: stored, conversion.StoredName(names.Child(other), otherHash): otherStored, "notes": []byte("x")}}
	var rulesets storedRulesets
	want := observed.StoredRevision{Hash: hash + ".blue", Readable: true, Stored: stored, ConfigMap: shard.Name}
	reads := func(what string, want ...observed.StoredRevision) {
		t.Helper()
		expect.Equal(t, what, want, rulesets.readShard(policy, "blue", shard))
	}
	reads("at first", want)
	loadedBefore, _ := rulesets.shared.get(policy)
	marked := loadedBefore[hash]
	marked.readable = false // shows whether it is loaded again
	loadedBefore[hash] = marked
	delete(shard.BinaryData, conversion.StoredName(names.Child(other), otherHash))
	remembered := want
	remembered.Readable = false
	reads("another policy has left", remembered)
	shard.BinaryData[key] = []byte("damaged")
	damaged := want
	damaged.Stored, damaged.Readable = []byte("damaged"), false
	reads("damaged", damaged)
	shard.BinaryData[key] = stored
	reads("repaired", want)
	shard.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	reads("being deleted", remembered)
	shard.DeletionTimestamp, shard.BinaryData = nil, map[string][]byte{conversion.StoredName(names.Child(policy), otherHash): stored}
	wrong := want
	wrong.Hash, wrong.Readable = otherHash+".blue", false
	reads("under the name of another ruleset", wrong)
	rulesets.forget(policy)
	_, known := rulesets.shared.get(policy)
	expect.Equal(t, "remembered of a policy that is gone", false, known)
}

// TestOnePodOfManyPolicies: a pod of a fleet has a proof and revisions for each policy.
func TestOnePodOfManyPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		p := NewProber(time.Hour)
		p.background = newBackground(ctx)
		hashes := []string{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"}
		p.probe = func(_ context.Context, target probe.Target) (probe.Result, error) {
			result := probe.Result{RulesetHashes: hashes, RulesetFailures: map[string]string{"cccccccccccccccc": "damaged"}}
			if !slices.Contains(hashes, target.RulesetHash) {
				return result, &probe.Error{Reason: probe.ReasonWrongRuleset, Message: "it has others"}
			}
			return result, nil
		}
		states := map[string]*observed.Cluster{}
		for name, hash := range map[string]string{"a": hashes[0], "b": hashes[1], "c": "cccccccccccccccc"} {
			policy := inFleet(name, "blue")
			state := converting(policy, names.Fleet("blue"), "A")
			state.CRD.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}}
			state.Certificate = &corev1.Secret{}
			state.Revisions = []observed.StoredRevision{{Hash: hash + ".blue"}}
			states[name] = state
			for range 2 {
				state.Pods = []observed.Pod{{Name: "pod", UID: types.UID("pod"), Fleet: "blue", Ready: true}, {Name: "own", UID: "own", Ready: true}}
				p.observe(state, plan.Trust{CABundle: []byte("A"), RulesetHash: hash})
				synctest.Wait()
				woken(p, time.Millisecond)
			}
			p.fillRulesets(state)
		}
		for name, want := range map[string]struct {
			revision, reason, failed string
		}{
			"a": {hashes[0] + ".blue", "", ""}, "b": {hashes[1] + ".blue", "", ""}, "c": {"", "none", "damaged"}, // it is not asked for what it is known to lack
		} {
			pod, own := states[name].Pods[0], states[name].Pods[1]
			if want.revision != "" && !slices.Contains(pod.Revisions, want.revision) {
				t.Errorf("policy %s: the pod serves %v, want %s", name, pod.Revisions, want.revision)
			}
			if got := pod.FailedRulesets["cccccccccccccccc.blue"]; want.failed != "" && got != want.failed {
				t.Errorf("policy %s: the pod has failed with %q", name, got)
			}
			if pod.Revisions == nil || want.revision == "" && slices.Contains(pod.Revisions, "cccccccccccccccc.blue") {
				t.Errorf("policy %s: the pod serves %v", name, pod.Revisions)
			}
			if proof := pod.Proof; cmp.Or(proof, &observed.Proof{Reason: "none"}).Reason != want.reason {
				t.Errorf("policy %s: the proof is %+v, want the reason %q", name, proof, want.reason)
			}
			if own.Proof != nil || own.Revisions != nil {
				t.Errorf("policy %s: a pod of another place has %+v and %v", name, own.Proof, own.Revisions)
			}
		}
		p.forget("a")
		state := states["b"]
		state.Pods[0].Proof = nil
		if pending := p.observe(state, plan.Trust{CABundle: []byte("A"), RulesetHash: hashes[1]}); pending > 0 || state.Pods[0].Proof == nil {
			t.Error("one policy is gone, and the proof of another is lost")
		}
	})
}

// reconcilesFleets is a reconciler of fleets that reads nothing from an API server.
func reconcilesFleets(ctx context.Context) *fleetReconciler {
	r := &ConversionPolicyReconciler{background: newBackground(ctx)}
	return &fleetReconciler{ConversionPolicyReconciler: r,
		states: map[string]map[string]string{}, loaded: map[string]map[string]loaded{}, stored: map[string]map[string]string{}}
}

// TestShardsOfAFleet: a fleet knows which rulesets are stored, which of them cannot be read, and
// whether policies stored some that it does not know. It loads each once, beside other fleets.
func TestShardsOfAFleet(t *testing.T) {
	const policy, gone = "widgets.example.com", "gadgets.example.com"
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		f := reconcilesFleets(ctx)
		hash, stored := aRuleset(t, policy)
		key := conversion.StoredName(names.Child(policy), hash)
		read := func(name string, keys map[string][]byte) *fleet.Observed {
			state := &fleet.Observed{Fleet: &v1alpha1.ConverterFleet{}, Policies: []fleet.Policy{{Name: policy}}}
			state.Fleet.Name = name
			f.readShards(state, map[string]*corev1.ConfigMap{names.Shard(name, 0): {BinaryData: keys}})
			return state
		}
		if state := read("blue", map[string][]byte{key: stored}); state.Stored != 1 || state.Orphaned || state.Unreadable != nil {
			t.Errorf("%d are stored, orphaned: %t, unreadable %v", state.Stored, state.Orphaned, state.Unreadable)
		}
		marked := f.loaded["blue"][key]
		marked.readable = false // shows whether it is loaded again
		f.loaded["blue"][key] = marked
		read("green", nil)
		expect.Equal(t, "unreadable, as it is not loaded again,", 1, len(read("blue", map[string][]byte{key: stored}).Unreadable))
		read("blue", nil)
		goneHash, left := aRuleset(t, gone)
		state := read("blue", map[string][]byte{key: []byte("damaged"), conversion.StoredName(names.Child(gone), goneHash): left})
		if state.Stored != 2 || !state.Orphaned || !slices.Equal(state.Unreadable, []string{key}) {
			t.Errorf("%d are stored, orphaned: %t, unreadable %v", state.Stored, state.Orphaned, state.Unreadable)
		}
		expect.Equal(t, "woken is the policy that is gone", gone, (<-f.background.woken).Object.GetName())
		_, known := f.orphans.get(gone)
		expect.Equal(t, "the rest of the policy is taken care of", true, known)
	})
}

// TestFleetWakes the policies for which something changed: all of them if pods did, and the one whose
// rulesets did.
func TestFleetWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		f := reconcilesFleets(ctx)
		state := &fleet.Observed{Fleet: &v1alpha1.ConverterFleet{}, Policies: []fleet.Policy{{Name: "a"}, {Name: "b"}}}
		state.Fleet.Name = "blue"
		hash, stored := aRuleset(t, "a")
		shards := map[string]*corev1.ConfigMap{"one": {BinaryData: map[string][]byte{}}}
		expect := func(what string, want ...string) {
			t.Helper()
			f.readShards(state, shards)
			f.wakePolicies(state)
			var woken []string
			for waits := true; waits; {
				select {
				case about := <-f.background.woken:
					woken = append(woken, about.Object.GetName())
				case <-time.After(time.Second):
					waits = false
				}
			}
			slices.Sort(woken)
			expect.Equal(t, what+": woken", want, woken)
		}
		expect("at first", "a", "b")
		expect("nothing changed")
		state.Pods = []observed.Pod{{UID: "1", Ready: true}}
		expect("a pod is ready", "a", "b")
		shards["one"].BinaryData[conversion.StoredName(names.Child("a"), hash)] = stored
		expect("a ruleset of a is stored", "a")
		shards["one"].BinaryData[conversion.StoredName(names.Child("a"), hash)] = []byte("x")
		expect("it is damaged", "a")
		delete(shards["one"].BinaryData, conversion.StoredName(names.Child("a"), hash))
		expect("it is deleted", "a")
		state.Certificate = &corev1.Secret{Data: map[string][]byte{observed.CAKey: []byte("A")}}
		expect("the authorities changed", "a", "b")
		state.Fleet.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		expect("the fleet is deleted", "a", "b")
		expect("nothing changed again")
	})
}
