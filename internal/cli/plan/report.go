// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/overview"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// Format is raised when a reader of an older Report would misread it.
const Format = 1

// Input is what a forecast is made from.
type Input struct {
	// State is that of the cluster, with its policy; a policy without a spec if there is none. FromFiles tells
	// that there is no cluster, so that State is empty.
	State     observed.Cluster
	FromFiles bool
	// Policy and CRD are applied; nil if they do not change. Deletes tells that the policy is deleted instead.
	Policy  *v1alpha1.ConversionPolicy
	CRD     *apiextensionsv1.CustomResourceDefinition
	Deletes bool
	// Objects are the verified objects of the kind, and Total their number. Objects is nil if they were only
	// counted.
	Objects *verify.Report
	Total   int64
	// Program is the command line that starts this program.
	Program string
}

// Report is what the operator will do about a policy. Its JSON form is stable.
type Report struct {
	// Format is the constant Format.
	Format int    `json:"format"`
	Policy string `json:"policy"`
	// Objects is the number of objects of the kind.
	Objects int64 `json:"objects"`
	// Failing are objects that stop the path, or that clients of a version cannot write.
	Failing []forecast.Failing `json:"failing"`
	forecast.Path
	// Next are the recommended actions at the end, in order.
	Next []overview.Advice `json:"next"`
	// Needs have to be true outside of the operator, and Assumptions are what the forecast does not know.
	Needs       []Need   `json:"needs"`
	Assumptions []string `json:"assumptions"`
}

// Of returns the forecast for a policy.
func Of(in Input) (*Report, error) {
	cluster := forecast.Begin(in.State)
	applied := plan.Plan{}
	if in.State.Policy.Status.ObservedGeneration > 0 {
		applied = cluster.Plan()
	}
	begin := in.change(cluster)
	objects := in.objects()
	path, err := cluster.Forecast(objects, applied, begin...)
	if err != nil {
		return nil, fmt.Errorf("forecast %s: %w", in.State.Policy.Name, err)
	}
	report := &Report{Format: Format, Policy: in.State.Policy.Name, Objects: in.Total, Failing: objects.Failing, Path: *path, Next: []overview.Advice{}}
	if !report.End.Ready && !report.End.Gone {
		report.Next = in.advise(cluster.State.Policy)
	}
	report.Needs, report.Assumptions = in.needs(report, cluster.State.Policy), in.assumptions(report, cluster.State.Policy)
	return report, nil
}

// Stops reports that the path ends in a stop.
func (r *Report) Stops() bool { return !r.End.Ready && !r.End.Gone }

// change lets the user apply what changes.
func (in Input) change(cluster *forecast.Cluster) (begin []forecast.Action) {
	acts := func(text string, args ...any) {
		begin = append(begin, forecast.Action{Kind: forecast.Write, By: forecast.User, Text: fmt.Sprintf(text, args...)})
	}
	name := in.State.Policy.Name
	if in.Policy != nil && cluster.ApplyPolicy(in.Policy) {
		acts("apply ConversionPolicy %s", name)
	}
	if in.FromFiles {
		if fleet := observed.FleetOf(cluster.State.Policy); fleet != "" {
			cluster.CreateFleet(fleet)
		}
		if observed.ExternalServerName(cluster.State.Policy.Spec.Converter) != "" {
			cluster.State.External.Endpoints = []observed.Pod{{Name: "endpoint", Ready: true, Scheduled: true, Proof: &observed.Proof{}}}
		}
	}
	if in.CRD != nil && cluster.ApplyDefinition(in.CRD) {
		acts("apply CustomResourceDefinition %s", name)
	}
	if in.Deletes {
		cluster.Delete()
		acts("delete ConversionPolicy %s", name)
	}
	return begin
}

// objects are what the verification found.
func (in Input) objects() forecast.Objects {
	objects := forecast.Objects{Total: in.Total, Failing: []forecast.Failing{}}
	if in.Objects == nil {
		return objects
	}
	for _, finding := range in.Objects.Findings {
		if finding.Severity != verify.SeverityError {
			continue
		}
		objects.Failing = append(objects.Failing, forecast.Failing{
			Object: finding.Example.Object, Objects: int64(finding.Objects), Message: strings.ReplaceAll(finding.Summary(), "`", ""),
			Lossy: finding.Kind != verify.InvalidAtTarget, Refused: finding.Kind == verify.NotConverted || finding.Kind == verify.InvalidAtTarget,
		})
	}
	for _, field := range in.Objects.PreservedFields {
		held := forecast.Preserved{Version: field.From, At: field.To, Path: field.Path, Objects: int64(field.Objects)}
		for _, direction := range in.Objects.Directions {
			if direction.From == field.From && direction.To == field.To {
				held.Holders = int64(direction.Preserved)
			}
		}
		objects.Preserved = append(objects.Preserved, held)
	}
	return objects
}

// advise returns what to do at the end of the path.
func (in Input) advise(policy *v1alpha1.ConversionPolicy) []overview.Advice {
	instance := names.Child(policy.Name)
	if fleet := observed.FleetOf(policy); fleet != "" {
		instance = names.Fleet(fleet)
	}
	return overview.Of(overview.Observed{Policy: policy, Namespace: in.State.Settings.Namespace, Instance: names.Child(policy.Name), PodsInstance: instance,
		Now: in.State.Now, Program: in.Program}).Next
}
