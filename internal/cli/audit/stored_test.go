// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import "testing"

func TestStoredVersions(t *testing.T) {
	const both = "versions: {v1 served storage: {a: string}, v1beta1 served: {a: string}}\n"
	run(t, map[string]check{
		"the storage version alone": {crd: both + "status: {storedVersions: [v1]}"},
		"no status, as in a file":   {crd: both},
		"an old one": {crd: both + "status: {storedVersions: [v1beta1, v1]}", want: []string{
			"Warning Certain StoredVersionOld v1beta1: status.storedVersions lists v1beta1 beside the storage version v1: the API server refuses an upgrade that drops v1beta1"}},
		"an old one that is deprecated": {
			crd: "versions: {v1 served storage: {a: string}, v1beta1 served deprecated: {a: string}}\nstatus: {storedVersions: [v1beta1, v1]}", want: []string{
				"Warning Certain StoredVersionOld v1beta1: status.storedVersions lists v1beta1 beside the storage version v1: the API server refuses an upgrade that drops v1beta1; it is deprecated, so an upgrade may drop it",
				"Note Certain DeprecatedVersionServed v1beta1: v1beta1 is deprecated and still served"}},
		"one that is not served": {
			crd: "versions: {v1 served storage: {a: string}, v1beta1: {a: string}}\nstatus: {storedVersions: [v1beta1, v1]}", want: []string{
				"Warning Certain StoredVersionUnserved v1beta1: status.storedVersions lists v1beta1, which is not served: objects may still be stored in it, and the API server refuses to remove it from spec.versions"}},
		"a storage version that is not served": {
			crd: "versions: {v1 storage: {a: string}, v1beta1 served: {a: string}}\nstatus: {storedVersions: [v1]}", want: []string{
				"Note Certain StoredVersionUnserved v1: v1 is the storage version and is not served: clients cannot read objects as they are stored"}},
		"an old one without the storage version": {crd: both + "status: {storedVersions: [v1beta1]}", want: []string{
			"Warning Certain StoredVersionMissing v1: status.storedVersions lacks v1, the storage version, as after a restore of the status: API servers would forget that objects are stored in it",
			"Warning Certain StoredVersionOld v1beta1: status.storedVersions lists v1beta1 without the storage version v1: the API server refuses an upgrade that drops v1beta1"}},
		"one that is gone": {crd: both + "status: {storedVersions: [v1alpha1, v1]}", want: []string{
			"Error Certain StoredVersionUnknown v1alpha1: status.storedVersions lists v1alpha1, which is not in spec.versions: objects that are stored in it cannot be read"}},
		"an upgrade that keeps all": {crd: both + "status: {storedVersions: [v1]}", observe: func(o *Observed) {
			o.Next = definition(t, "versions: {v1 served storage: {a: string}, v2 served: {a: string}}")
		}},
		"an upgrade that accepts less": {crd: both + "status: {storedVersions: [v1]}", observe: func(o *Observed) {
			o.Next = definition(t, "versions: {v1 served storage: {}, v1beta1 served: {a: integer}}")
		}, want: []string{
			"Warning Certain UpgradeRestrictsVersion v1: the new manifest accepts fewer values at v1: .a: the field is removed: its values are pruned",
			"Warning Certain UpgradeRestrictsVersion v1beta1: the new manifest accepts fewer values at v1beta1: .a: type: type changed: \"string\" -> \"integer\"",
			"Note Possible OLMRefuses v1: OLM 1 refuses changes of an existing version: .a: the field is removed",
			`Note Possible OLMRefuses v1beta1: OLM 1 refuses changes of an existing version: .a: type: type changed: "string" -> "integer"`,
			`Note Possible OLMRefuses -: OLM 1 refuses differences between served versions without a conversion webhook, v1beta1 -> v1: .a: only v1beta1 has the field`}},
		"an upgrade that drops one": {crd: both + "status: {storedVersions: [v1]}", observe: func(o *Observed) {
			o.Next = definition(t, "versions: {v2 served storage: {}, v3 served: {}}")
		}, want: []string{
			"Error Certain UpgradeDropsStoredVersion v1: the new manifest has only v2, v3, and status.storedVersions lists v1: the API server will refuse the manifest"}},
	})
}
