// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

// checks run in this order, independent of each other.
var checks = []func(*Observed) []Finding{
	storedVersions, upgrade, features, refusedByOLM, noneBetween, caBundle, handshake, service, reviewVersions, bootstrap, reads,
	pruned, managers, deprecated, established, structural, terminating, policy,
}

// Check returns the findings of a definition.
func Check(observed *Observed) []Finding {
	if observed.CRD == nil {
		return []Finding{observed.certain(PolicyWithoutDefinition, "", "there is a ConversionPolicy of this name, but no CustomResourceDefinition",
			"apply the CustomResourceDefinition, or delete the policy")}
	}
	var findings []Finding
	for _, check := range checks {
		findings = append(findings, check(observed)...)
	}
	return findings
}
