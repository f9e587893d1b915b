// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/cli/draft"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// notProbed are kinds whose functions end the process for objects that the schema allows: they take any alias
// and any topology for one that the API server has validated further.
var notProbed = []string{"karpenter-ec2nodeclasses", "kueue-workloads"}

// drafts are the differences between the drafts and the policies of the catalogue: rules that only a draft has,
// as the policy says the same by a cel rule or preserves the field, and the number of rules that a draft lacks.
var drafts = map[string]struct {
	more  []string
	fewer int
}{
	"opentelemetry-collectors": {more: []string{
		`{"move":{"from":".spec.targetAllocator.prometheusCR.podMonitorSelector","to":".spec.targetAllocator.prometheusCR.podMonitorSelector.matchLabels"}}`,
		`{"move":{"from":".spec.targetAllocator.prometheusCR.serviceMonitorSelector","to":".spec.targetAllocator.prometheusCR.serviceMonitorSelector.matchLabels"}}`,
	}},
	"emissary-tracingservices": {more: []string{`{"move":{"from":".spec.v3CustomTags","to":".spec.custom_tags"}}`}},
	// The functions forget the conversionStrategy. A draft has no exclude rule.
	"external-secrets-externalsecrets": {fewer: 2},
	// Without the annotation, the rollout gets the value.
	"openkruise-rollouts":            {fewer: 1, more: []string{`{"default":{"to":".spec.strategy.canary.enableExtraWorkloadForCanary","value":true}}`}},
	"karpenter-nodeclaims":           {more: []string{`{"default":{"to":".spec.expireAfter","value":"Never"}}`}},
	"cluster-api-machines":           {more: references(".spec")},
	"cluster-api-machinesets":        {more: references(".spec.template.spec")},
	"cluster-api-machinedeployments": {more: references(".spec.template.spec")},
	"cluster-api-machinepools":       {more: references(".spec.template.spec")},
	"cluster-api-clusters": {fewer: 1, more: []string{
		reference(".spec.controlPlaneRef", ".spec.controlPlaneRef"), reference(".spec.infrastructureRef", ".spec.infrastructureRef"),
		// It has one field, which the policy moves.
		`{"move":{"from":".spec.topology.workers.machineDeployments[*].strategy.remediation","to":".spec.topology.workers.machineDeployments[*].healthCheck.remediation"}}`,
	}},
	// The functions convert no parameter that is not a text.
	"tekton-resolutionrequests": {fewer: 2},
	"cluster-api-kubeadmcontrolplanes": {more: []string{
		// It is there only together with a field that is computed.
		`{"move":{"from":".status.readyReplicas","to":".status.deprecated.v1beta1.readyReplicas"}}`,
		reference(".spec.machineTemplate.infrastructureRef", ".spec.machineTemplate.spec.infrastructureRef"),
	}},
}

// reference is the rule that reads the group of a reference from its API version.
func reference(from, to string) string {
	return fmt.Sprintf(`{"format":{"from":"%s.apiVersion","template":"{apiGroup}/v1beta1","to":{"apiGroup":"%s.apiGroup"}}}`, from, to)
}

// references are the rules for what makes a machine.
func references(of string) []string {
	return []string{reference(of+".bootstrap.configRef", of+".bootstrap.configRef"), reference(of+".infrastructureRef", of+".infrastructureRef")}
}

// checkDraft drafts a policy by asking the project's own functions. It has the rules of the policy in the catalogue
// that are not of the kind cel, and no wrong one.
func (p *project) checkDraft(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if slices.Contains(notProbed, p.sample) {
		return
	}
	want := map[string]bool{}
	rules := p.policy(t).Spec.Converter.Declarative
	for i, spoke := range rules.Spokes {
		for _, rule := range compile.Rules(rules, i) {
			if string(spoke.Version) == p.spoke.name && rule.CEL == nil {
				want[string(encode(t, rule.Rule))] = true
			}
		}
	}
	all := len(want)
	found, err := draft.Make(draft.Input{CRD: crd, Spoke: p.spoke.name, Hub: p.hub.name, Convert: p.answer(crd)})
	expect.NoError(t, err)
	t.Logf("drafted after %d requests with %d objects, of which %d were refused", found.Probe.Requests, found.Probe.Objects, found.Probe.Refused)
	var more []string
	for _, rule := range found.Rules {
		text := string(encode(t, rule.Rule))
		if !want[text] {
			more = append(more, text)
		}
		delete(want, text)
	}
	known := drafts[p.sample]
	if slices.Sort(more); !slices.Equal(more, slices.Sorted(slices.Values(known.more))) {
		t.Errorf("the draft has other rules than the policy: %q", more)
	}
	if len(want) != known.fewer {
		t.Errorf("the draft lacks %d of %d rules: %q", len(want), all, slices.Sorted(maps.Keys(want)))
	}
	t.Logf("drafted: %d of %d rules", all-len(want), all)
	for _, d := range found.Ambiguous {
		t.Logf("ambiguous: %s %s: %s %s", d.Version, d.Path, d.Why, d.Candidates)
	}
	for _, d := range found.Differences {
		t.Logf("difference: %s", d)
	}
	if len(found.Probe.Problems) > 0 {
		t.Errorf("the project's functions are not to be relied on: %q", found.Probe.Problems)
	}
}

// answer converts objects as the project's webhook does.
func (p *project) answer(crd *apiextensionsv1.CustomResourceDefinition) draft.Convert {
	return func(to string, objects [][]byte) (answers [][]byte, err error) {
		from, target := p.spoke, p.hub
		if to == p.spoke.name {
			from, target = target, from
		}
		for _, object := range objects {
			source, result := from.new(), target.new()
			if err := json.Unmarshal(object, source); err != nil {
				return nil, fmt.Errorf("%w: %w", draft.ErrRefused, err)
			}
			if err := p.own(source, result); err != nil {
				return nil, fmt.Errorf("%w: %w", draft.ErrRefused, err)
			}
			text, err := json.Marshal(result)
			if err != nil {
				return nil, err
			}
			answer := decode(text).(map[string]any)
			answer["apiVersion"], answer["kind"] = crd.Spec.Group+"/"+to, crd.Spec.Names.Kind
			if text, err = json.Marshal(answer); err != nil {
				return nil, err
			}
			answers = append(answers, text)
		}
		return answers, nil
	}
}
