// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/published"
)

// projects have schemas of many kinds and sizes.
var projects = []published.Project{published.ClusterAPI, published.Karpenter, published.Kueue, published.Tekton}

// The versions of a CRD that has a policy.
const (
	oldVersion = "v1alpha1"
	newVersion = "v1"
)

// definitions returns count CRDs in different groups, with the schemas of all projects in turn. The
// first convert CRDs have two versions.
func definitions(ctx context.Context, count, convert int) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	sources, err := published.Read(ctx, projects...)
	if err != nil {
		return nil, err
	}
	made := make([]*apiextensionsv1.CustomResourceDefinition, count)
	for i := range made {
		made[i] = definition(sources[i%len(sources)], i, i < convert)
	}
	return made, nil
}

func definition(source *apiextensionsv1.CustomResourceDefinition, number int, converts bool) *apiextensionsv1.CustomResourceDefinition {
	group := fmt.Sprintf("scale-%04d.example.com", number)
	spec := *source.Spec.DeepCopy()
	latest := spec.Versions[len(spec.Versions)-1]
	latest.Name, latest.Served, latest.Storage, latest.Deprecated, latest.DeprecationWarning = newVersion, true, true, false, nil
	spec.Group, spec.Conversion, spec.Versions = group, nil, []apiextensionsv1.CustomResourceDefinitionVersion{latest}
	spec.Names.Categories = nil
	if converts {
		old := *latest.DeepCopy()
		old.Name, old.Storage = oldVersion, false
		spec.Versions = append(spec.Versions, old)
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: spec.Names.Plural + "." + group, Annotations: applied(&spec)},
		Spec:       spec,
	}
}

// applied returns the annotation of kubectl apply, unless it would be too large.
func applied(spec *apiextensionsv1.CustomResourceDefinitionSpec) map[string]string {
	text, err := json.Marshal(spec)
	const most = 200 << 10
	if err != nil || len(text) > most {
		return nil
	}
	return map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(text)}
}
