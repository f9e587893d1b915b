// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// largeKind returns a kind with count fields, in objects of fifty. A field needs a move, a table, a
// list around it, or an annotation; once there are as many rules as a spoke may have, the others are the
// same in both versions.
func largeKind(count int) (*apiextensionsv1.CustomResourceDefinition, *v1alpha1.DeclarativeConverter) {
	const perObject, mostRules = 50, 256
	v1, v2 := map[string]apiextensionsv1.JSONSchemaProps{}, map[string]apiextensionsv1.JSONSchemaProps{}
	spoke := v1alpha1.Spoke{Version: "v1"}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	list := apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}}
	for i := range count {
		object := fmt.Sprintf("group%d", i/perObject)
		if i%perObject == 0 {
			v1[object], v2[object] = objectOf(nil), objectOf(nil)
		}
		older, newer := fmt.Sprintf("old%d", i), fmt.Sprintf("new%d", i)
		v1[object].Properties[older] = text
		from, to := v1alpha1.Path(".spec."+object+"."+older), v1alpha1.Path(".spec."+object+"."+newer)
		if len(spoke.Rules) == mostRules {
			v2[object].Properties[older] = text
			continue
		}
		switch i % 4 {
		case 0:
			v2[object].Properties[newer] = text
			spoke.Rules = append(spoke.Rules, v1alpha1.Rule{Move: &v1alpha1.MoveRule{From: from, To: to}})
		case 1:
			v2[object].Properties[newer] = text
			table := []v1alpha1.ValuePair{{From: "On", To: "Enabled"}, {From: "Off", To: "Disabled"}}
			spoke.Rules = append(spoke.Rules, v1alpha1.Rule{Values: &v1alpha1.ValuesRule{From: from, To: to, Table: table}})
		case 2:
			v2[object].Properties[newer] = list
			spoke.Rules = append(spoke.Rules, v1alpha1.Rule{Wrap: &v1alpha1.WrapRule{From: from, To: to}})
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name, crd.Spec.Group = "larges."+group, group
	crd.Spec.Names.Kind, crd.Spec.Scope = "Large", apiextensionsv1.NamespaceScoped
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{versionOf("v1", v1), versionOf("v2", v2)}
	return crd, &v1alpha1.DeclarativeConverter{Hub: "v2", Spokes: []v1alpha1.Spoke{spoke}}
}

func objectOf(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	if properties == nil {
		properties = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
}

func versionOf(name string, spec map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.CustomResourceDefinitionVersion {
	root := objectOf(map[string]apiextensionsv1.JSONSchemaProps{"spec": objectOf(spec)})
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: name == "v1",
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
	}
}
