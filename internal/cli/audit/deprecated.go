// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// deprecated finds versions that clients should leave. A deprecated storage version
// is worse, because the cluster cannot leave it without a migration.
func deprecated(o *Observed) []Finding {
	var found []Finding
	for _, version := range o.CRD.Spec.Versions {
		if !version.Served || !version.Deprecated {
			continue
		}
		warning := ""
		if version.DeprecationWarning != nil {
			warning = ": " + *version.DeprecationWarning
		}
		if version.Name == crds.StorageVersion(o.CRD) {
			found = append(found, o.certain(DeprecatedVersionServed, version.Name,
				fmt.Sprintf("%s is deprecated and is the storage version: the API server stores all objects in it%s", version.Name, warning),
				"make another version the storage version, and migrate").as(SeverityWarning, Certain))
			continue
		}
		found = append(found, o.certain(DeprecatedVersionServed, version.Name,
			fmt.Sprintf("%s is deprecated and still served%s", version.Name, warning),
			fmt.Sprintf("move clients and manifests to %s; the API server's metric apiserver_requested_deprecated_apis shows whether clients still request it", crds.StorageVersion(o.CRD))))
	}
	return found
}
