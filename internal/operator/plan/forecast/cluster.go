// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Cluster is a simulated cluster. It carries out plans at once, and lets pods and API servers follow.
type Cluster struct {
	// State is what the next plan is made from.
	State *observed.Cluster
	// Fleets are the ConverterFleets of the cluster, by name; nil if the policy never uses one.
	Fleets map[string]*Fleet
	// Owners are the field managers of the fields of spec.conversion, and VersionsBy that of spec.versions.
	Owners     map[string]string
	VersionsBy string
	// Left are Secrets that the policy no longer uses.
	Left []string
	// HoldBack keeps converter pods unchanged while their Deployment changes, and Lies while their rulesets
	// do. Misbehave is why new pods fail their probe; empty if they pass.
	HoldBack, Lies bool
	Misbehave      string
	// Answer returns the result of a background check; nil if all of them pass.
	Answer func(step.Step) observed.BackgroundCheck
	// Tell is called with what pods do; it may be nil.
	Tell func(format string, args ...any)
	// Err is the first thing that a real cluster would have refused.
	Err error

	// place is the fleet of which the certificate was observed last.
	place string
	// compiled are the rules that were compiled last, and from what: most plans have the same.
	compiled struct {
		rules  *v1alpha1.DeclarativeConverter
		crd    *apiextensionsv1.CustomResourceDefinition
		result compile.Result
	}
}

func (c *Cluster) tell(format string, args ...any) {
	if c.Tell != nil {
		c.Tell(format, args...)
	}
}

func (c *Cluster) fail(format string, args ...any) { c.note(fmt.Errorf(format, args...)) }

func (c *Cluster) note(err error) {
	if c.Err == nil {
		c.Err = err
	}
}

// Plan compiles the rules, lets pods answer, and makes the next plan.
func (c *Cluster) Plan() plan.Plan {
	c.State.Rules = c.compile()
	c.Observe()
	c.findLeftovers()
	return plan.Make(*c.State)
}

// compile compiles the rules if they or the CustomResourceDefinition have changed.
func (c *Cluster) compile() compile.Result {
	rules, last := c.State.Policy.Spec.Converter.Declarative, &c.compiled
	if c.State.CRD == nil || rules == nil {
		return compile.Result{}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: c.State.CRD.Spec}
	crd.Name, crd.OwnerReferences, crd.Spec.Conversion = c.State.CRD.Name, c.State.CRD.OwnerReferences, nil
	if !equality.Semantic.DeepEqual(last.rules, rules) || !equality.Semantic.DeepEqual(last.crd, crd) {
		last.rules, last.crd, last.result = rules.DeepCopy(), crd.DeepCopy(), crds.CompileRules(crd, rules)
	}
	return last.result
}

// Do carries out one step.
func (c *Cluster) Do(s step.Step) {
	state := c.State
	switch s := s.(type) {
	case step.AddFinalizer:
		state.Policy.Finalizers = append(state.Policy.Finalizers, names.Finalizer)
	case step.RemoveFinalizer:
		state.Policy.Finalizers = nil
	case step.IssueAuthority, step.PromoteAuthority, step.WriteCertificate:
		c.certify(s)
	case step.RefreshPod:
		c.refresh(s)
	case step.AwaitRuleset:
		c.loadInFleet(s)
	case step.Apply:
		c.applied(s.Object)
	case step.Create:
		c.created(s.Object)
	case step.SwitchCRD, step.RestoreCRD, step.AddStorageVersion, step.PruneStoredVersions, step.EditVersions:
		c.define(s)
	case step.DeleteRun, step.DeleteJob, step.SuspendRun:
		c.changeRuns(s)
	case step.EvictPod:
		c.evict(s.Name)
	case step.RecordDrift:
		state.Policy.Status.Drift = &s.Drift
	case step.DeleteRights:
		*c.rights(s.Name) = false
	case step.DeleteDeployment:
		c.deleteDeployment(s.Name)
	case step.DeleteSecret:
		c.deleteSecret(s.Name)
	case step.DeleteService:
		state.Exposed, state.Endpoints, state.PortEndpoints = false, 0, nil
	case step.TakeSamples, step.ProbeAPIServer, step.CountWrites, step.ReadRequests, step.FindDependents, step.ClearManagedFields:
		c.check(s)
	case step.Warn:
	case step.DeleteAdmission:
		state.Admission = nil
	case step.DeleteRulesets:
		state.Revisions = slices.DeleteFunc(state.Revisions, func(stored observed.StoredRevision) bool { return stored.Image == nil && stored.Fleet() == "" })
	case step.StoreRulesets:
		c.storeInFleet(s)
	case step.CreateFleet:
		c.CreateFleet(s.Name)
	case step.DeleteChildren:
		pods, revisions := c.ofFleets()
		*state = observed.Cluster{Settings: state.Settings, Now: state.Now, Policy: state.Policy, CRD: state.CRD, External: state.External,
			Pods: pods, Revisions: revisions}
	default:
		c.fail("the simulated cluster cannot carry out %T", s)
	}
}

// check answers a background check at once, which takes time in a real cluster.
func (c *Cluster) check(s step.Step) {
	of, subject := c.checkOf(s)
	answer := observed.BackgroundCheck{}
	if c.Answer != nil {
		answer = c.Answer(s)
	}
	answer.Subject, answer.Ended, answer.Attempts = subject, c.State.Now, 1
	if last := *of; last != nil && last.Subject == subject {
		answer.Attempts = last.Attempts + 1
	}
	*of = &answer
}

// checkOf is where the result of a background check is observed, and its subject.
func (c *Cluster) checkOf(s step.Step) (result **observed.BackgroundCheck, subject string) {
	switch s := s.(type) {
	case step.TakeSamples:
		if s.Again {
			return &c.State.Resampled, s.Subject
		}
		return &c.State.Samples, s.Subject
	case step.ProbeAPIServer:
		return &c.State.APIServer, s.Subject
	case step.CountWrites:
		return &c.State.Written, s.Subject
	case step.ReadRequests:
		return &c.State.Requested, s.Subject
	case step.FindDependents:
		return &c.State.Searched, s.Subject
	case step.ClearManagedFields:
		return &c.State.Cleared, s.Subject
	}
	return new(*observed.BackgroundCheck), ""
}

// changeRuns carries out a step on migrations.
func (c *Cluster) changeRuns(s step.Step) {
	state := c.State
	switch s := s.(type) {
	case step.DeleteRun:
		state.Runs = slices.DeleteFunc(state.Runs, func(run observed.Run) bool { return names.Run(c.State.Policy.Name, run.ID) == s.Name })
	case step.DeleteJob:
		for i, run := range state.Runs {
			if run.Job != nil && run.Job.Name == s.Name {
				state.Runs[i].Job = nil
			}
		}
	case step.SuspendRun:
		for _, run := range state.Runs {
			run.Job.Spec.Suspend = &s.Suspend
		}
	}
}

// created lets the Job of a migration start.
func (c *Cluster) created(object runtime.ApplyConfiguration) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	c.note(err)
	job := &batchv1.Job{}
	c.note(runtime.DefaultUnstructuredConverter.FromUnstructured(content, job))
	id := job.Labels[names.RunLabel]
	for i := range c.State.Runs {
		if c.State.Runs[i].ID == id {
			c.State.Runs[i].Job = job
			return
		}
	}
	c.State.Runs = append(c.State.Runs, observed.Run{ID: id, Job: job})
}

// Record lets the latest migration write its record.
func (c *Cluster) Record(record contract.Record) {
	if run := c.State.Policy.Status.Migration; record.Finished() && record.Ruleset == "" {
		record.Ruleset, record.StartTime = run.Ruleset, run.StartTime
	}
	c.State.Runs[len(c.State.Runs)-1].Record = &record
}

// rights tells whether rights of a name exist.
func (c *Cluster) rights(name string) *bool {
	switch name {
	case names.ReadRights(c.State.Policy.Name):
		return &c.State.ReadRights
	case names.CleanRights(c.State.Policy.Name):
		return &c.State.CleanRights
	}
	return &c.State.Rights
}
