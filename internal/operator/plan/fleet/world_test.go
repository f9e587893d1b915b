// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// world is a fleet with its policies. Nothing is seen at once: an API server goes by any caBundle of
// the last propagation delay, a pod serves what it has loaded, and the fleet knows of a policy what
// the latest reconciliation of that policy saw.
type world struct {
	t        *testing.T
	now      time.Time
	settings observed.Settings
	fleet    *v1alpha1.ConverterFleet

	authority, certificate *corev1.Secret
	pods                   []*pod
	policies               []*policy
	podFailure             observed.PodTrouble
	others                 observed.OtherNodes
	stored                 int
	unreadable             []string
	orphaned               bool
	created                int
	// accepted are the results of accepts, because pairs and bundles are many times the same.
	accepted map[string]bool
	// states are those of the rotation that were seen, and done what was done last.
	states []v1alpha1.RotationState
	done   string
}

// pod is a converter pod with the key pair that it serves.
type pod struct {
	observed.Pod
	serves pki.KeyPair
}

// policy is a ConversionPolicy that uses the fleet, with its CustomResourceDefinition.
type policy struct {
	name string
	// paused policies write nothing.
	paused bool
	// object is what the API server has; nil if the policy no longer exists.
	object *v1alpha1.ConversionPolicy
	// read is the caBundle that the latest reconciliation decided to write; nil if it writes none.
	read []byte
	// stale tells that the CustomResourceDefinition was written, or read to be written, since the
	// latest reconciliation.
	stale bool
	// recorded is what the fleet knows; nil if the policy was not reconciled yet.
	recorded *fleet.Policy
	// bundles are those that API servers may trust, the last of which is in the
	// CustomResourceDefinition. It is nil before it converts through the fleet.
	bundles []bundle
	// left is when it moved elsewhere; zero if it has not.
	left time.Time
}

// bundle is a caBundle, and the time until which API servers may have it; zero for the current one.
type bundle struct {
	text  []byte
	until time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), fleet: &v1alpha1.ConverterFleet{}, accepted: map[string]bool{},
		settings: observed.Settings{Namespace: "conversion-system", Image: "conversion-operator:test", PropagationDelay: time.Minute}}
	w.fleet.Name = "blue"
	w.fleet.APIVersion, w.fleet.Kind = "conversion-operator.io/v1alpha1", "ConverterFleet"
	return w
}

// certify has the fleet issue certificates of these lifetimes.
func (w *world) certify(authority, certificate time.Duration) {
	w.fleet.Spec.Certificates = &v1alpha1.Certificates{Type: v1alpha1.CertificatesSelfManaged, SelfManaged: &v1alpha1.SelfManagedCertificates{
		CADuration: &metav1.Duration{Duration: authority}, Duration: &metav1.Duration{Duration: certificate}}}
}

func (w *world) rotate(trigger string) {
	w.fleet.Spec.Certificates.SelfManaged.RotationTrigger = trigger
}

func (w *world) startPods(count int) {
	for range count {
		w.created++
		name := "pod-" + strconv.Itoa(w.created)
		w.pods = append(w.pods, &pod{Pod: observed.Pod{Name: name, UID: types.UID(name), Fleet: "blue", Ready: true, Scheduled: true, Node: "node-" + name}})
	}
}

// load lets a pod serve what it mounts. It leaves alone what is no key pair.
func (w *world) load(pod *pod) {
	if w.certificate != nil && pki.CheckPair(observed.KeyPair(w.certificate)) == nil {
		pod.serves = observed.KeyPair(w.certificate)
	}
}

// join adds a policy that asks for the fleet.
func (w *world) join(name string) *policy {
	joined := &policy{name: name}
	w.policies = append(w.policies, joined)
	return joined
}

// reconcile observes for a policy. What it decides is written later, by write.
func (w *world) reconcile(p *policy) {
	p.recorded = &fleet.Policy{Name: p.name, Known: true}
	if p.converts() {
		p.recorded.Converts, p.recorded.CABundle = true, p.current()
	}
	p.read, p.stale = nil, false
	if w.certificate == nil || p.paused || !p.left.IsZero() {
		return
	}
	wanted := w.certificate.Data[observed.CAKey]
	proven := !slices.ContainsFunc(w.pods, func(pod *pod) bool { return !w.accepts(wanted, pod) })
	if p.converts() && !bytes.Equal(wanted, p.current()) || !p.converts() && proven && len(w.pods) > 0 {
		p.read = wanted
	}
}

func (p *policy) converts() bool  { return len(p.bundles) > 0 && p.left.IsZero() }
func (p *policy) current() []byte { return p.bundles[len(p.bundles)-1].text }

// write carries out what the latest reconciliation of a policy decided.
func (w *world) write(p *policy) {
	if p.read == nil || !p.left.IsZero() {
		return
	}
	if len(p.bundles) > 0 {
		p.bundles[len(p.bundles)-1].until = w.now.Add(w.settings.PropagationDelay)
	}
	p.bundles, p.read, p.stale = append(p.bundles, bundle{text: p.read}), nil, true
}

// catchUp lets policies see what happened: a reconciliation does not take long, and a write of the
// CustomResourceDefinition causes another.
func (w *world) catchUp() {
	for _, p := range w.policies {
		if p.read != nil {
			w.write(p)
		}
		if p.stale {
			w.reconcile(p)
		}
	}
}

// leave lets a policy move elsewhere. API servers may call the fleet for a while.
func (w *world) leave(p *policy) {
	if p.converts() {
		p.bundles[len(p.bundles)-1].until = w.now.Add(w.settings.PropagationDelay)
	}
	p.left, p.stale = w.now, true
}

// accepts reports that an API server with a caBundle accepts a pod. Nothing expires in a test that
// does not say so.
func (w *world) accepts(text []byte, pod *pod) bool {
	key := string(text) + string(pod.serves.Certificate) + w.now.Format("2006-01-02")
	accepted, known := w.accepted[key]
	if !known {
		trusted, err := pki.ParseBundle(text)
		accepted = err == nil && pki.CheckLeaf(pod.serves, trusted, names.FleetServerName("blue", w.settings.Namespace), w.now) == nil
		w.accepted[key] = accepted
	}
	return accepted
}

// observe is what the fleet sees.
func (w *world) observe() fleet.Observed {
	w.t.Helper()
	state := fleet.Observed{Settings: w.settings, Now: w.now, Fleet: w.fleet, Authority: w.authority, Certificate: w.certificate,
		Evictable: 1, Others: w.others, PodFailure: w.podFailure, Stored: w.stored, Unreadable: w.unreadable, Orphaned: w.orphaned}
	w.policies = slices.DeleteFunc(w.policies, func(p *policy) bool { return !p.left.IsZero() && w.now.After(p.left.Add(w.settings.PropagationDelay)) })
	for _, p := range w.policies {
		of := fleet.Policy{Name: p.name}
		if p.recorded != nil {
			of = *p.recorded
		}
		of.Object = p.object
		state.Policies = append(state.Policies, of)
	}
	slices.SortFunc(state.Policies, func(a, b fleet.Policy) int { return cmp.Compare(a.Name, b.Name) })
	current, successor := fleet.Trust(state)
	for _, pod := range w.pods {
		pod.Proof = nil
		if pod.Ready && w.certificate != nil {
			pod.Proof = &observed.Proof{Successor: w.accepts(successor, pod)}
			if !pod.Proof.Successor && !w.accepts(current, pod) {
				pod.Proof = &observed.Proof{Reason: v1alpha1.ReasonTLSVerificationFailed, Message: "x509"}
			}
		}
		state.Pods = append(state.Pods, pod.Pod)
	}
	return state
}

// look has the fleet decide, and carries that out.
func (w *world) look() {
	w.t.Helper()
	decided := fleet.Make(w.observe())
	for _, s := range decided.Steps {
		w.do(s)
	}
	w.fleet.Status = decided.Status
	if is := decided.Status.Certificate; is != nil && is.Rotation != "" && (len(w.states) == 0 || w.states[len(w.states)-1] != is.Rotation) {
		w.states = append(w.states, is.Rotation)
	}
}

func (w *world) do(s step.Step) {
	w.t.Helper()
	switch s.(type) {
	case step.IssueAuthority, step.PromoteAuthority, step.WriteCertificate:
		expect.NoError(w.t, forecast.Certify(s, "blue", w.now, &w.authority, &w.certificate))
	case step.Apply, step.RefreshPod, step.DeleteChildren:
	default:
		w.t.Fatalf("a fleet does not carry out %T", s)
	}
}

// meet lets every API server verify every pod.
func (w *world) meet() {
	w.t.Helper()
	for _, p := range w.policies {
		for i, bundle := range p.bundles {
			if !bundle.until.IsZero() && !w.now.Before(bundle.until) {
				continue
			}
			for _, pod := range w.pods {
				if pod.Ready && len(pod.serves.Certificate) > 0 && !w.accepts(bundle.text, pod) {
					w.t.Fatalf("after %s, an API server with caBundle %d of %d of policy %s refuses %s; states %v", w.done, i+1, len(p.bundles), p.name, pod.Name, w.states)
				}
			}
		}
	}
}

// rest lets each part of the cluster act in turn until nothing changes any more.
func (w *world) rest() {
	w.t.Helper()
	for range 20 {
		w.round()
	}
}

// round lets each part of the cluster act once.
func (w *world) round() {
	w.t.Helper()
	w.now = w.now.Add(5 * time.Second)
	w.done = fmt.Sprintf("a round at %s", w.now.Format(time.DateTime))
	for _, pod := range w.pods {
		w.load(pod)
	}
	w.meet()
	w.look()
	w.meet()
	for _, p := range w.policies {
		w.reconcile(p)
		w.write(p)
		w.reconcile(p)
	}
	w.meet()
}

// pass lets time pass.
func (w *world) pass(by time.Duration) { w.now = w.now.Add(by) }
