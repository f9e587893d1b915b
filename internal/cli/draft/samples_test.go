// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/published"
)

// sample is a policy of config/samples, and its CustomResourceDefinition.
type sample struct {
	crd    *apiextensionsv1.CustomResourceDefinition
	policy *v1alpha1.ConversionPolicy
}

func (s *sample) spoke() string {
	return string(s.policy.Spec.Converter.Declarative.Spokes[0].Version)
}
func (s *sample) hub() string { return string(s.policy.Spec.Converter.Declarative.Hub) }

func samples(t *testing.T) map[string]*sample {
	t.Helper()
	const config = "../../../config/samples"
	all := map[string]*sample{}
	for name, project := range map[string]published.Project{
		"cluster-api-machinehealthchecks": published.ClusterAPI, "karpenter-nodepools": published.Karpenter,
		"kueue-clusterqueues": published.Kueue, "tekton-tasks": published.Tekton,
	} {
		s := &sample{policy: expect.YAML[v1alpha1.ConversionPolicy](t, config, "catalogue", name, "policy.yaml")}
		found, err := published.Read(t.Context(), project)
		expect.NoError(t, err)
		i := slices.IndexFunc(found, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == s.policy.Name })
		if i < 0 {
			t.Fatalf("%s has no %s", project.Module, s.policy.Name)
		}
		s.crd, all[name] = found[i], s
	}
	for name, crd := range map[string]string{"crontab-cronspec": "3-crd-both.yaml", "crontab-hostport": "3-crd-both.yaml"} {
		all[name] = &sample{expect.YAML[apiextensionsv1.CustomResourceDefinition](t, config, name, crd), expect.YAML[v1alpha1.ConversionPolicy](t, config, name, "2-policy.yaml")}
	}
	return all
}

func textOf(rule v1alpha1.Rule) string {
	text, err := json.Marshal(rule)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// engine returns a converter by rules, which works as converter pods do.
func engine(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition, rules *v1alpha1.DeclarativeConverter) Convert {
	t.Helper()
	compiled := compile.Compile(crd, rules)
	expect.NoError(t, compiled.Errors.ToAggregate())
	converter, err := conversion.NewConverter(compiled.Ruleset)
	expect.NoError(t, err)
	return func(to string, objects [][]byte) ([][]byte, error) {
		var converted [][]byte
		for _, object := range objects {
			text, err := converter.Convert(nil, object, to)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrRefused, err)
			}
			converted = append(converted, text)
		}
		return converted, nil
	}
}

// pairsOf returns objects at both versions: those with a value in every field, converted by the rules.
func pairsOf(t *testing.T, s *sample, convert Convert) (pairs []Pair) {
	t.Helper()
	for _, from := range []string{s.spoke(), s.hub()} {
		version, _ := crds.Version(s.crd, from)
		root, _ := treeOf(version.Schema.OpenAPIV3Schema)
		m := &maker{crd: s.crd.Spec.Group + "/" + from, kind: s.crd.Spec.Names.Kind, all: true}
		for form := range 6 {
			object, to := m.object(root, nil, form+1), s.hub()
			if from == to {
				to = s.spoke()
			}
			answers, err := convert(to, [][]byte{object})
			expect.NoError(t, err)
			pair := Pair{object, answers[0]}
			if to == s.spoke() {
				pair = Pair{answers[0], object}
			}
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// alsoRight are rules that are right, although the sample says the same in a cel rule, or in a move of the object
// around.
var alsoRight = []string{
	`{"move":{"from":".spec.remediationTemplate.apiVersion","to":".spec.remediation.templateRef.apiVersion"}}`,
	`{"move":{"from":".spec.remediationTemplate.kind","to":".spec.remediation.templateRef.kind"}}`,
	`{"move":{"from":".spec.remediationTemplate.name","to":".spec.remediation.templateRef.name"}}`,
}

// TestSamples drafts the policies of config/samples from each source. No draft has a wrong rule. Rules of the
// kind cel are never drafted: want counts the others that are found, of all.
func TestSamples(t *testing.T) {
	for name, s := range samples(t) {
		convert := engine(t, s.crd, s.policy.Spec.Converter.Declarative)
		recall := map[string]struct{ all, schemas, pairs, probe int }{
			"cluster-api-machinehealthchecks": {9, 1, 8, 9}, "karpenter-nodepools": {2, 1, 2, 2}, "kueue-clusterqueues": {3, 1, 3, 3},
			"tekton-tasks": {3, 3, 3, 3}, "crontab-cronspec": {1, 0, 1, 1}, "crontab-hostport": {1, 1, 1, 1},
		}[name]
		for source, test := range map[string]struct {
			input Input
			want  int
		}{
			"schemas": {Input{}, recall.schemas},
			"pairs":   {Input{Pairs: pairsOf(t, s, convert)}, recall.pairs},
			"probe":   {Input{Convert: convert}, recall.probe},
		} {
			t.Run(name+"/"+source, func(t *testing.T) {
				var right []string
				for _, rule := range s.policy.Spec.Converter.Declarative.Spokes[0].Rules {
					if rule.CEL == nil {
						right = append(right, textOf(rule))
					}
				}
				expect.Equal(t, "rules of the sample", recall.all, len(right))
				input := test.input
				input.CRD, input.Spoke, input.Hub = s.crd, s.spoke(), s.hub()
				draft, err := Make(input)
				expect.NoError(t, err)
				found := 0
				for _, rule := range draft.Rules {
					switch text := textOf(rule.Rule); {
					case slices.Contains(right, text):
						found++
					case !slices.Contains(alsoRight, text):
						t.Errorf("wrong: %s %+v", text, rule)
					}
				}
				expect.Equal(t, fmt.Sprintf("found, of %d rules, in %+v", recall.all, draft), test.want, found)
				expect.NoError(t, compile.Compile(s.crd, draft.Policy.Spec.Converter.Declarative).Errors.ToAggregate())
			})
		}
	}
}
