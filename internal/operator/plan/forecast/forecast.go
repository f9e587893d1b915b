// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/retirement"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Objects are what is known of the objects of the kind.
type Objects struct {
	Total int64
	// Failing are those that a conversion changes or refuses.
	Failing []Failing
	// Preserved are the fields whose values a conversion preserves in annotations.
	Preserved []Preserved
}

// Failing are objects that a conversion changes or refuses for the same reason.
type Failing struct {
	// Object is the first of them, and Objects their number.
	Object  string `json:"object"`
	Objects int64  `json:"objects"`
	Message string `json:"message"`
	// Lossy tells that a round trip does not preserve them, so that no conversion becomes active. Refused tells
	// that an API server does not store them at the new storage version.
	Lossy   bool `json:"lossy"`
	Refused bool `json:"refused"`
}

// Preserved is a field of a version that another version has no room for.
type Preserved struct {
	Version, At, Path string
	// Objects have a value of this field, and Holders of any field that is preserved at the same version.
	Objects, Holders int64
}

const (
	// round is the time between two plans.
	round = time.Second
	// maxPlans bounds a forecast. A retirement reads the metrics of API servers every hour, for weeks.
	maxPlans = 5000
	// patience is how long the operator may wait without a write before a forecast ends with that wait.
	patience = time.Hour
)

// driver makes one plan after the other.
type driver struct {
	*Cluster
	recorder
	objects Objects
	// wrote is the time of the last write, and moved that of the last one that changed something for clients.
	wrote, moved time.Time
}

// Forecast makes one plan after the other, and carries them out, until nothing happens any more without a
// user. Objects in applied exist already. Clients do nothing meanwhile.
func (c *Cluster) Forecast(objects Objects, applied plan.Plan, begin ...Action) (*Path, error) {
	d := &driver{Cluster: c, objects: objects, wrote: c.State.Now, moved: c.State.Now, recorder: recorder{begin: c.State.Now, applied: map[string]string{}}}
	d.path.Stages = []Stage{}
	for _, s := range applied.Steps {
		if apply, is := s.(step.Apply); is {
			d.changes(apply)
		}
	}
	c.Answer = d.answer
	c.State.Policy = c.State.Policy.DeepCopy()
	c.State.Policy.Spec.Verification.ResampleInterval = &metav1.Duration{} // samples that are taken again lead nowhere
	if len(begin) > 0 {
		d.stage("", "", c.State.Now)
		for _, action := range begin {
			d.add(action)
		}
	}
	for range maxPlans {
		if ended := d.next(); c.Err != nil {
			return nil, c.Err
		} else if ended {
			break
		}
	}
	d.end()
	return &d.path, nil
}

// next makes the next plan and carries it out. It reports whether the path ends there.
func (d *driver) next() (ended bool) {
	before := d.Snapshot()
	decided := d.Plan()
	gate := gateOf(&decided.Status)
	d.stage(gate.Type, gate.Message, d.State.Now)
	for _, s := range decided.Steps {
		d.carryOut(s)
	}
	d.State.Policy.Status = decided.Status
	d.copyComposite()
	switch {
	case d.gone():
		return true
	case d.Snapshot() != before:
		d.State.Now = d.State.Now.Add(round)
		return false
	case d.migrate():
		return false
	}
	return d.wait(decided, gate)
}

// carryOut carries out a step, and records what follows from it.
func (d *driver) carryOut(s step.Step) {
	undo := d.undo(s)
	if d.step(s, undo) {
		d.wrote = d.State.Now
	}
	if undo != "" {
		d.moved = d.State.Now
	}
	stored := d.stored()
	d.Do(s)
	if _, prunes := s.(step.PruneStoredVersions); prunes {
		return
	}
	if now := d.stored(); !slices.Equal(stored, now) {
		d.add(Action{Kind: Write, By: APIServer, Text: "set status.storedVersions to " + strings.Join(now, ", ")})
	}
}

// undo says until when a step can be undone; empty if it changes nothing for clients.
func (d *driver) undo(s step.Step) string {
	switch s := s.(type) {
	case step.SwitchCRD:
		switch stored := d.stored(); {
		case s.MayWait, d.State.Unconverted() && d.State.Policy.Status.ActivatedCRD != "": // it repairs drift
			return ""
		case !d.State.Unconverted():
			return "yes: change the policy back"
		case len(stored) > 1:
			return "no: objects may be stored at " + strings.Join(stored, ", ") + ", and need the conversion until they are migrated"
		default:
			return "until objects are stored at another version than " + strings.Join(stored, ", ") + ": delete the policy"
		}
	case step.RestoreCRD:
		return "yes: create the policy again"
	case step.EditVersions:
		if slices.ContainsFunc(s.Changes, func(change step.VersionChange) bool { return change.Field == "" }) {
			return "no"
		}
		return "yes: change the policy back"
	case step.Create:
		return "no: objects that are rewritten stay so; another migration rewrites them at the previous version"
	case step.PruneStoredVersions:
		return "no: only another migration stores objects at a previous version again"
	case step.ClearManagedFields:
		return "no"
	}
	return ""
}

func (d *driver) stored() []string {
	if d.State.CRD == nil {
		return nil
	}
	return slices.Clone(d.State.CRD.Status.StoredVersions)
}

// copyComposite lets Crossplane copy the conversion of the XRD to the CustomResourceDefinition.
func (d *driver) copyComposite() {
	if d.State.Composite == nil || d.State.Copied() {
		return
	}
	d.add(Action{Kind: Write, By: Crossplane, Text: "copy spec.conversion to CustomResourceDefinition " + d.State.CRD.Name})
	d.Write(string(Crossplane), d.State.Composite.Spec.Conversion.DeepCopy())
}

// gone reports that the policy was deleted.
func (d *driver) gone() bool { return d.State.IsDeleted() && len(d.State.Policy.Finalizers) == 0 }

// migrate lets a running migration end, and reports whether there was one.
func (d *driver) migrate() bool {
	run := d.State.Policy.Status.Migration
	if run == nil || run.State != v1alpha1.MigrationRunning || len(d.State.Runs) == 0 || d.State.Policy.Spec.Paused {
		return false
	}
	if last := d.State.Runs[len(d.State.Runs)-1]; last.Job == nil || last.Over() || last.Suspended() {
		return false
	}
	record := contract.Record{State: contract.StateCompleted, Preserved: new(d.held(run.StorageVersion)), CRDUID: d.State.CRD.UID}
	for _, failing := range d.objects.Failing {
		if failing.Refused && len(record.Failures) < 10 {
			record.Failures = append(record.Failures, v1alpha1.MigrationFailure{Object: failing.Object, Message: failing.Message})
		}
		if failing.Refused {
			record.Failed += failing.Objects
		}
	}
	record.Total, record.Rewritten = d.objects.Total, max(0, d.objects.Total-record.Failed)
	takes := (d.State.Settings.PropagationDelay + d.rewriting()).Round(time.Second)
	d.add(Action{Kind: Write, By: Migration, Takes: metav1.Duration{Duration: takes},
		Text: fmt.Sprintf("wait until API servers no longer write at another version, and rewrite %d objects at %s", record.Rewritten, run.StorageVersion)})
	d.State.Now = d.State.Now.Add(takes)
	d.wrote, d.moved = d.State.Now, d.State.Now
	d.Record(record)
	return true
}

// ObjectsPerSecond is how many objects a migration rewrites in a second, as measured on two cores
// (api/docs/migrating.md).
func ObjectsPerSecond(policy *v1alpha1.ConversionPolicy) int64 {
	rate := int64(95)
	switch fast, none := policy.Spec.Migration.Pace == v1alpha1.MigrationFast, policy.Spec.Converter.Type == v1alpha1.ConverterNone; {
	case fast && none:
		rate = 357
	case fast:
		rate = 164
	case none:
		rate = 183
	}
	if limit := policy.Spec.Migration.MaxWritesPerSecond; limit != nil {
		rate = min(rate, int64(*limit))
	}
	return rate
}

func (d *driver) rewriting() time.Duration {
	return time.Duration(d.objects.Total) * time.Second / time.Duration(ObjectsPerSecond(d.State.Policy))
}

// wait lets the time of the next plan come, or reports that the path ends.
func (d *driver) wait(decided plan.Plan, gate metav1.Condition) (ended bool) {
	conditions, idle := decided.Status.Conditions, d.State.Now.Sub(d.moved)
	ready := apimeta.IsStatusConditionTrue(conditions, v1alpha1.ReadyCondition)
	retires := gate.Type == v1alpha1.VersionsRetiredCondition
	limit := patience
	switch {
	case decided.RecheckAfter <= 0, d.State.Policy.Spec.Paused, apimeta.IsStatusConditionTrue(conditions, v1alpha1.StalledCondition):
		return true
	case ready && retires && gate.Reason == v1alpha1.ReasonBlocked:
		return true
	case ready && retires:
		limit = d.soaks()
	case ready:
		limit = d.State.Settings.PropagationDelay + round // what nothing uses any more is deleted after that
	}
	if idle+decided.RecheckAfter > limit {
		return true
	}
	if !ready || retires {
		d.recorder.wait(decided.RecheckAfter, gate.Message)
	}
	d.State.Now = d.State.Now.Add(decided.RecheckAfter)
	return false
}

// soaks is how long a retirement may wait without a write.
func (d *driver) soaks() time.Duration {
	longest := patience
	for _, entry := range d.State.Policy.Spec.Retirement {
		longest = max(longest, retirement.After(&entry)+patience*3)
	}
	return longest
}

func (d *driver) end() {
	gate := gateOf(&d.State.Policy.Status)
	if last := &d.path.Stages[len(d.path.Stages)-1]; !apimeta.IsStatusConditionTrue(d.State.Policy.Status.Conditions, v1alpha1.ReadyCondition) {
		for i := len(last.Actions) - 1; i >= 0 && last.Actions[i].Kind == Wait; i-- {
			last.Actions = last.Actions[:i] // nothing has come of it
		}
	}
	d.path.Stages = slices.DeleteFunc(d.path.Stages, func(stage Stage) bool { return len(stage.Actions) == 0 })
	d.path.Takes = metav1.Duration{Duration: d.wrote.Sub(d.begin).Round(time.Second)}
	d.path.End = End{
		Ready:     gate.Type != v1alpha1.DeletionBlockedCondition && apimeta.IsStatusConditionTrue(d.State.Policy.Status.Conditions, v1alpha1.ReadyCondition),
		Condition: gate.Type, Reason: gate.Reason, Message: gate.Message, Gone: d.gone(), Status: d.State.Policy.Status,
	}
}

// answer returns the result of a background check. Clients request no old version, and no other object
// names one.
func (d *driver) answer(s step.Step) observed.BackgroundCheck {
	switch s := s.(type) {
	case step.TakeSamples:
		if i := slices.IndexFunc(d.objects.Failing, func(failing Failing) bool { return failing.Lossy }); i >= 0 {
			return observed.BackgroundCheck{Lost: true, Reason: v1alpha1.ReasonRoundTripFailed, Message: "object " + d.objects.Failing[i].Object + ": " + d.objects.Failing[i].Message}
		}
		return observed.BackgroundCheck{Objects: int(min(d.objects.Total, int64(s.Most)))}
	case step.ReadRequests:
		return observed.BackgroundCheck{Requests: &observed.Requests{Servers: []observed.ServerRequests{{Started: 1, Counts: map[string]int64{}}}}}
	case step.ClearManagedFields:
		d.objects.Preserved = slices.DeleteFunc(d.objects.Preserved, func(p Preserved) bool { return p.Version == s.Version && slices.Contains(s.Discard, p.Path) })
		if s.Rules != nil {
			return observed.BackgroundCheck{Held: &observed.Held{Holdings: d.held(crds.StorageVersion(d.State.CRD)), CRD: d.State.CRD.UID, Ruleset: s.Rules.Hash(), Since: d.State.Now, All: true}}
		}
	}
	return observed.BackgroundCheck{}
}

// held summarises the preserved data of objects that are stored at a version.
func (d *driver) held(storage string) conversion.Holdings {
	held := conversion.Holdings{Seen: d.objects.Total}
	for _, p := range d.objects.Preserved {
		if p.At != storage {
			continue
		}
		i := slices.IndexFunc(held.Versions, func(of conversion.VersionHoldings) bool { return of.Version == p.Version })
		if i < 0 {
			i, held.Versions = len(held.Versions), append(held.Versions, conversion.VersionHoldings{Version: p.Version})
		}
		of := &held.Versions[i]
		of.Objects = p.Holders
		of.Fields = append(of.Fields, conversion.FieldHoldings{Path: p.Path, Objects: p.Objects})
		held.Objects = max(held.Objects, of.Objects)
	}
	slices.SortFunc(held.Versions, func(a, b conversion.VersionHoldings) int { return cmp.Compare(a.Version, b.Version) })
	return held
}
