// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	verify "github.com/conversion-operator/conversion-operator/internal/operator/verify/live"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/huge"
)

// TestHugeObjects: an audit reads the metadata of many objects, and needs memory for few.
func TestHugeObjects(t *testing.T) {
	server := huge.NewServer(t, nil)
	client, err := verify.Client(server.Config, userAgent)
	expect.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Generation, crd.Spec.Group, crd.Spec.Names.Plural = 2, "example.com", "crontabs"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
	crd.Status.StoredVersions = []string{"v1"}
	o := &audit.Observed{CRD: crd}
	first, err := (&auditor{client: client}).list(t.Context(), o, "v1")
	expect.NoError(t, err)
	expect.Equal(t, "first object", "default/o-000", fullName(first))
	expect.Equal(t, "objects", manyObjects, len(o.Objects))
	server.WantFlat(t)
}
