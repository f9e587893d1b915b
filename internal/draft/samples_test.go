// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
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
	all := map[string]*sample{}
	for name, project := range map[string]published.Project{
		"cluster-api-machinehealthchecks": published.ClusterAPI, "karpenter-nodepools": published.Karpenter,
		"kueue-clusterqueues": published.Kueue, "tekton-tasks": published.Tekton,
	} {
		s := &sample{policy: fileOf[v1alpha1.ConversionPolicy](t, name, "policy.yaml")}
		found, err := published.Read(t.Context(), project)
		expect.NoError(t, err)
		i := slices.IndexFunc(found, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == s.policy.Name })
		if i < 0 {
			t.Fatalf("%s has no %s", project.Module, s.policy.Name)
		}
		s.crd, all[name] = found[i], s
	}
	for name, crd := range map[string]string{"crontab-cronspec": "3-crd-both.yaml", "crontab-hostport": "3-crd-both.yaml"} {
		all[name] = &sample{fileOf[apiextensionsv1.CustomResourceDefinition](t, name, crd), fileOf[v1alpha1.ConversionPolicy](t, name, "2-policy.yaml")}
	}
	return all
}

func fileOf[T any](t *testing.T, path ...string) *T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "config", "samples"}, path...)...))
	expect.NoError(t, err)
	value := new(T)
	expect.NoError(t, yaml.UnmarshalStrict(text, value))
	return value
}

func textOf(rule v1alpha1.Rule) string {
	text, err := json.Marshal(rule)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestGuess(t *testing.T) {
	for name, s := range samples(t) {
		t.Run(name, func(t *testing.T) {
			found, err := Make(Input{CRD: s.crd, Spoke: s.spoke(), Hub: s.hub()})
			expect.NoError(t, err)
			for _, rule := range found.Rules {
				t.Log("rule", textOf(rule.Rule), rule.Score, rule.Why, rule.Rivals)
			}
			for _, a := range found.Ambiguous {
				t.Log("ambiguous", a)
			}
			for _, a := range found.Preserved {
				t.Log("preserved", a)
			}
			for _, r := range s.policy.Spec.Converter.Declarative.Spokes[0].Rules {
				t.Log("want", textOf(r))
			}
		})
	}
}

// engine returns a converter by rules, which works as converter pods do.
func engine(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, rules *v1alpha1.DeclarativeConverter) Convert {
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

func TestProbe(t *testing.T) {
	for name, s := range samples(t) {
		t.Run(name, func(t *testing.T) {
			found, err := Make(Input{CRD: s.crd, Spoke: s.spoke(), Hub: s.hub(), Convert: engine(t, s.crd, s.policy.Spec.Converter.Declarative)})
			expect.NoError(t, err)
			t.Log("probe", found.Probe.Requests, found.Probe.Objects, found.Probe.Refused, found.Probe.Problems, found.Probe.NotProbed)
			for _, rule := range found.Rules {
				t.Log("rule", textOf(rule.Rule), rule.Score, rule.Why, rule.Rivals, rule.Confirmed, rule.Values, rule.Wrong, rule.Example)
			}
			for _, a := range found.Ambiguous {
				t.Log("ambiguous", a)
			}
			for _, a := range found.Differences {
				t.Logf("difference %+v", a)
			}
			for _, a := range found.Zeros {
				t.Logf("zero %+v", a)
			}
			for _, r := range s.policy.Spec.Converter.Declarative.Spokes[0].Rules {
				t.Log("want", textOf(r))
			}
		})
	}
}
