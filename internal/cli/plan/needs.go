// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/retirement"
)

// Need is something that has to be true outside of the operator.
type Need struct {
	// Of says what has to fulfil it.
	Of   NeedOf `json:"of"`
	Text string `json:"text"`
}

// NeedOf is what has to fulfil a need.
type NeedOf string

// What has to fulfil needs.
const (
	OfClients   NeedOf = "clients"
	OfManifests NeedOf = "manifests"
	OfAdmission NeedOf = "admission"
	OfNetwork   NeedOf = "network"
	OfStorage   NeedOf = "storage"
)

// takes reports that the path has a step of a kind.
func (r *Report) takes(step string) bool {
	return slices.ContainsFunc(r.Stages, func(stage forecast.Stage) bool {
		return slices.ContainsFunc(stage.Actions, func(action forecast.Action) bool { return action.Step == step })
	})
}

// needs follow from the steps of the path.
func (in Input) needs(report *Report, policy *v1alpha1.ConversionPolicy) []Need {
	needs := []Need{}
	add := func(of NeedOf, text string, args ...any) { needs = append(needs, Need{of, fmt.Sprintf(text, args...)}) }
	if report.takes("SwitchCRD") {
		add(OfNetwork, "API servers reach the converter pods: no firewall or NetworkPolicy is in between")
		add(OfManifests, "the manifest of the CustomResourceDefinition has no spec.conversion: the operator reverts what another client writes there")
	}
	if report.takes("EditVersions") {
		add(OfManifests, "the manifest of the CustomResourceDefinition has the same spec.versions before it is applied again: the operator changes served, storage and deprecated, and removes versions")
	}
	if in.State.CRD != nil && len(needs) > 0 {
		if writer := crds.WriterOf(in.State.CRD); writer != nil {
			add(OfManifests, "%s writes the CustomResourceDefinition again: %s", writer.Tool, writer.Change)
		}
	}
	if report.takes("Create") {
		add(OfAdmission, "admission webhooks for the kind answer, and accept the objects unchanged")
		add(OfStorage, "etcd has room to write each of %d objects again", report.Objects)
	}
	for _, entry := range policy.Spec.Retirement {
		if entry.Action != v1alpha1.RetirementUnserve && entry.Action != v1alpha1.RetirementRemove {
			continue
		}
		add(OfClients, "no client requests %s for %s after it was deprecated", entry.Version, duration.HumanDuration(retirement.After(&entry)))
		if entry.Dependents != v1alpha1.DependentsCheck {
			add(OfClients, "no other object names %s: %s dependents %s finds them", entry.Version, in.Program, report.Policy)
		}
	}
	return needs
}

// assumptions are what the forecast does not know.
func (in Input) assumptions(report *Report, policy *v1alpha1.ConversionPolicy) []string {
	all := []string{"converter pods start, and answer as they should; their certificates are valid, and an API server reaches them"}
	if in.FromFiles {
		if warning := crds.ClaimsWarning(in.CRD); warning != "" {
			all = append(all, warning)
		}
		all = append(all, "there is no cluster: no converter runs, the fleet of the policy exists, and the CustomResourceDefinition is as in the file")
	}
	if in.State.Composite != nil {
		all = append(all, "the operator may change "+in.State.Composite.String()+": config/components/crossplane is installed, and Crossplane runs")
	}
	for _, pod := range in.State.Pods {
		if pod.Trouble.Message != "" {
			all = append(all, fmt.Sprintf("converter pod %s starts, which it does not now: %s", pod.Name, pod.Trouble.Message))
		}
	}
	if in.Objects == nil {
		all = append(all, "every object can be converted: no object was tested")
	}
	all = append(all, "no client changes the policy, the CustomResourceDefinition or an object meanwhile, or requests an old version")
	if report.takes("Create") {
		all = append(all, fmt.Sprintf("a migration rewrites %d objects a second, as on two cores without other load", forecast.ObjectsPerSecond(policy)))
	}
	return append(all, "the manager runs with its default flags")
}
