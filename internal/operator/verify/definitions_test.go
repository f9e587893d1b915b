// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestSelectableFieldsRefused agrees with the API server, which refuses exactly these definitions.
func TestSelectableFieldsRefused(t *testing.T) {
	const v1, v1beta1, fields, spec = "{name: v1, served: true, storage: true", "{name: v1beta1, served: true", ", selectableFields: [{jsonPath: .spec.host}]",
		", schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {host: {type: string}%}}}}}}"
	old, next := strings.Replace(spec, "%", "", 1), strings.Replace(spec, "%", ", port: {type: integer}", 1)
	for name, test := range map[string]struct {
		versions string
		want     bool
	}{
		"equal schemas":    {v1 + fields + old + ", " + v1beta1 + fields + old, false},
		"other schemas":    {v1 + fields + next + ", " + v1beta1 + fields + old, true},
		"other fields":     {v1 + ", selectableFields: [{jsonPath: .spec.host}, {jsonPath: .spec.port}]" + next + ", " + v1beta1 + fields + old, false},
		"one without":      {v1 + fields + next + ", " + v1beta1 + old, false},
		"no fields":        {v1 + next + ", " + v1beta1 + old, false},
		"a single version": {v1 + fields + next, false},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			expect.NoError(t, yaml.UnmarshalStrict([]byte("{metadata: {name: crontabs.example.com}, spec: {group: example.com, scope: Namespaced, "+
				"names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList}, versions: ["+test.versions+"]}}"), crd))
			expect.Equal(t, "refused", test.want, crds.SelectableFieldsRefused(crd))
			errs, err := ValidateDefinition(t.Context(), crd)
			expect.NoError(t, err)
			expect.Equal(t, "errors of the API server", test.want, len(errs) > 0)
			for _, err := range errs {
				expect.Contains(t, "error", err.Message, "may only be set when validations.schema is included")
			}
		})
	}
}
