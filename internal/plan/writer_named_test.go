// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestWriterIsNamed: the status names the tool that writes the CustomResourceDefinition, and a message
// about its writes says where to change them.
func TestWriterIsNamed(t *testing.T) {
	w := active(t)
	w.observed.CRD.Annotations = map[string]string{"meta.helm.sh/release-name": "db", "meta.helm.sh/release-namespace": "prod"}
	for range 6 {
		w.drop("helm")
		w.converge()
	}
	status := w.observed.Policy.Status
	expectCondition(t, status, v1alpha1.ConversionConfiguredCondition, "False", v1alpha1.ReasonConversionContested,
		"Helm writes the CustomResourceDefinition: remove spec.conversion from the chart of the Helm release prod/db, or install config/components/keep-conversion")
	if diff := cmp.Diff(&v1alpha1.CRDWriter{Tool: "Helm", Source: "prod/db"}, status.CRD.Writer); diff != "" {
		t.Errorf("status.crd.writer (-want +got):\n%s", diff)
	}
}
