// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// TestColumns shows what kubectl get shows of policies as they come to rest, each
// named by what happened before. The API server's own code makes the cells, and
// kubectl's own code prints them.
func TestColumns(t *testing.T) {
	var policies []v1alpha1.ConversionPolicy
	for _, life := range []struct {
		policy string
		play   func(*world)
	}{
		{policyYAML, policyFirst}, {policyYAML, failedObjects}, {policyYAML, onTrigger}, {policyYAML, migrationSuspended},
		{policyYAML, versionRetired}, {policyYAML, suspended}, {policyYAML, badRules}, {policyYAML, unreachable},
		{policyYAML, lostSample}, {policyYAML, conversionsFail}, {policyYAML, driftContested}, {policyYAML, certificatesOfOthers}, {policyYAML, deletionBlocked},
		{serviceYAML, serviceStory}, {noneYAML, noneStory},
	} {
		w := newWorld(t, life.policy)
		life.play(w)
		policies = append(policies, w.rests...)
	}
	for name, options := range map[string]printers.PrintOptions{"get.txt": {}, "get-wide.txt": {Wide: true}} {
		golden.Check(t, printed(t, policies, options), "columns", name)
	}
}

// rest keeps a policy that came to rest, by the name of the chapter, for kubectl get.
func (w *world) rest() {
	policy := w.observed.Policy.DeepCopy()
	policy.Name = strings.TrimSuffix(w.chapter, ".")
	if rests := len(w.rests); rests > 0 && w.rests[rests-1].Name == policy.Name {
		w.rests = w.rests[:rests-1]
	}
	w.rests = append(w.rests, *policy)
}

// printed are policies in a table, with the columns that are installed.
func printed(t *testing.T, policies []v1alpha1.ConversionPolicy, options printers.PrintOptions) string {
	t.Helper()
	columns, err := tableconvertor.New(installed(t).Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	for i := range policies {
		row, err := columns.ConvertToTable(t.Context(), &policies[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		table.ColumnDefinitions = row.ColumnDefinitions
		table.Rows = append(table.Rows, row.Rows...)
	}
	var out strings.Builder
	if err := printers.NewTablePrinter(options).PrintObj(table, &out); err != nil {
		t.Fatal(err)
	}
	return rulesetHash.ReplaceAllString(out.String(), "0123456789abcdef")
}
