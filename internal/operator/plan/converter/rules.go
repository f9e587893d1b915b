// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// endpointLag is the time after which the endpoints of ready pods are read again.
const endpointLag = 2 * time.Second

// rules is the kind of a policy with rules, which pods of the operator's image serve.
type rules struct{ pods }

func (r rules) client() (*apiextensionsv1.WebhookClientConfig, []string) {
	return r.OwnClient(ConvertPath, r.Wanted), []string{"v1"}
}

func (r rules) prepare() { r.rendered, r.renderErr = r.render() }

func (r rules) choose() {
	if r.Rules.Ruleset == nil {
		return
	}
	if truncating := r.truncating(); truncating != nil {
		allowed := *r.Rules.Ruleset
		allowed.Truncating = truncating
		r.Rules.Ruleset = &allowed
	}
	text, err := r.Rules.Ruleset.Marshal()
	if err != nil {
		return // cannot happen: every part of a ruleset has a JSON form
	}
	r.Wanted = names.RevisionIn(conversion.HashOf(text), r.Fleet())
	if r.ruleset = r.stored(r.Wanted); r.ruleset == nil {
		r.ruleset = conversion.Store(text)
	}
}

// valid passes if the rules compile against the schemas of the CustomResourceDefinition.
func (r rules) valid(removed []string) gate.Outcome {
	switch {
	case len(r.Rules.Errors) > 0:
		return gate.Stalled(v1alpha1.ReasonInvalidSpec, gate.Errors(r.Rules.Errors))
	case r.renderErr != nil:
		return r.notRendered()
	case r.Rules.Ruleset == nil:
		return gate.Unknown(v1alpha1.ReasonVersionNotInCRD, gate.Errors(r.Rules.Missing)+"; the operator changes nothing until then")
	case len(r.ruleset) > maxStoredBytes:
		return gate.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf(
			"spec.converter.declarative: Too long: the compiled rules take %d bytes, compressed, and may take %d: use fewer rules, or spec.converter.image",
			len(r.ruleset), maxStoredBytes))
	}
	r.Status.Revision = r.Ruleset()
	missing, _ := r.missingVersions(removed)
	if len(missing) > 0 {
		says := gate.Errors(missing) + "; the converter is ready for it"
		if len(r.Rules.Verdicts) > 0 {
			says += "; " + summary(r.Rules.Verdicts, r.Rules.Warnings)
		}
		return gate.Undecided(v1alpha1.ReasonVersionNotInCRD, says)
	}
	says := summary(r.Rules.Verdicts, r.Rules.Warnings)
	return gate.Passed(v1alpha1.ReasonValid, strings.TrimPrefix(says+r.Unneeded(removed), "; "))
}

// Unneeded names the spokes of the policy that were removed from the CustomResourceDefinition.
// It begins with a semicolon, and is empty if there are none.
func (c *Converter) Unneeded(removed []string) string {
	_, retired := c.missingVersions(removed)
	switch len(retired) {
	case 0:
		return ""
	case 1:
		return "; " + retired[0] + " is no longer in the CustomResourceDefinition: remove it from " + spokesField
	}
	return "; " + strings.Join(retired, ", ") + " are no longer in the CustomResourceDefinition: remove them from " + spokesField
}

const spokesField = "spec.converter.declarative.spokes"

// missingVersions are versions that the rules name and the CustomResourceDefinition lacks:
// those that it does not have yet, and those that a retirement has removed.
func (c *Converter) missingVersions(removed []string) (missing field.ErrorList, retired []string) {
	for _, err := range c.Rules.Missing {
		if version := fmt.Sprint(err.BadValue); slices.Contains(removed, version) {
			retired = append(retired, version)
		} else {
			missing = append(missing, err)
		}
	}
	return missing, retired
}

// maxWarnings is the number of compiler warnings in a message.
const maxWarnings = 5

// summary says what the conversion of each spoke preserves and drops, and lists warnings.
func summary(verdicts []compile.Verdict, warnings []string) string {
	var lines []string
	for _, verdict := range verdicts {
		line := fmt.Sprintf("%s: %s to the hub, %s from it", verdict.Version, verdict.ToHub, verdict.FromHub)
		if len(verdict.Dropped) > 0 {
			line += ", drops " + first(verdict.Dropped)
		}
		if len(verdict.Preserved) > 0 {
			line += ", preserves " + first(verdict.Preserved)
		}
		lines = append(lines, line)
	}
	for i, warning := range warnings[:min(len(warnings), maxWarnings)] {
		lines = append(lines, fmt.Sprintf("warning %d of %d: %s", i+1, len(warnings), gate.Cut(warning)))
	}
	return strings.Join(lines, "; ")
}

func first(fields []compile.VersionedField) string {
	var texts []string
	for _, preserved := range fields[:min(len(fields), gate.MaxFields)] {
		texts = append(texts, preserved.String())
	}
	said := strings.Join(texts, ", ")
	if len(fields) > gate.MaxFields {
		said += " and more"
	}
	return said
}

// notRendered says why the workload cannot be rendered.
func (c *Converter) notRendered() gate.Outcome {
	return gate.Stalled(v1alpha1.ReasonInvalidSpec, gate.Cut(c.renderErr.Error())+"; the running converter does not change")
}

// available passes if ready converter pods have the desired ruleset: all of them before the
// CustomResourceDefinition names it, and one of them afterwards.
func (r rules) available() gate.Outcome {
	r.applyWorkload()
	r.refreshPods()
	desired, current, others := r.countPods()
	r.reportPods(desired, current)
	if missing := r.missing(); missing != nil && (others > 0 || current == 0 || r.storedBytes() > maxStoredBytes) {
		return *missing
	}
	switch {
	case !r.InCharge() && others > 0 || r.fromElsewhere() && current < desired:
		return gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"%d of %d converter pods are ready with the current ruleset", current, desired)+r.refused()+r.troubles()+r.Meanwhile())
	case current == 0:
		return r.noPodReady(names.Child(r.Policy.Name))
	case r.Endpoints == 0:
		r.work.Recheck(endpointLag)
		return gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"Service %s/%s has no ready endpoint yet", r.Settings.Namespace, names.Child(r.Policy.Name)))
	}
	r.work.Add(r.DropUnused())
	return r.podsReady(current, desired)
}

// fromElsewhere reports that no API server calls the pods with rules yet: no converter is
// active, or one of another kind is.
func (c *Converter) fromElsewhere() bool {
	named := c.Named()
	return !c.EverActive || c.replacing() && !slices.Contains(c.servedAt(c.Fleet()), named) && !c.Lost()
}

// podFailure says what prevents pods from being created, such as a quota.
func (c *Converter) podFailure() string {
	failure := c.PodFailure
	if fleet := c.Fleet(); fleet != "" {
		failure = c.FleetNamed(fleet).PodFailure
	}
	if failure.Message == "" {
		return ""
	}
	return "; the Deployment cannot create pods: " + failure.Message + c.hostNetworkHint(failure)
}

// hostNetworkHints say what to do about pods that cannot use the network of their nodes.
var hostNetworkHints = map[observed.PodTroubleCause]string{
	observed.PodForbidden:   ": hostNetwork needs a namespace that admits it: kubectl label namespace NAMESPACE --overwrite pod-security.kubernetes.io/enforce=privileged",
	observed.PodWithoutPort: ": with hostNetwork, each pod needs its port on a node of its own: add nodes, lower the replicas, or choose a port that no other policy uses",
	observed.PodExits:       ": with hostNetwork, another process may listen at its port on that node: choose another port",
}

func (c *Converter) hostNetworkHint(trouble observed.PodTrouble) string {
	if !c.workload().Spec.HostNetwork {
		return ""
	}
	return strings.ReplaceAll(hostNetworkHints[trouble.Cause], "NAMESPACE", c.Settings.Namespace)
}

// refused says why a pod cannot serve the desired ruleset. Pods usually have the same reason, so
// the message names one of them.
func (r rules) refused() string {
	for _, pod := range r.endpoints() {
		if reason := pod.FailedRulesets[r.Wanted]; reason != "" {
			return "; " + r.name(pod) + " cannot load it: " + gate.Cut(reason)
		}
	}
	return ""
}

// countPods counts the wanted pods, and the ready ones: those that have the desired ruleset, or
// may have it, and the others.
func (r rules) countPods() (desired, current, others int32) {
	for _, pod := range r.endpoints() {
		switch {
		case pod.Image || !pod.Ready: // an image has a port of its own
		case r.lacks(pod):
			others++
		default:
			current++
		}
	}
	return r.replicas(), current, others
}

// serves reports that a pod serves rules. It loads the desired ruleset while it runs.
func (r rules) serves(pod observed.Pod) bool { return !pod.Image }

// reportPods sets the numbers of pods, or endpoints, in the status.
func (c *Converter) reportPods(desired, ready int32) {
	c.Status.Webhook = &v1alpha1.WebhookStatus{Desired: desired, Ready: ready, Fleet: c.Fleet()}
}

// LimitsSize reports that API servers must refuse objects that are too large to convert, and
// that conversions may therefore truncate existing ones.
func (c *Converter) LimitsSize() bool {
	return c.MayLimitSize() && c.Policy.Spec.Converter.Declarative.Overflow != v1alpha1.OverflowDrop
}

// MayLimitSize is LimitsSize without regard to the field overflow of the policy.
func (c *Converter) MayLimitSize() bool {
	return c.Settings.SizeAdmission && c.CRD != nil && c.Policy.Spec.Converter.Declarative != nil && c.Rules.AdmissionCondition != ""
}

// truncating is what the desired ruleset may truncate. If API servers refuse no large objects,
// it truncates nothing, and still refuses writes of truncated objects that clients read
// before. Another policy for the same CustomResourceDefinition must refuse them, too, so that
// the key depends on the CustomResourceDefinition only.
func (c *Converter) truncating() *conversion.Truncating {
	if c.CRD == nil || c.Policy.Spec.Converter.Declarative == nil {
		return nil
	}
	allowed := &conversion.Truncating{Key: names.Hash("truncating", string(c.CRD.UID))}
	if !c.LimitsSize() {
		allowed.RefuseOnly = true
		return allowed
	}
	storage := crds.StorageVersion(c.CRD)
	// An update of the scale writes an object that admission webhooks do not see.
	if version, _ := crds.Version(c.CRD, storage); crds.HasScale(version) {
		allowed.Except = []string{storage}
	}
	return allowed
}
