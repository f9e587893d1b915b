//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// testRetiredVersion retires a version that managers applied at. One of them
// moves on to the new version. What the other one owns stays its own as long as
// the version exists, served or not. Once the version is gone nobody can apply,
// until the entry that names it is gone from managedFields.
func testRetiredVersion(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "retired")
	for _, step := range []applied{
		{
			what: "at the old version", version: "v1alpha1", manager: "moving", fields: "spec: {hostPort: 'a:80', team: a}",
			old: "spec: {hostPort: 'a:80', team: a}", current: "spec: {endpoint: {host: a, port: 80}, team: a}",
			owners: "{moving v1alpha1: {f:spec: {f:hostPort: {}, f:team: {}}}}",
		},
		{
			what: "at the old version again", version: "v1alpha1", manager: "staying", fields: "spec: {count: 1, legacy: {a: 1}}",
			old:     "spec: {hostPort: 'a:80', team: a, count: 1, legacy: {a: 1}}",
			current: "spec: {endpoint: {host: a, port: 80}, team: a, scaling: {replicas: 1}}",
			owners:  "{moving v1alpha1: {f:spec: {f:hostPort: {}, f:team: {}}}, staying v1alpha1: {f:spec: {f:count: {}, f:legacy: {f:a: {}}}}}",
		},
		{
			what: "moving on, with one field less", version: "v1", manager: "moving", fields: "spec: {endpoint: {host: a, port: 80}}",
			old:     "spec: {hostPort: 'a:80', count: 1, legacy: {a: 1}}",
			current: "spec: {endpoint: {host: a, port: 80}, scaling: {replicas: 1}}",
			owners:  "{moving v1: {f:spec: {f:endpoint: {f:host: {}, f:port: {}}}}, staying v1alpha1: {f:spec: {f:count: {}, f:legacy: {f:a: {}}}}}",
		},
	} {
		step.play(t, k)
	}
	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false })
	k.awaitNotServed(t, "v1alpha1")
	_, err := k.apply(t, "v1", "moving", "spec: {endpoint: {host: b, port: 80}}", false)
	expect.NoError(t, err)
	_, err = k.apply(t, "v1", "moving", "spec: {endpoint: {host: b, port: 80}, scaling: {replicas: 2}}", false)
	wantErrors(t, map[string]error{"apply": err}, `conflict with "staying": .spec.count`)

	k.change(t, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] })
	expect.Success(t, "nobody can apply", func(context.Context) error {
		_, err := k.apply(t, "v1", "moving", "spec: {endpoint: {host: c, port: 80}}", true)
		if err == nil || !strings.Contains(err.Error(), "request to convert CR to an invalid group/version: "+k.group+"/v1alpha1") {
			return fmt.Errorf("an apply was answered with: %w", err)
		}
		return nil
	})
	k.clearManagers(t, "v1alpha1")
	_, err = k.apply(t, "v1", "moving", "spec: {endpoint: {host: d, port: 80}, scaling: {replicas: 2}}", true)
	expect.NoError(t, err)
	one := k.get(t, "v1", "one")
	wantFields(t, "in the end", one, "spec: {endpoint: {host: d, port: 80}, scaling: {replicas: 2}}")
	wantOwners(t, "in the end", one, "{moving v1: {f:spec: {f:endpoint: {f:host: {}, f:port: {}}, f:scaling: {f:replicas: {}}}}}")
}

// clearManagers takes the entries of a version out of managedFields.
func (k *kind) clearManagers(t *testing.T, version string) {
	t.Helper()
	var patch []string
	for i, entry := range k.get(t, "v1", "one").GetManagedFields() {
		if entry.APIVersion == k.group+"/"+version {
			patch = append(patch, fmt.Sprintf(`{"op": "remove", "path": "/metadata/managedFields/%d"}`, i))
		}
	}
	text := []byte("[" + strings.Join(patch, ", ") + "]")
	_, err := k.at("v1").Patch(t.Context(), "one", types.JSONPatchType, text, metav1.PatchOptions{})
	expect.NoError(t, err)
}
