// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds/restrict"
)

const cureMigrate = "rewrite all objects in %s, with a ConversionPolicy with migration.mode Automatic or a StorageVersionMigration; " +
	"remove %s from status.storedVersions only when every object is rewritten"

// storedVersions finds versions in which objects may still be stored, and which block
// an upgrade: the API server refuses a definition without them.
func storedVersions(o *Observed) []Finding {
	var found []Finding
	storage, beside := crds.StorageVersion(o.CRD), "beside the storage version "
	if stored := o.CRD.Status.StoredVersions; len(stored) > 0 && !slices.Contains(stored, storage) {
		beside = "without the storage version "
		found = append(found, o.certain(StoredVersionMissing, storage,
			fmt.Sprintf("status.storedVersions lacks %s, the storage version, as after a restore of the status: API servers would forget that objects are stored in it", storage),
			"write the CustomResourceDefinition, such as by kubectl annotate, and the API server adds it; a ConversionPolicy does that by itself"))
	}
	for _, name := range o.CRD.Status.StoredVersions {
		version, _ := crds.Version(o.CRD, name)
		switch {
		case version == nil:
			found = append(found, o.certain(StoredVersionUnknown, name,
				fmt.Sprintf("status.storedVersions lists %s, which is not in spec.versions: objects that are stored in it cannot be read", name),
				fmt.Sprintf("put %s back into spec.versions, with served: false; then ", name)+fmt.Sprintf(cureMigrate, storage, name)))
		case name == storage && !version.Served:
			found = append(found, o.certain(StoredVersionUnserved, name,
				fmt.Sprintf("%s is the storage version and is not served: clients cannot read objects as they are stored", name),
				"serve it, or make a served version the storage version and migrate").as(SeverityNote, Certain))
		case name == storage:
		case !version.Served:
			found = append(found, o.certain(StoredVersionUnserved, name,
				fmt.Sprintf("status.storedVersions lists %s, which is not served: objects may still be stored in it, and the API server refuses to remove it from spec.versions", name),
				fmt.Sprintf(cureMigrate, storage, name)))
		default:
			found = append(found, o.certain(StoredVersionOld, name,
				fmt.Sprintf("status.storedVersions lists %s %s: the API server refuses an upgrade that drops %s%s", name, beside+storage, name, orDeprecated(version.Deprecated)),
				fmt.Sprintf(cureMigrate, storage, name)))
		}
	}
	return found
}

func orDeprecated(deprecated bool) string {
	if deprecated {
		return "; it is deprecated, so an upgrade may drop it"
	}
	return ""
}

// upgrade compares a manifest with the versions in which objects may be stored.
func upgrade(o *Observed) []Finding {
	if o.Next == nil {
		return nil
	}
	var has []string
	for _, version := range o.Next.Spec.Versions {
		has = append(has, version.Name)
	}
	var found []Finding
	for _, name := range o.CRD.Status.StoredVersions {
		if !slices.Contains(has, name) {
			found = append(found, o.certain(UpgradeDropsStoredVersion, name,
				fmt.Sprintf("the new manifest has only %s, and status.storedVersions lists %s: the API server will refuse the manifest", few(has), name),
				"before the upgrade, "+fmt.Sprintf(cureMigrate, "a version that stays", name)))
		}
	}
	return append(found, restrictions(o)...)
}

// restrictions compares the schemas of a manifest with those of the same versions now.
func restrictions(o *Observed) []Finding {
	byVersion := map[string][]string{}
	for _, restriction := range restrict.Find(o.CRD, o.Next) {
		byVersion[restriction.Version] = append(byVersion[restriction.Version], restriction.String())
	}
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(byVersion)) {
		found = append(found, o.certain(UpgradeRestrictsVersion, name,
			fmt.Sprintf("the new manifest accepts fewer values at %s: %s", name, few(byVersion[name])),
			"change the objects that have such values before the upgrade, or keep the version unchanged, and make the change in a new version that objects convert to"))
	}
	return found
}
