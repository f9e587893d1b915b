// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Advice is something to do.
type Advice struct {
	Text string `json:"text"`
	// Command does it, or shows what is wrong; empty where there is none. PROGRAM,
	// NAME, NAMESPACE and INSTANCE in the table below stand for what is meant.
	Command string `json:"command,omitempty"`
}

const (
	seePods       = "kubectl -n NAMESPACE describe pods -l app.kubernetes.io/instance=INSTANCE,app.kubernetes.io/component=converter"
	seeMigration  = "kubectl -n NAMESPACE logs -l app.kubernetes.io/instance=INSTANCE,app.kubernetes.io/component=migration --tail=20"
	tryRules      = "PROGRAM verify NAME --live"
	editPolicy    = "kubectl edit conversionpolicy NAME"
	migrateAgain  = "PROGRAM trigger NAME"
	follow        = "PROGRAM status NAME --watch"
	resume        = "PROGRAM resume NAME"
	readVersions  = "kubectl get customresourcedefinition NAME -o jsonpath='{range .spec.versions[*]}{.name} served={.served} storage={.storage}{\"\\n\"}{end}'"
	seeConversion = "kubectl get customresourcedefinition NAME -o jsonpath='{.spec.conversion}'"
)

// advices say what to do about a reason, where there is more to say than its
// message, which says what is wrong and names the cure.
var advices = map[string][]Advice{
	v1alpha1.ReasonSuspended:               {{"let the operator go on, once it may", resume + " --everything"}},
	v1alpha1.ReasonCRDNotFound:             {{"apply the CustomResourceDefinition, or delete this policy", ""}},
	v1alpha1.ReasonVersionNotInCRD:         {{"add the version to the CustomResourceDefinition, served and not stored: the converter waits for it", readVersions}},
	v1alpha1.ReasonInvalidRules:            {{"mend the rules, and try them before they are applied", "PROGRAM verify NAME --live --policy FILE"}},
	v1alpha1.ReasonInvalidPatch:            {{"mend spec.workload.patches", editPolicy}},
	v1alpha1.ReasonNoReadyPods:             {{"see why no converter pod is ready: objects cannot be read at other versions meanwhile", seePods}},
	v1alpha1.ReasonSomePodsReady:           {{"see why not all converter pods are ready", seePods}},
	v1alpha1.ReasonRollingOut:              {{"converter pods are being started; if that takes long, see why", seePods}},
	v1alpha1.ReasonWaitingForEndpoints:     {{"converter pods are being started; if that takes long, see why", seePods}},
	v1alpha1.ReasonSampleLost:              {{"see which objects do not come back as they were, and mend the rules", tryRules}},
	"CanaryFailed":                         {{"see what the rules cannot convert, and mend them", tryRules}},
	v1alpha1.ReasonForeignWebhook:          {{"see who converts now, and remove that first", seeConversion}},
	v1alpha1.ReasonConversionDrifted:       {{"see what was written", seeConversion}},
	v1alpha1.ReasonConversionContested:     {{"stop who writes spec.conversion, then change this policy's spec", seeConversion}},
	v1alpha1.ReasonMigrating:               {{"nothing: the migration goes on by itself", follow}},
	v1alpha1.ReasonMigrationPaused:         {{"let the migration go on, once it may", resume}},
	v1alpha1.ReasonObjectsFailed:           {{"see what is wrong with the objects that failed: their commands above write nothing", ""}, {"mend them, or what refuses them; then write those alone", migrateAgain}},
	v1alpha1.ReasonMigrationFailed:         {{"see what the run said last", seeMigration}, {"then start another", migrateAgain}},
	v1alpha1.ReasonNotRequested:            {{"start the migration, when it may be", migrateAgain}},
	v1alpha1.ReasonStoredVersionsUntrusted: {{"let a migration prove where objects are stored", migrateAgain}},
	v1alpha1.ReasonStorageVersionNotServed: {{"set served: true for the storage version", readVersions}},
	v1alpha1.ReasonConversionFailed:        {{"correct the objects that cannot be converted, or the rules; see which objects fail", tryRules}},
	v1alpha1.ReasonRoundTripFailed:         {{"see which objects do not come back as they were, and correct the rules, or the objects", tryRules}},
	v1alpha1.ReasonObjectUnreadable:        {{"see why objects cannot be read: their conversion fails", seePods}},
	v1alpha1.ReasonReadShortened:           {{"make the fields smaller that the message names, at the version that has them, or keep their content elsewhere", ""}},
	v1alpha1.ReasonVersionsInUse:           {{"a version other than the storage version is in use: see what keeps each, or set spec.deletionPolicy", editPolicy}},
}

// advise says what to do, the first thing first.
func (o *Overview) advise(observed Observed) []Advice {
	var all []Advice
	switch {
	case o.Reason == notSeen:
		all = []Advice{{"wait a moment; if nothing happens, see whether the operator runs", "kubectl -n NAMESPACE get pods"}}
	case o.Deleting && o.gate(v1alpha1.DeletionBlockedCondition) != nil:
		all = advices[o.gate(v1alpha1.DeletionBlockedCondition).Reason]
	case o.Ready == metav1.ConditionTrue:
		all = slices.Concat(o.adviseFailing(), o.adviseReady())
	default:
		all = slices.Concat(o.adviseFailing(), o.adviseUnready())
	}
	names := strings.NewReplacer("PROGRAM", observed.Program, "NAMESPACE", observed.Namespace, "INSTANCE", observed.Instance, "NAME", o.Name)
	filled := make([]Advice, 0, len(all))
	for _, advice := range all {
		filled = append(filled, Advice{advice.Text, names.Replace(advice.Command)})
	}
	return filled
}

// adviseFailing says what to do about what goes wrong, whatever the gates say.
func (o *Overview) adviseFailing() []Advice {
	var all []Advice
	for _, condition := range []string{v1alpha1.ConversionsFailingCondition, v1alpha1.SamplesFailingCondition, v1alpha1.OversizedObjectsCondition} {
		if found := o.gate(condition); found != nil {
			all = append(all, advices[found.Reason]...)
		}
	}
	return all
}

// adviseReady looks for what the gates let pass, and what may be done now.
func (o *Overview) adviseReady() []Advice {
	var all []Advice
	for _, gate := range o.Gates {
		if gate.Status != metav1.ConditionTrue && gate.Reason != v1alpha1.ReasonNotEvaluated {
			all = append(all, advices[gate.Reason]...)
		}
	}
	if o.Removable != "" && o.Removable != "none" {
		all = append(all, Advice{"no object needs " + o.Removable + " any more: remove it from spec.versions of the CustomResourceDefinition, or let spec.retirement do that", editPolicy})
	}
	return all
}

func (o *Overview) adviseUnready() []Advice {
	if known := advices[o.Reason]; len(known) > 0 {
		return known
	}
	if o.Stalled {
		return []Advice{{"nothing goes on until what the message says is done", ""}}
	}
	return []Advice{{"nothing: it goes on by itself", follow}}
}
