// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Advice is a recommended action.
type Advice struct {
	Text string `json:"text"`
	// Command carries out the action, or shows the cause; empty if there is none. The
	// constants below have placeholders: PROGRAM, NAME, NAMESPACE and INSTANCE.
	Command string `json:"command,omitempty"`
}

const (
	describePods     = "kubectl -n NAMESPACE describe pods -l app.kubernetes.io/instance=PODS,app.kubernetes.io/component=converter"
	describeRun      = "kubectl -n NAMESPACE describe jobs,pods -l app.kubernetes.io/instance=INSTANCE,app.kubernetes.io/component=migration"
	readLogs         = "kubectl -n NAMESPACE logs -l app.kubernetes.io/instance=INSTANCE,app.kubernetes.io/component=migration --tail=20"
	verifyRules      = "PROGRAM verify NAME --live"
	editPolicy       = "kubectl edit conversionpolicy NAME"
	triggerMigration = "PROGRAM trigger NAME"
	watchStatus      = "PROGRAM status NAME --watch"
	resume           = "PROGRAM resume NAME"
	showVersions     = "kubectl get customresourcedefinition NAME -o jsonpath='{range .spec.versions[*]}{.name} served={.served} storage={.storage}{\"\\n\"}{end}'"
	showConversion   = "kubectl get customresourcedefinition NAME -o jsonpath='{.spec.conversion}'"
	showWriters      = "kubectl get customresourcedefinition NAME -o yaml --show-managed-fields"
)

// advices are actions for a reason, in addition to its message, which has the problem
// and the solution.
var advices = map[string][]Advice{
	v1alpha1.ReasonPaused:                  {{"resume the policy when you are ready", resume}},
	v1alpha1.ReasonNotFound:                {{"create what the message names, correct the field that names it, or delete this policy", ""}},
	v1alpha1.ReasonVersionNotInCRD:         {{"add the version to the CustomResourceDefinition, served and not stored: the converter waits for it", showVersions}},
	v1alpha1.ReasonInvalidSpec:             {{"correct the fields that the message names, and test changed rules before you apply them", "PROGRAM verify NAME --live --policy FILE"}},
	v1alpha1.ReasonUnsupportedPolicy:       {{"install the version of the operator that the policy was written for, or remove the fields that need it", editPolicy}},
	v1alpha1.ReasonNoPodsReady:             {{"find out why no converter pod is ready: until then, objects cannot be read at other versions", describePods}},
	v1alpha1.ReasonSomePodsReady:           {{"find out why some converter pods are not ready", describePods}},
	v1alpha1.ReasonRollingOut:              {{"converter pods are starting; if that takes long, find out why", describePods}},
	"CanaryFailed":                         {{"find out what the rules cannot convert, and fix them", verifyRules}},
	v1alpha1.ReasonForeignConversion:       {{"find what else writes spec.conversion, and remove it first", showConversion}},
	v1alpha1.ReasonDrifted:                 {{"see what was written, and which client wrote it", showWriters}},
	v1alpha1.ReasonContested:               {{"stop the client that writes the CustomResourceDefinition, then change this policy's spec", showWriters}},
	v1alpha1.ReasonMigrating:               {{"nothing: the migration continues by itself", watchStatus}},
	v1alpha1.ReasonMigrationPodPending:     {{"find out why the pod of the migration does not start", describeRun}},
	v1alpha1.ReasonMigrationSuspended:      {{"resume the migration when you are ready", resume + " --migration"}},
	v1alpha1.ReasonObjectsFailed:           {{"find out what is wrong with the failed objects: the commands above write nothing", ""}, {"fix them, or what refuses them; then migrate only those", triggerMigration}},
	v1alpha1.ReasonMigrationFailed:         {{"read the last messages of the run", readLogs}, {"then start another run", triggerMigration}},
	v1alpha1.ReasonNotRequested:            {{"start the migration when you are ready", triggerMigration}},
	v1alpha1.ReasonStoredVersionsUntrusted: {{"start a migration to prove where objects are stored", triggerMigration}},
	v1alpha1.ReasonStorageVersionNotServed: {{"set served: true for the storage version", showVersions}},
	v1alpha1.ReasonConversionFailed:        {{"fix the objects that cannot be converted, or the rules; find the failing objects", verifyRules}},
	v1alpha1.ReasonRoundTripFailed:         {{"find the objects that change in a round trip, and fix the rules or the objects", verifyRules}},
	v1alpha1.ReasonObjectsUnreadable:       {{"find out why objects cannot be read: their conversion fails", describePods}},
	v1alpha1.ReasonReadTruncated:           {{"truncate the fields that the message names, at the version that has them, or store their content elsewhere", ""}},
	v1alpha1.ReasonCheckFailed:             {{"nothing, if the cause is temporary; if a search for dependents fails, search with your own rights, or set dependents: Ignore in spec.retirement", "PROGRAM dependents NAME"}},
	v1alpha1.ReasonInUse:                   {{"a version other than the storage version is in use: check what keeps each version, or set spec.deletionPolicy", editPolicy}},
}

// advise returns the recommended actions in order.
func (o *Overview) advise(observed Observed) []Advice {
	var all []Advice
	switch {
	case o.Reason == notSeen:
		all = []Advice{{"wait a moment; if nothing happens, check whether the operator runs", "kubectl -n NAMESPACE get pods"}}
	case o.Deleting && o.condition(v1alpha1.DeletionBlockedCondition) != nil:
		all = advices[o.condition(v1alpha1.DeletionBlockedCondition).Reason]
	case o.Ready == metav1.ConditionTrue:
		all = slices.Concat(o.adviseFailing(), o.adviseReady())
	default:
		all = slices.Concat(o.adviseFailing(), o.adviseUnready())
	}
	placeholders := strings.NewReplacer("PROGRAM", observed.Program, "NAMESPACE", observed.Namespace, "INSTANCE", observed.Instance, "PODS", observed.PodsInstance, "NAME", o.Name)
	filled := make([]Advice, 0, len(all))
	for _, advice := range all {
		filled = append(filled, Advice{advice.Text, placeholders.Replace(advice.Command)})
	}
	return filled
}

// adviseFailing returns actions for failures, independent of the gates.
func (o *Overview) adviseFailing() []Advice {
	var all []Advice
	for _, condition := range []string{v1alpha1.ConversionsFailingCondition, v1alpha1.SamplesFailingCondition, v1alpha1.OversizedObjectsCondition} {
		if found := o.condition(condition); found != nil {
			all = append(all, advices[found.Reason]...)
		}
	}
	return all
}

// adviseReady returns actions for gates that do not block, and for versions that can be removed.
func (o *Overview) adviseReady() []Advice {
	var all []Advice
	for _, gate := range o.Gates {
		if gate.Status != metav1.ConditionTrue && gate.Reason != v1alpha1.ReasonNotEvaluated {
			all = append(all, advices[gate.Reason]...)
		}
	}
	if o.Removable != "" && o.Removable != "none" {
		all = append(all, Advice{"no object of the kind needs " + o.Removable + " any longer: find what else names old versions", "PROGRAM dependents NAME"},
			Advice{"remove " + o.Removable + " from spec.versions of the CustomResourceDefinition, or let spec.retirement do that", editPolicy})
	}
	return all
}

func (o *Overview) adviseUnready() []Advice {
	if known := advices[o.Reason]; len(known) > 0 {
		return known
	}
	if o.Stalled {
		return []Advice{{"the operator continues after you do what the message says", ""}}
	}
	return []Advice{{"nothing: the operator continues by itself", watchStatus}}
}
