// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// What a condition message has room for: the first errors, the rest of which
// shows up as those are mended; the first warnings; and the first fields of each
// verdict, more of which are in status.plan.
const (
	maxErrors   = 10
	maxWarnings = 5
	maxFields   = 3
	// maxLine bounds each error and warning, in bytes: people read them in one line.
	maxLine = 600
)

// planValid: the rules compile against the schemas of the CustomResourceDefinition.
func planValid(s *state) outcome {
	switch {
	case s.CRD == nil:
		return unknown(v1alpha1.ReasonCRDNotFound, fmt.Sprintf(
			"CustomResourceDefinition %q does not exist: create it, or give the policy the name <plural>.<group> of one that exists", s.Policy.Name))
	case !s.CRD.DeletionTimestamp.IsZero() && !s.engaged:
		return unknown(v1alpha1.ReasonCRDTerminating,
			"the CustomResourceDefinition is being deleted: nothing is changed")
	case s.none():
		return s.equalSchemas()
	case s.external():
		return s.ownConverter()
	case len(s.Rules.Errors) > 0:
		return stalled(v1alpha1.ReasonInvalidRules, describe(s.Rules.Errors))
	case s.renderErr != nil:
		return stalled(v1alpha1.ReasonInvalidPatch, cut(s.renderErr.Error())+"; nothing that runs is changed")
	case s.Policy.Spec.Converter.Image != nil:
		return s.ownConverter()
	case s.Rules.Plan == nil:
		return unknown(v1alpha1.ReasonVersionNotInCRD, describe(s.Rules.Missing)+"; nothing is changed until then")
	}
	plan := v1alpha1.PlanStatus{Hash: s.planHash, Verdicts: s.Rules.Verdicts}
	s.plan.Status.Plan = plan.DeepCopy() // what rules compile to is not the status's to change
	missing, retired := s.missingVersions()
	if len(missing) > 0 {
		says := describe(missing) + "; the webhook is armed ahead of it"
		if len(s.Rules.Verdicts) > 0 {
			says += "; " + summary(s.Rules.Verdicts, s.Rules.Warnings)
		}
		return undecided(v1alpha1.ReasonVersionNotInCRD, says)
	}
	says := summary(s.Rules.Verdicts, s.Rules.Warnings)
	if len(retired) > 0 {
		says = strings.TrimPrefix(says+"; "+strings.Join(retired, ", ")+" was retired, and the rules for it may be removed", "; ")
	}
	return passed(v1alpha1.ReasonCompiled, says)
}

// missingVersions are those that the rules name and that the CustomResourceDefinition
// does not have yet, and those that it does not have any more.
func (s *state) missingVersions() (missing field.ErrorList, retired []string) {
	for _, err := range s.Rules.Missing {
		version := fmt.Sprint(err.BadValue)
		if record := s.record(version); record != nil && record.RemovedTime != nil {
			retired = append(retired, version)
		} else {
			missing = append(missing, err)
		}
	}
	return missing, retired
}

func describe(errors field.ErrorList) string {
	lines := make([]string, 0, maxErrors+1)
	for i, err := range errors {
		if i == maxErrors {
			lines = append(lines, fmt.Sprintf("and %d more", len(errors)-maxErrors))
			break
		}
		lines = append(lines, cut(err.Error()))
	}
	return strings.Join(lines, "; ")
}

// summary is what each spoke's conversion keeps, and then what may surprise.
func summary(verdicts []v1alpha1.Verdict, warnings []string) string {
	var lines []string
	for _, verdict := range verdicts {
		line := fmt.Sprintf("%s: %s to the hub, %s back", verdict.Version, verdict.ToHub, verdict.FromHub)
		if len(verdict.Dropped) > 0 {
			line += ", drops " + first(verdict.Dropped)
		}
		if len(verdict.Preserved) > 0 {
			line += ", keeps aside " + first(verdict.Preserved)
		}
		lines = append(lines, line)
	}
	for i, warning := range warnings[:min(len(warnings), maxWarnings)] {
		lines = append(lines, fmt.Sprintf("warning %d of %d: %s", i+1, len(warnings), cut(warning)))
	}
	return strings.Join(lines, "; ")
}

func first(fields []string) string {
	if len(fields) > maxFields {
		return strings.Join(fields[:maxFields], ", ") + " and more"
	}
	return strings.Join(fields, ", ")
}

func cut(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine-len("...")], "") + "..."
}
