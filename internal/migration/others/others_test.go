// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package others

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRuns reads migrations of Kubernetes and of kube-storage-version-migrator.
func TestRuns(t *testing.T) {
	crontabs := schema.GroupResource{Group: "example.com", Resource: "crontabs"}
	cases := map[string]struct {
		object string
		want   bool
	}{
		"running":          {`{spec: {resource: {group: example.com, resource: crontabs}}, status: {conditions: [{type: Running, status: "True"}]}}`, true},
		"of a version":     {`{spec: {resource: {group: example.com, version: v1, resource: crontabs}}, status: {conditions: [{type: Running, status: "True"}]}}`, true},
		"not begun":        {`{spec: {resource: {group: example.com, resource: crontabs}}}`, false},
		"succeeded":        {`{spec: {resource: {group: example.com, resource: crontabs}}, status: {conditions: [{type: Running, status: "False"}, {type: Succeeded, status: "True"}]}}`, false},
		"failed":           {`{spec: {resource: {group: example.com, resource: crontabs}}, status: {conditions: [{type: Running, status: "True"}, {type: Failed, status: "True"}]}}`, false},
		"of another kind":  {`{spec: {resource: {group: example.com, resource: widgets}}, status: {conditions: [{type: Running, status: "True"}]}}`, false},
		"of another group": {`{spec: {resource: {group: example.org, resource: crontabs}}, status: {conditions: [{type: Running, status: "True"}]}}`, false},
		"of no shape":      {`{spec: {resource: crontabs}, status: {conditions: [Running]}}`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			expect.NoError(t, yaml.Unmarshal([]byte(c.object), &object.Object))
			expect.Equal(t, "it migrates", c.want, runs(object, crontabs))
		})
	}
}
