// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// fleet is a ConverterFleet. Its pods and the rulesets of the policy in its shards are in the
// observed cluster.
type fleet struct {
	spec        v1alpha1.ConverterFleetSpec
	deleted     bool
	authority   pki.KeyPair
	certificate *corev1.Secret
	// others are the bytes in each shard that other policies take.
	others int
}

// watch is what a world with fleets watches: API servers may request each revision for as long as
// they may not have seen that the CustomResourceDefinition names another.
type watch struct {
	// wanted is the fleet of which the certificate was observed last.
	wanted string
	// requested are the revisions that API servers may request, and until when; the zero time for
	// the current one.
	requested map[string]time.Time
	// sabotaged tells that the test takes something away, so that nothing need answer.
	sabotaged bool
}

// newFleetWorld has a policy without pods of its own, and fleets of these names.
func newFleetWorld(t *testing.T, fleets ...string) *world {
	t.Helper()
	w := newWorld(t, strings.Replace(policyYAML, "mode: Automatic", "mode: OnTrigger", 1))
	w.observed.Policy.Spec.Workload = nil
	w.fleets, w.watch = map[string]*fleet{}, &watch{requested: map[string]time.Time{}}
	for _, name := range fleets {
		w.createFleet(name)
	}
	return w
}

// inFleet is a world whose policy is active in the default fleet.
func inFleet(t *testing.T, others ...string) *world {
	t.Helper()
	return from(t, fmt.Sprint("in a fleet, beside ", others), func(t *testing.T) *world { return newInFleet(t, others...) })
}

func newInFleet(t *testing.T, others ...string) *world {
	t.Helper()
	w := newFleetWorld(t, others...)
	w.define(bothStoredNew)
	if named := w.named(); !strings.HasSuffix(named, ".default") {
		t.Fatalf("the CustomResourceDefinition names %q:\n%s", named, w.story())
	}
	return w
}

// move asks for another place: a fleet, or pods of the policy alone if the name is empty.
func (w *world) move(fleet string) {
	spec := &w.observed.Policy.Spec
	spec.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadFleet, Fleet: &v1alpha1.FleetWorkload{Name: v1alpha1.FleetName(fleet)}}
	if fleet == "" {
		spec.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadDedicated, Dedicated: &v1alpha1.ConverterPods{}}
	}
	w.observed.Policy.Generation++
}

// createFleet lets the pods of a fleet start.
func (w *world) createFleet(name string) {
	w.t.Helper()
	authority := w.pair(pki.NewAuthority(name, w.observed.Now, 10000*time.Hour))
	w.fleets[name] = &fleet{authority: authority, certificate: w.issueFor(name, authority)}
	if w.holdBack {
		return
	}
	for i := range 3 {
		w.observed.Pods = append(w.observed.Pods, observed.Pod{Name: fmt.Sprintf("%s-%d", name, i), Fleet: name,
			Revisions: w.storedRulesets(name), Ready: true, Scheduled: true})
	}
}

// issueFor is the Secret that the pods of a fleet mount.
func (w *world) issueFor(name string, authority pki.KeyPair) *corev1.Secret {
	w.t.Helper()
	leaf := w.pair(pki.IssueLeaf(authority, names.FleetServerName(name, w.observed.Settings.Namespace), w.observed.Now, 5000*time.Hour))
	_, serving, _ := names.FleetSecrets(name)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: serving}, Data: map[string][]byte{
		corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key, observed.CAKey: authority.Certificate}}
}

// podOf is a pod of a fleet, or of the policy alone.
func (w *world) podOf(fleet string, number int) *observed.Pod {
	w.t.Helper()
	for i := range w.observed.Pods {
		if pod := &w.observed.Pods[i]; pod.Fleet == fleet {
			if number == 0 {
				return pod
			}
			number--
		}
	}
	w.t.Fatalf("fleet %q has fewer pods", fleet)
	return nil
}

func fleetOf(stored observed.StoredRevision) string { return names.RevisionOf(stored.Hash).Fleet }

// ofFleets are the pods of all fleets, and the rulesets of the policy in their shards.
func (w *world) ofFleets() (pods []observed.Pod, revisions []observed.StoredRevision) {
	for _, pod := range w.observed.Pods {
		if pod.Fleet != "" {
			pods = append(pods, pod)
		}
	}
	for _, stored := range w.observed.Revisions {
		if fleetOf(stored) != "" {
			revisions = append(revisions, stored)
		}
	}
	return pods, revisions
}

// storeInFleet changes shards as the controller does.
func (w *world) storeInFleet(s step.StoreRulesets) {
	w.t.Helper()
	expect.Equal(w.t, "owner of the rulesets", names.Child(crontabs), s.Owner)
	state := &w.observed
	for _, remove := range s.Remove {
		state.Revisions = slices.DeleteFunc(state.Revisions, func(stored observed.StoredRevision) bool {
			return stored.Hash == revision(remove.Hash, s.Fleet) && stored.ConfigMap == remove.ConfigMap
		})
	}
	for _, add := range s.Add {
		state.Revisions = slices.DeleteFunc(state.Revisions, func(stored observed.StoredRevision) bool {
			return stored.Hash == revision(add.Hash, s.Fleet) && stored.ConfigMap == add.ConfigMap
		})
		state.Revisions = append(state.Revisions, observed.StoredRevision{Hash: revision(add.Hash, s.Fleet), Readable: true, Stored: add.Stored, ConfigMap: add.ConfigMap})
	}
}

func revision(hash, fleet string) string { return names.Revision{Hash: hash, Fleet: fleet}.String() }

// describeStore tells what changes in shards.
func (w *world) describeStore(s step.StoreRulesets) string {
	var changes []string
	for _, add := range s.Add {
		changes = append(changes, "add "+add.Hash+" to "+add.ConfigMap)
	}
	for _, remove := range s.Remove {
		changes = append(changes, "remove "+remove.Hash+" from "+remove.ConfigMap)
	}
	return strings.Join(changes, ", ")
}

// observeFleets observes the fleets that matter to the policy, and probes the pods that it wants, as
// the controller does. What else pods have is not known to be proven.
func (w *world) observeFleets() {
	w.t.Helper()
	if w.fleets == nil {
		return
	}
	state, wanted := &w.observed, observed.FleetOf(w.observed.Policy)
	switch before := w.watch.wanted; {
	case before == "" && wanted != "":
		state.OwnCertificate = state.Certificate
	case before != "" && wanted == "":
		state.Certificate, state.OwnCertificate = state.OwnCertificate, nil
	}
	w.watch.wanted = wanted
	if wanted != "" {
		state.Certificate = nil
		if there := w.fleets[wanted]; there != nil {
			state.Certificate = there.certificate
		}
	}
	used := observed.FleetsOf(state.Policy, state.CRD)
	for _, stored := range state.Revisions {
		if fleet := fleetOf(stored); fleet != "" && !slices.Contains(used, fleet) {
			used = append(used, fleet)
		}
	}
	state.Fleets = nil
	for _, name := range used {
		state.Fleets = append(state.Fleets, w.observeFleet(name))
	}
	w.probeFleets(wanted)
	w.expectAnswers()
}

func (w *world) observeFleet(name string) observed.Fleet {
	there := w.fleets[name]
	if there == nil {
		return observed.Fleet{Name: name}
	}
	of := observed.Fleet{Name: name, Found: true, Exists: !there.deleted, Spec: there.spec, Replicas: 3, Certificate: there.certificate, Evictable: 1}
	for _, pod := range w.observed.Pods {
		if pod.Fleet == name && pod.Ready {
			of.Endpoints++
		}
	}
	for number := range of.Shards {
		of.Shards[number] = there.others
		for _, stored := range w.observed.Revisions {
			if stored.ConfigMap == names.Shard(name, number) {
				of.Shards[number] += len(stored.Stored)
			}
		}
	}
	return of
}

// probeFleets probes the ready pods of the wanted place by what they will be asked for.
func (w *world) probeFleets(wanted string) {
	if w.observed.CRD == nil {
		return
	}
	asked := revision(plan.TrustOf(w.observed).RulesetHash, wanted)
	for i := range w.observed.Pods {
		switch pod := &w.observed.Pods[i]; {
		case pod.Image:
		case !pod.Ready || pod.Fleet != wanted || asked == "" || w.observed.Certificate == nil:
			pod.Proof = nil
		case w.misbehave != "":
			pod.Proof = &observed.Proof{Reason: v1alpha1.ReasonCanaryFailed, Message: w.misbehave}
		case !slices.Contains(pod.Revisions, asked):
			pod.Proof = &observed.Proof{Reason: v1alpha1.ReasonWrongRuleset, Message: "it does not serve the ruleset"}
		default:
			pod.Proof = &observed.Proof{}
		}
	}
}

// named is the revision that the CustomResourceDefinition names; empty if it is none of ours.
func (w *world) named() string {
	crd := w.observed.CRD
	if crd == nil || crds.Strategy(crd) != "Webhook" {
		return ""
	}
	service := observed.WebhookService(crd)
	if service == nil || service.Path == nil || *service.Port != workload.ServicePort {
		return "" // an image has a port of its own
	}
	if fleet := names.FleetOf(service.Name); fleet != "" || service.Name == names.Child(crontabs) {
		return revision(path.Base(*service.Path), fleet)
	}
	return ""
}

// expectAnswers looks, at any time, whether each revision that an API server may request is stored,
// and whether every ready pod that it may reach has it.
func (w *world) expectAnswers() {
	w.t.Helper()
	watched, now := w.watch, w.named()
	for requested, until := range watched.requested {
		if until.IsZero() && requested != now {
			watched.requested[requested] = w.observed.Now.Add(w.observed.Settings.PropagationDelay)
		}
	}
	maps.DeleteFunc(watched.requested, func(_ string, until time.Time) bool { return !until.IsZero() && !w.observed.Now.Before(until) })
	if now != "" && crds.ConversionIsBy(w.observed.CRD, w.observed.CRD.Spec.Conversion, names.ManagedBy) {
		watched.requested[now] = time.Time{}
	}
	if watched.sabotaged {
		return
	}
	for requested := range watched.requested {
		fleet, ready := names.RevisionOf(requested).Fleet, 0
		for _, pod := range w.observed.Pods {
			if pod.Fleet != fleet || !pod.Ready || pod.Image {
				continue
			}
			if ready++; !slices.Contains(pod.Revisions, requested) {
				w.t.Errorf("API servers may request %s, and the ready pod %s does not have it", requested, pod.Name)
			}
		}
		if ready == 0 {
			w.t.Errorf("API servers may request %s, and no pod there is ready", requested)
		}
		expect.Equal(w.t, "what API servers may request is stored: "+requested, true, slices.Contains(w.storedRulesets(fleet), requested))
	}
}

// authorities are those by which the pods of a place are verified.
func (w *world) authorities(fleet string) []byte {
	secret := w.observed.OwnCertificate
	switch {
	case fleet != "" && w.fleets[fleet] == nil:
		w.t.Errorf("fleet %q does not exist, and is to be called", fleet)
		return nil
	case fleet != "":
		secret = w.fleets[fleet].certificate
	case observed.FleetOf(w.observed.Policy) == "":
		secret = w.observed.Certificate
	}
	if secret == nil {
		return nil
	}
	return secret.Data[observed.CAKey]
}

// expectSwitches looks at what the CustomResourceDefinition is to name: every ready pod of that
// place has it and has proven it, unless spec.conversion is repaired or only caBundle changes, and
// caBundle has the authorities of that place.
func (w *world) expectSwitches(decided plan.Plan) {
	w.t.Helper()
	if w.fleets == nil {
		return
	}
	for _, s := range decided.Steps {
		to, is := s.(step.SwitchCRD)
		if !is {
			continue
		}
		client := to.Conversion.Webhook.ClientConfig
		fleet := names.FleetOf(client.Service.Name)
		if !bytes.Equal(client.CABundle, w.authorities(fleet)) || len(client.CABundle) == 0 {
			w.t.Errorf("the CustomResourceDefinition is pointed at fleet %q with other authorities", fleet)
		}
		named := revision(path.Base(*client.Service.Path), fleet)
		repairs := slices.Contains(kinds(decided.Steps), "RecordDrift")
		for _, pod := range w.observed.Pods {
			if pod.Fleet != fleet || !pod.Ready || pod.Image || repairs || named == w.named() || w.watch.sabotaged {
				continue
			}
			if !slices.Contains(pod.Revisions, named) || pod.Proof == nil || pod.Proof.Reason != "" {
				w.t.Errorf("the CustomResourceDefinition is to name %s, and pod %s has %v, with the proof %+v", named, pod.Name, pod.Revisions, pod.Proof)
			}
		}
	}
}

// expectWebhooks looks at the webhook configuration: names are unique, and each webhook calls the
// pods of its revision, and trusts their authorities.
func (w *world) expectWebhooks() {
	w.t.Helper()
	if w.fleets == nil {
		return
	}
	seen := map[string]bool{}
	for _, webhook := range w.observed.Admission.Webhooks {
		expect.Equal(w.t, "two webhooks have the name "+webhook.Name, false, seen[webhook.Name])
		seen[webhook.Name] = true
		service := webhook.ClientConfig.Service
		fleet := names.FleetOf(service.Name)
		if called := revision(path.Base(*service.Path), fleet); !strings.HasPrefix(webhook.Name, called+".") {
			w.t.Errorf("webhook %s calls %s", webhook.Name, called)
		}
		expect.Equal(w.t, "authorities that webhook "+webhook.Name+" trusts", w.authorities(fleet), webhook.ClientConfig.CABundle)
	}
}

// callFleet points a webhook at the Service of a fleet, and callPath at a path.
func callFleet(fleet string) func(*apiextensionsv1.WebhookClientConfig) {
	return func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = names.Fleet(fleet) }
}

func callPath(to string) func(*apiextensionsv1.WebhookClientConfig) {
	return func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Path = &to }
}

// loadInFleet lets the pods of a fleet load the stored rulesets.
func (w *world) loadInFleet(s step.AwaitRuleset) {
	for i := range w.observed.Pods {
		if pod := &w.observed.Pods[i]; pod.Fleet == s.Fleet && !w.holdBack && !w.lies {
			pod.Revisions = w.storedRulesets(pod.Fleet)
			w.tell("  %s loads %s", pod.Name, strings.Join(pod.Revisions, " and "))
		}
	}
}
