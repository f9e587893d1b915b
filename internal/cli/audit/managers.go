// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"slices"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// managers finds versions older than the storage version in metadata.managedFields of the objects
// that the audit reads anyway. It reads only some: dependents reads all.
func managers(o *Observed) []Finding {
	storage := crds.StorageVersion(o.CRD)
	names, clients := map[string][]string{}, map[string][]string{}
	for _, object := range o.Objects {
		for _, writer := range object.Writers {
			if apiversion.CompareKubeAwareVersionStrings(writer.Version, storage) >= 0 {
				continue
			}
			names[writer.Version] = append(names[writer.Version], object.Name)
			clients[writer.Version] = append(clients[writer.Version], writer.Manager)
		}
	}
	var found []Finding
	for old := range names {
		for _, list := range []map[string][]string{names, clients} {
			slices.Sort(list[old])
			list[old] = slices.Compact(list[old])
		}
		evidence := fmt.Sprintf("in %d of %d objects that the audit read, metadata.managedFields has writes at %s, by %s (%s)",
			len(names[old]), len(o.Objects), old, few(clients[old]), few(names[old]))
		if version, _ := crds.Version(o.CRD, old); version == nil {
			found = append(found, o.certain(ManagedFieldsOld, old, evidence+": the definition no longer has the version, so server-side apply of these objects fails",
				fmt.Sprintf("set metadata.managedFields of the objects to [{}]; conversion-operator dependents %s --version %s finds all of them", o.CRD.Name, old)).as(SeverityWarning, Certain))
			continue
		}
		found = append(found, o.certain(ManagedFieldsOld, old, evidence+": server-side apply of these objects fails once the version is removed",
			fmt.Sprintf("move these clients to %s; before you remove the version, conversion-operator dependents %s --version %s finds all that names it", storage, o.CRD.Name, old)))
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Version, b.Version) })
	return found
}
