// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version/served"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds/restrict"
)

// orDisable is the way out of every refusal.
const orDisable = "; or set spec.install.preflight.crdUpgradeSafety.enforcement of the ClusterExtension to None for this upgrade, which disables the check for the whole bundle"

// Bundle is a bundle for OLM.
type Bundle struct {
	// Converted are the definitions whose spec.conversion OLM sets to the strategy Webhook when it installs them.
	Converted []string
}

// BundleOf reads a ClusterServiceVersion in JSON.
func BundleOf(text []byte) (*Bundle, error) {
	csv := struct {
		Spec struct {
			WebhookDefinitions []struct {
				Type           string   `json:"type"`
				ConversionCRDs []string `json:"conversionCRDs"`
			} `json:"webhookdefinitions"`
		} `json:"spec"`
	}{}
	if err := json.Unmarshal(text, &csv); err != nil {
		return nil, errors.New("spec.webhookdefinitions must be a list of webhooks, each with a type and names in conversionCRDs")
	}
	bundle := &Bundle{}
	for _, webhook := range csv.Spec.WebhookDefinitions {
		if webhook.Type == "ConversionWebhook" {
			bundle.Converted = append(bundle.Converted, webhook.ConversionCRDs...)
		}
	}
	return bundle, nil
}

// refusedByOLM reports what OLM 1 refuses when a bundle with the manifest is about to be installed. Its check
// of CustomResourceDefinitions is crdify, which operator-controller configures as this file does. The findings
// are only notes unless OLM 1 is known to install the definition. A stored version that the manifest lacks is
// UpgradeDropsStoredVersion, because API servers refuse that too.
func refusedByOLM(o *Observed) []Finding {
	if o.Next == nil {
		return nil
	}
	old, next := withSchemas(o.CRD), withSchemas(o.Next)
	if o.Bundle != nil && slices.Contains(o.Bundle.Converted, next.Name) {
		next.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	}
	var found []Finding
	add := func(version, change string, refused []string, cure string) {
		if len(refused) == 0 {
			return
		}
		finding := o.certain(OLMRefuses, version, "OLM 1 refuses "+change+": "+few(refused), cure+orDisable)
		if o.Bundle == nil && !crds.ByOLM1(o.CRD) {
			finding = finding.as(SeverityNote, Possible)
		}
		found = append(found, finding)
	}
	if old.Spec.Scope != next.Spec.Scope {
		add("", "a change of spec.scope", []string{fmt.Sprintf("%q -> %q", old.Spec.Scope, next.Spec.Scope)},
			"define another kind with the new scope, and create its objects from the old ones")
	}
	for i := range old.Spec.Versions {
		version := &old.Spec.Versions[i]
		if after := validations.GetCRDVersionByName(next, version.Name); after != nil {
			add(version.Name, "changes of an existing version", refusals(version, after, validations.CompareVersions(*version, *after, config.EnforcementPolicyError, comparators()...)),
				"keep the version unchanged, and make the change in a new version that objects convert to")
		}
	}
	pairs := served.New(served.WithComparators(comparators()...), served.WithConversionPolicy(config.ConversionPolicyIgnore)).Validate(old, next)
	for _, pair := range slices.Sorted(maps.Keys(pairs)) {
		from, to, _ := strings.Cut(pair, " -> ")
		refused := refusals(validations.GetCRDVersionByName(next, from), validations.GetCRDVersionByName(next, to), pairs[pair])
		add("", "differences between served versions without a conversion webhook, "+pair, refused,
			"have a webhook of type ConversionWebhook in the bundle: OLM 1 then does not compare the versions with each other")
	}
	return found
}

// withSchemas returns a copy in which each version has a schema, which crdify relies on.
func withSchemas(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Schema == nil {
			crd.Spec.Versions[i].Schema = &apiextensionsv1.CustomResourceValidation{}
		}
	}
	return crd
}

// refusals returns what crdify refuses of each field, sorted. It compares a missing field with an empty schema,
// and refuses each one that a version lacks after an upgrade.
func refusals(old, next *apiextensionsv1.CustomResourceDefinitionVersion, fields map[string][]validations.ComparisonResult) []string {
	after, missing := validations.FlattenCRDVersion(*next), "only "+old.Name+" has the field"
	if old.Name == next.Name {
		missing = "the field is removed"
	}
	var found []string
	for path, results := range fields {
		var reasons []string
		for _, result := range results {
			for _, reason := range result.Errors {
				reason, _, _ = strings.Cut(reason, "\n") // the rest compares Go structures
				reasons = append(reasons, result.Name+": "+strings.TrimSuffix(strings.Replace(reason, " : ", ": ", 1), " :"))
			}
		}
		if after[path] == nil && (len(reasons) > 0 || old.Name == next.Name) {
			reasons = []string{missing}
		}
		for _, reason := range reasons {
			found = append(found, cmp.Or(strings.TrimPrefix(path, "^"), ".")+": "+reason)
		}
	}
	slices.Sort(found)
	return found
}

// comparators are all of crdify, as operator-controller configures them: an enum may get more values, and
// descriptions may change. What no comparator knows is refused.
func comparators() []validations.Comparator[apiextensionsv1.JSONSchemaProps] {
	defaults, descriptions := &property.Default{}, &property.Description{}
	defaults.SetEnforcement(config.EnforcementPolicyError)
	descriptions.SetEnforcement(config.EnforcementPolicyNone)
	return append(restrict.Comparators(), defaults, descriptions)
}
