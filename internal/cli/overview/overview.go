// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Format is raised when a reader of an older Report would misread it. New
// fields do not raise it.
const Format = 1

// Observed is the input of an Overview.
type Observed struct {
	Policy *v1alpha1.ConversionPolicy
	// Pods of the converter, or the reason why they could not be read.
	Pods        []corev1.Pod
	PodsUnknown string
	// Namespace is the namespace of the operator, and Instance the label of the objects
	// that it has created for the policy. PodsInstance is that label of the converter pods, which
	// are those of a fleet if one serves the policy.
	Namespace, Instance, PodsInstance string
	Now                               time.Time
	// Program is the command line that starts this program.
	Program string
}

// Report describes the progress of some policies. Its JSON form is stable.
type Report struct {
	// Format is the constant Format.
	Format   int         `json:"format"`
	Policies []*Overview `json:"policies"`
}

// Overview describes the progress of one policy.
type Overview struct {
	Name string `json:"name"`
	// Settled reports that the operator has processed the current policy, and that
	// nothing happens until a user changes something.
	Settled bool `json:"settled"`
	// Ready is True when every requested step is done and proven. It is Unknown
	// while the operator has not seen the latest change of the policy.
	Ready   metav1.ConditionStatus `json:"ready"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message,omitempty"`
	// Stalled reports that the operator needs a change by a user to continue.
	Stalled bool `json:"stalled,omitempty"`
	// Paused and Deleting are from the spec and metadata of the policy.
	Paused   bool `json:"paused,omitempty"`
	Deleting bool `json:"deleting,omitempty"`
	// Gates in order, and after them conditions that report a failure.
	Gates []Gate `json:"gates"`
	// ConverterType is the type of the converter.
	ConverterType v1alpha1.ConverterType `json:"converterType"`
	// Next are the recommended actions in order.
	Next []Advice `json:"next"`

	CRD         *v1alpha1.CRDStatus         `json:"crd,omitempty"`
	Revision    string                      `json:"revision,omitempty"`
	Versions    []v1alpha1.VersionStatus    `json:"versions,omitempty"`
	Removable   string                      `json:"removable,omitempty"`
	Retirement  []v1alpha1.RetirementStatus `json:"retirement,omitempty"`
	Webhook     *v1alpha1.WebhookStatus     `json:"webhook,omitempty"`
	Pods        []Pod                       `json:"pods,omitempty"`
	PodsUnknown string                      `json:"podsUnknown,omitempty"`
	Certificate *v1alpha1.CertificateStatus `json:"certificate,omitempty"`
	Migration   *v1alpha1.MigrationStatus   `json:"migration,omitempty"`
	// ConversionFailures are the conversions that failed recently.
	ConversionFailures []v1alpha1.ConversionFailure `json:"conversionFailures,omitempty"`
	// OversizedObjects are the objects that do not fit into a version.
	OversizedObjects []v1alpha1.OversizedObject `json:"oversizedObjects,omitempty"`
	// MigrationSuspended is true if no migration starts or continues.
	MigrationSuspended bool                        `json:"migrationSuspended,omitempty"`
	MigrationEvidence  *v1alpha1.MigrationEvidence `json:"migrationEvidence,omitempty"`
	// PreservedData counts the objects that hold values in annotations.
	PreservedData *v1alpha1.PreservedDataStatus `json:"preservedData,omitempty"`

	now time.Time
}

// Gate is a condition on the way to Ready.
type Gate struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message,omitempty"`
	Since   metav1.Time            `json:"since,omitzero"`
}

// Pod of the converter.
type Pod struct {
	Name string `json:"name"`
	// Ready is the condition of the pod.
	Ready bool `json:"ready"`
	// State is the phase, or the reason why a container waits.
	State    string      `json:"state"`
	Restarts int32       `json:"restarts"`
	Node     string      `json:"node,omitempty"`
	Started  metav1.Time `json:"started,omitzero"`
}

// notSeen is the reason for a policy that the operator has not processed.
const notSeen = "NotSeen"

// Of returns the Overview of a policy.
func Of(observed Observed) *Overview {
	policy := observed.Policy
	status := &policy.Status
	o := &Overview{
		Name: policy.Name, Ready: metav1.ConditionUnknown, Reason: notSeen,
		Message: "the operator has not processed this policy yet", ConverterType: policy.Spec.Converter.Type,
		Gates: []Gate{}, Paused: policy.Spec.Paused, Deleting: !policy.DeletionTimestamp.IsZero(), MigrationSuspended: policy.Spec.Migration.Suspend,
		CRD: status.CRD, Revision: status.Revision, Versions: status.Versions, Removable: status.Removable, Retirement: status.Retirement,
		Webhook: status.Webhook, PodsUnknown: observed.PodsUnknown, Certificate: status.Certificate,
		Migration: status.Migration, ConversionFailures: status.ConversionFailures, OversizedObjects: status.OversizedObjects, MigrationEvidence: status.MigrationEvidence, PreservedData: status.PreservedData, now: observed.Now,
	}
	o.readReady(policy)
	for _, gate := range slices.Concat(v1alpha1.Gates, v1alpha1.Abnormal) {
		if found := apimeta.FindStatusCondition(status.Conditions, gate); found != nil {
			o.Gates = append(o.Gates, Gate{found.Type, found.Status, found.Reason, found.Message, found.LastTransitionTime})
		}
	}
	for i := range observed.Pods {
		o.Pods = append(o.Pods, podOf(&observed.Pods[i]))
	}
	slices.SortFunc(o.Pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	o.Next = o.advise(observed)
	return o
}

// readReady reads the condition Ready, if it is about the current generation.
func (o *Overview) readReady(policy *v1alpha1.ConversionPolicy) {
	conditions := policy.Status.Conditions
	ready := apimeta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return
	}
	if policy.Status.ObservedGeneration < policy.Generation {
		o.Message = "the operator has not processed the latest change of this policy yet"
		return
	}
	o.Ready, o.Reason, o.Message = ready.Status, ready.Reason, ready.Message
	o.Stalled = apimeta.IsStatusConditionTrue(conditions, v1alpha1.StalledCondition)
	o.Settled = o.Stalled || o.Ready == metav1.ConditionTrue || o.Paused
}

func podOf(pod *corev1.Pod) Pod {
	view := Pod{Name: pod.Name, State: string(pod.Status.Phase), Node: pod.Spec.NodeName, Started: pod.CreationTimestamp}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			view.Ready = condition.Status == corev1.ConditionTrue
		}
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			view.State = condition.Reason
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		view.Restarts += container.RestartCount
		if waiting := container.State.Waiting; waiting != nil {
			view.State = waiting.Reason
		}
	}
	if !pod.DeletionTimestamp.IsZero() {
		view.State = "Terminating"
	}
	return view
}

// condition returns a condition, nil if the status lacks it.
func (o *Overview) condition(kind string) *Gate {
	i := slices.IndexFunc(o.Gates, func(gate Gate) bool { return gate.Type == kind })
	if i < 0 {
		return nil
	}
	return &o.Gates[i]
}
