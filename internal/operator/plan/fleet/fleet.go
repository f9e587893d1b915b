// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// Observed is the state of the cluster for one fleet.
type Observed struct {
	Settings observed.Settings
	Now      time.Time
	Fleet    *v1alpha1.ConverterFleet

	// Authority, Certificate and Source are the Secrets of certificates.Input, and Request is the
	// state of the request to cert-manager.
	Authority, Certificate, Source *corev1.Secret
	Request                        observed.Request

	// Pods are the converter pods, and Ending those that are being deleted. PodFailure is why the
	// Deployment cannot create pods.
	Pods       []observed.Pod
	Ending     []observed.EndingPod
	PodFailure observed.PodTrouble
	// Scaled is the number of replicas that the Deployment has; zero if there is none.
	Scaled int32
	// Evictable is the number of pods that the PodDisruptionBudget allows to evict now, and Others are
	// the nodes that no pod is on.
	Evictable int
	Others    observed.OtherNodes
	// Policies use the fleet, sorted by name.
	Policies []Policy
	// Stored is the number of rulesets in the shards, and Unreadable are those that this version
	// of the operator cannot read, by the keys of ConfigMaps. Orphaned tells that policies stored
	// some which are not among Policies: their CustomResourceDefinitions may convert through the
	// fleet.
	Stored     int
	Unreadable []string
	Orphaned   bool
}

// Used reports that the fleet must not go.
func (o Observed) Used() bool { return len(o.Policies) > 0 || o.Stored > 0 }

// Policy is a policy that uses a fleet.
type Policy struct {
	Name string
	// Object is nil if the policy no longer exists. It must not be changed.
	Object *v1alpha1.ConversionPolicy
	// Known tells that its CustomResourceDefinition was read.
	Known bool
	// Converts tells that its CustomResourceDefinition converts through the fleet, with this
	// caBundle.
	Converts bool
	CABundle []byte
}

// Plan is the decision about one fleet.
type Plan struct {
	// Steps in the order in which they are carried out.
	Steps []step.Step
	// Finalizer tells whether the fleet must have the finalizer: while policies use it.
	Finalizer bool
	Status    v1alpha1.ConverterFleetStatus
	// RecheckAfter is when to reconcile again if no event does; zero for never.
	RecheckAfter time.Duration
}

// planner collects what is decided.
type planner struct {
	Observed
	gate.Work
	certificates *certificates.Certificates
	status       v1alpha1.ConverterFleetStatus
}

// Trust returns the authorities by which the pods must be verified: the current or future caBundle,
// and the one after a rotation that is under way.
func Trust(o Observed) (current, successor []byte) {
	c := certificates.Gather(certificatesInput(o))
	return c.CABundle(), c.Successor()
}

// Make decides what to do about a fleet.
func Make(o Observed) Plan {
	p := &planner{Observed: o, status: *o.Fleet.Status.DeepCopy(), certificates: certificates.Gather(certificatesInput(o))}
	used := o.Used()
	if deleted := !o.Fleet.DeletionTimestamp.IsZero(); deleted && !used {
		p.Do(step.DeleteChildren{Instance: names.Fleet(o.Fleet.Name)})
		return Plan{Steps: p.Steps, Status: p.status}
	}
	p.Add(p.certificates.Upkeep())
	ready := p.certificates.Ready()
	p.Add(ready.Work)
	p.report(v1alpha1.CertificatesReadyCondition, ready.Outcome)
	available := p.available()
	p.report(v1alpha1.WebhookAvailableCondition, available)
	last := available
	if ready.Stop {
		last = ready.Outcome
	}
	p.summarize(last)
	p.reportProblems()
	p.count()
	return Plan{Steps: p.Steps, Status: p.status, Finalizer: used, RecheckAfter: p.RecheckAfter}
}

// certificatesInput are the certificates of a fleet. A migration of one policy does not hold up
// those of all others: its caBundle is written when it may be, and the rotation waits for that.
func certificatesInput(o Observed) certificates.Input {
	authority, serving, issued := names.FleetSecrets(o.Fleet.Name)
	in := certificates.Input{
		Settings: o.Settings, Now: o.Now, Spec: ptr.Deref(o.Fleet.Spec.Certificates, v1alpha1.Certificates{}), Before: o.Fleet.Status.Certificate,
		ServerName: names.FleetServerName(o.Fleet.Name, o.Settings.Namespace),
		Secrets:    certificates.Secrets{Authority: authority, Serving: serving, Issued: issued},
		Labels:     names.FleetLabels(o.Fleet.Name), Annotations: annotations(o.Fleet.Name),
		Authority: o.Authority, Certificate: o.Certificate, Source: o.Source, Request: o.Request,
		Pods: o.Pods, Ending: o.Ending, ServingEndpoints: o.Pods, InUse: true,
	}
	if o.Orphaned {
		in.Active, in.EverActive, in.Trusted = true, true, [][]byte{nil}
	}
	for _, policy := range o.Policies {
		trusted := policy.trusted()
		switch {
		case !policy.Known:
			trusted = nil
		case !policy.Converts && o.Certificate == nil:
			continue
		case !policy.Converts: // it may write what it has read, and API servers may have what it wrote
			trusted = o.Certificate.Data[observed.CAKey]
		}
		in.Active, in.EverActive = true, true
		in.Trusted = append(in.Trusted, trusted)
	}
	return in
}

func annotations(fleet string) map[string]string {
	return map[string]string{names.FleetAnnotation: fleet}
}

// Workload is the workload of a fleet, whose Deployment has been scaled to a number of pods; zero if
// there is none.
func Workload(settings observed.Settings, fleet *v1alpha1.ConverterFleet, scaled int32) workload.Workload {
	spec := workload.Default(ptr.Deref(fleet.Spec.Workload, v1alpha1.ConverterPods{}))
	spec.Replicas = new(ptr.Deref(fleet.Spec.Replicas, defaultReplicas))
	if most := fleet.Spec.MaxReplicas; most != nil {
		spec.Replicas = new(min(max(*spec.Replicas, scaled), max(*spec.Replicas, *most)))
	}
	_, serving, _ := names.FleetSecrets(fleet.Name)
	return workload.Workload{Settings: settings, Name: names.Fleet(fleet.Name), Spec: spec, MaxReplicas: ptr.Deref(fleet.Spec.MaxReplicas, 0),
		Labels: names.FleetLabels(fleet.Name), Annotations: annotations(fleet.Name), Certificate: serving}
}

// defaultReplicas is the number of pods of a fleet: with one lost and one being replaced, one is
// left.
const defaultReplicas = 3

// shards is the volume of a fleet's rulesets. Its pods mount all shards in one directory, whether
// they exist or not.
func shards(fleet string) *corev1apply.VolumeApplyConfiguration {
	projected := corev1apply.ProjectedVolumeSource()
	for number := range names.Shards {
		projected.WithSources(corev1apply.VolumeProjection().WithConfigMap(
			corev1apply.ConfigMapProjection().WithName(names.Shard(fleet, number)).WithOptional(true)))
	}
	return corev1apply.Volume().WithProjected(projected)
}

// available applies the workload, and reports whether pods are ready. The pods of another image
// start only if this version of the operator can read all stored rulesets: it is that image.
func (p *planner) available() gate.Outcome {
	w := Workload(p.Settings, p.Fleet, p.Scaled)
	ours := workload.Objects{
		Service:    w.Service(workload.Port(workload.PortName, workload.ServicePort)),
		Budget:     w.DisruptionBudget(w.Selector()),
		Deployment: w.Deployment(w.RulesPod(shards(p.Fleet.Name), "--shared")),
	}
	objects, err := ours.Patched("spec.workload.patches", w.Spec.Patches, true)
	if err != nil {
		return gate.Stalled(v1alpha1.ReasonInvalidSpec, gate.Cut(err.Error())+"; the running converter pods do not change")
	}
	p.Do(step.Apply{Object: objects.Service}, step.Apply{Object: objects.Budget})
	if len(p.Unreadable) > 0 && len(p.Pods) > 0 {
		return gate.Stalled(v1alpha1.ReasonRulesetLost, fmt.Sprintf(
			"this version of the operator cannot read the stored rulesets %s: running pods convert by them, and the Deployment does not change until their policies have others",
			gate.FirstOf(p.Unreadable, mostNamed)))
	}
	p.Do(step.Apply{Object: objects.Deployment})
	ready, desired := p.ready(), w.Replicas()
	trouble := p.trouble()
	says := fmt.Sprintf("%d of %d converter pods are ready", len(ready), desired)
	switch {
	case len(ready) == 0:
		return gate.Waiting(v1alpha1.ReasonNoPodsReady, fmt.Sprintf("no converter pod is ready: see the pods of Deployment %s/%s", p.Settings.Namespace, w.Name)+trouble)
	case int32(len(ready)) < desired: //nolint:gosec // there are not that many
		return gate.Passed(v1alpha1.ReasonSomePodsReady, says+": conversions work with reduced redundancy"+trouble)
	}
	return gate.Passed(v1alpha1.ReasonAvailable, says+trouble)
}

func (p *planner) ready() []observed.Pod {
	return workload.Ready(p.Pods)
}

// trouble is what prevents pods from being created or from starting. They usually have the same
// trouble, so the message names one of them.
func (p *planner) trouble() string {
	says := ""
	if p.PodFailure.Message != "" {
		says = "; the Deployment cannot create pods: " + p.PodFailure.Message
	}
	for _, pod := range p.Pods {
		if !pod.Ready && pod.Trouble.Message != "" {
			return says + "; pod " + pod.Name + ": " + gate.Cut(pod.Trouble.Message)
		}
	}
	return says
}

// mostNamed is the number of policies or rulesets that a message names.
const mostNamed = 5

// reportProblems sets the conditions that exist only while there is a problem.
func (p *planner) reportProblems() {
	p.spread()
	p.reportRotation()
	if p.Fleet.DeletionTimestamp.IsZero() {
		apimeta.RemoveStatusCondition(&p.status.Conditions, v1alpha1.DeletionBlockedCondition)
		return
	}
	says := fmt.Sprintf("%d rulesets of policies that no longer exist are stored, whose CustomResourceDefinitions may convert through the fleet", p.Stored)
	if len(p.Policies) > 0 {
		var policies []string
		for _, policy := range p.Policies {
			policies = append(policies, policy.Name)
		}
		says = fmt.Sprintf("%d policies use the fleet: name another one in their spec.workload.fleet, or delete them: %s", len(policies), gate.FirstOf(policies, mostNamed))
	}
	p.report(v1alpha1.DeletionBlockedCondition, gate.Abnormal(v1alpha1.ReasonInUse, says))
}

// spread reports pods that are all on one node, and has one of them start on another node.
func (p *planner) spread() {
	w := Workload(p.Settings, p.Fleet, p.Scaled)
	decided := workload.Redundancy{Pods: p.Pods, Ending: len(observed.StillEnding(p.Ending, p.Now)), Workload: w, Evictable: p.Evictable, Others: p.Others,
		Before: p.status.Conditions, Now: p.Now}.Decide()
	p.Add(decided.Work)
	if decided.Reason == "" {
		apimeta.RemoveStatusCondition(&p.status.Conditions, v1alpha1.NotRedundantCondition)
		return
	}
	p.report(v1alpha1.NotRedundantCondition, decided.Outcome)
}

// count sets the numbers in the status.
func (p *planner) count() {
	p.status.ObservedGeneration = p.Fleet.Generation
	p.status.Replicas, p.status.ReadyReplicas = int32(len(p.Pods)), int32(len(p.ready())) //nolint:gosec // there are not that many
	p.status.Policies = int32(len(p.Policies))                                            //nolint:gosec // there are not that many
	p.status.Selector = labels.SelectorFromSet(Workload(p.Settings, p.Fleet, p.Scaled).Selector()).String()
	p.status.Certificate = p.certificates.Status()
}

func (p *planner) report(condition string, outcome gate.Outcome) {
	apimeta.SetStatusCondition(&p.status.Conditions, outcome.Condition(condition, p.Fleet.Generation, p.Now))
}

// summarize sets Ready, Reconciling and Stalled as kstatus reads them.
func (p *planner) summarize(last gate.Outcome) {
	ready := gate.Passed(v1alpha1.ReasonSucceeded, last.Message)
	if last.Stop {
		ready = gate.Outcome{Status: metav1.ConditionFalse, Reason: last.Reason, Message: last.Message}
	}
	p.report(v1alpha1.ReadyCondition, ready)
	p.report(v1alpha1.ReconcilingCondition, gate.Flag(last.Stop && !last.Stalled, ready))
	p.report(v1alpha1.StalledCondition, gate.Flag(last.Stalled, ready))
}

// recoveries are the events for the end of conditions that exist only during a problem.
var recoveries = []gate.Recovery{
	workload.RedundancyRecovery,
	{Condition: v1alpha1.RotationBlockedCondition, Note: "rotation unblocked: the rotation of certificates continues, or is complete"},
}

// underWay are the reasons of conditions that become True without help.
var underWay = []string{v1alpha1.ReasonIssuing, v1alpha1.ReasonNoPodsReady}

// Events returns the events between two states of a fleet: one for each condition whose status or
// reason changed, except the summaries.
func Events(before, after v1alpha1.ConverterFleetStatus) (events []gate.Event) {
	for _, now := range after.Conditions {
		switch now.Type {
		case v1alpha1.ReadyCondition, v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition:
			continue
		}
		if !gate.Changed(apimeta.FindStatusCondition(before.Conditions, now.Type), now) {
			continue
		}
		events = append(events, gate.Event{Reason: now.Reason, Action: now.Type, Note: gate.Note(now),
			Warning: slices.Contains(v1alpha1.Abnormal, now.Type) || now.Status == metav1.ConditionFalse && !slices.Contains(underWay, now.Reason)})
	}
	return append(events, gate.Recovered(recoveries, before.Conditions, after.Conditions)...)
}
