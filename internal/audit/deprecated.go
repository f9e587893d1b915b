// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// deprecated looks for versions that clients should leave. Objects that are
// stored in one bind the cluster to it, so that is worse.
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
				fmt.Sprintf("%s is deprecated and is the storage version: all objects are stored in it%s", version.Name, warning),
				"make another version the storage version, and migrate").as(SeverityWarning, Certain))
			continue
		}
		found = append(found, o.certain(DeprecatedVersionServed, version.Name,
			fmt.Sprintf("%s is deprecated, and served%s", version.Name, warning),
			fmt.Sprintf("move clients and manifests to %s; the API server's metric apiserver_requested_deprecated_apis tells whether anybody still asks for it", crds.StorageVersion(o.CRD))))
	}
	return found
}
