// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestBootstrap(t *testing.T) {
	bundle := authority(t, 365)
	ofGroup := func(group string, conditions ...string) func(*Observed) {
		return func(o *Observed) {
			o.CRD.Spec.Group = group
			if config := o.ClientConfig(); config != nil {
				config.CABundle = bundle
			}
			for _, condition := range conditions {
				if o.Policy == nil {
					o.Policy = &v1alpha1.ConversionPolicy{}
					o.Policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
				}
				o.Policy.Status.Conditions = append(o.Policy.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
			}
		}
	}
	const (
		nodes   = ": after an outage of all nodes, it may be unable to read them, and no node starts for converter pods"
		warning = "Warning Possible BootstrapDependency -: Karpenter reads objects of this kind to provision nodes, and a webhook in the cluster converts them" + nodes
		note    = "Note Possible BootstrapDependency -: Karpenter reads objects of this kind to provision nodes; if a webhook in the cluster is to convert them" + nodes
		alike   = "versions: {v1 served storage: {a: string}, v2 served: {a: string}}\n"
	)
	run(t, map[string]check{
		"another kind":                            {crd: converts, observe: ofGroup("example.com")},
		"nodes":                                   {crd: converts, observe: ofGroup("karpenter.sh"), want: []string{warning}},
		"nodes, with a URL":                       {crd: strings.Replace(converts, "service: {namespace: ns, name: svc}", "url: https://example.org", 1), observe: ofGroup("karpenter.sh")},
		"nodes, one version":                      {crd: strings.Replace(converts, ", v2 served: {b: string}", "", 1), observe: ofGroup("karpenter.sh")},
		"nodes, no conversion":                    {crd: alike, observe: ofGroup("karpenter.sh"), want: []string{note}},
		"nodes, a policy that is not active":      {crd: alike, observe: ofGroup("karpenter.sh", v1alpha1.RulesValidCondition), want: []string{note}},
		"nodes, a policy without the dependency":  {crd: converts, observe: ofGroup("karpenter.sh", v1alpha1.ConversionConfiguredCondition)},
		"nodes, a policy with the dependency":     {crd: converts, observe: ofGroup("karpenter.sh", v1alpha1.ConversionConfiguredCondition, v1alpha1.BootstrapDependencyCondition), want: []string{warning}},
		"a family of groups, and pods' admission": {crd: alike, observe: ofGroup("templates.gatekeeper.sh"), want: []string{"Note Possible BootstrapDependency -: Gatekeeper reads objects of this kind to admit pods; if a webhook in the cluster is to convert them: after an outage of all converter pods, it may be unable to read them, and no converter pod is admitted"}},
	})
}

// TestBootstrapPage: text and JSON say what to do, and where that is described.
func TestBootstrapPage(t *testing.T) {
	observed := &Observed{CRD: definition(t, converts), Live: true, Now: now}
	observed.CRD.Spec.Group, observed.ClientConfig().CABundle = "cilium.io", authority(t, 365)
	report := NewReport(1, Check(observed), nil, SeverityWarning)
	var text bytes.Buffer
	expect.NoError(t, report.WriteTable(&text, Table{Wide: true}))
	machine, err := json.Marshal(report)
	expect.NoError(t, err)
	for form, is := range map[string]string{"text": text.String(), "JSON": string(machine)} {
		expect.Contains(t, "the "+form, is, "BootstrapDependency", "no converter pod starts", "make it request v1, migrate all objects", bootstrapPage)
	}
}
