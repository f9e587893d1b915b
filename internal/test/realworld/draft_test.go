// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/draft"
)

// checkDraft drafts a policy by asking the project's own functions. All rules of the sample that are not of the kind
// cel are found, and no wrong one.
func (p *project) checkDraft(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	readYAML(t, filepath.Join(top, "config", "samples", p.sample, "policy.yaml"), policy)
	want := map[string]bool{}
	for _, rule := range policy.Spec.Converter.Declarative.Spokes[0].Rules {
		if rule.CEL == nil {
			want[string(encode(t, rule))] = true
		}
	}
	found, err := draft.Make(draft.Input{CRD: crd, Spoke: p.spoke.name, Hub: p.hub.name, Convert: p.answer(crd)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("drafted after %d requests with %d objects, of which %d were refused", found.Probe.Requests, found.Probe.Objects, found.Probe.Refused)
	for _, rule := range found.Rules {
		text := string(encode(t, rule.Rule))
		if !want[text] && !slices.Contains(p.drafted, text) {
			t.Errorf("the draft has a rule that the sample does not have: %s", text)
		}
		delete(want, text)
	}
	for text := range want {
		t.Errorf("the draft lacks the rule %s", text)
	}
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
		from, target, convert := p.spoke, p.hub, p.toHub
		if to == p.spoke.name {
			from, target, convert = p.hub, p.spoke, p.fromHub
		}
		for _, object := range objects {
			source, result := from.new(), target.new()
			if err := json.Unmarshal(object, source); err != nil {
				return nil, fmt.Errorf("%w: %w", draft.ErrRefused, err)
			}
			if err := convert(source, result); err != nil {
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
