// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/dependents"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestWebhooksAreNoDependents: one of the operator's webhooks names only versions that are not stored.
// The operator changes it when such a version is removed, so it must not block that.
func TestWebhooksAreNoDependents(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "crontabs.example.com"
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs", Kind: "CronTab"}, Scope: apiextensionsv1.NamespaceScoped,
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true}, {Name: "v1", Served: true, Storage: true}},
	}
	configuration := AdmissionConfiguration(crd.Name, crd, "v1", []AdmissionClient{{Hash: "a", Condition: "true"}})
	target, err := dependents.NewTarget(crd, []string{"v1beta1"})
	expect.NoError(t, err)
	for _, test := range []struct {
		policy string
		want   int
	}{{crd.Name, 0}, {"others.example.com", 1}} {
		configuration.Annotations["conversion-operator.io/policy"] = test.policy
		content, err := json.Marshal(configuration)
		expect.NoError(t, err)
		found, err := target.Admission(content)
		if err != nil || len(found) != test.want {
			t.Errorf("of policy %s: %+v, %v; want %d", test.policy, found, err, test.want)
		}
	}
}
