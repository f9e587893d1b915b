// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// reads report whether an object passes through the API server at each served
// version.
func reads(o *Observed) []Finding {
	var found []Finding
	for _, read := range o.Reads {
		switch {
		case read.Failure == "":
		case !read.Converting:
			found = append(found, o.certain(ReadFails, read.Version,
				fmt.Sprintf("%s cannot be read at %s: %s", read.Object, read.Version, read.Failure),
				"if the message names a version that is not in spec.versions, add it again with served: false, and migrate; otherwise read the API server's log"))
		case read.Untrusted:
			found = append(found, o.certain(CABundleForeign, read.Version,
				fmt.Sprintf("%s cannot be read at %s, because the API server does not trust the webhook: %s", read.Object, read.Version, read.Failure),
				o.curedByInjector(cureBundle)))
		default:
			found = append(found, o.certain(ConversionFails, read.Version,
				fmt.Sprintf("%s cannot be read at %s: %s", read.Object, read.Version, read.Failure), read.cure()))
		}
	}
	if o.Live && o.webhook() != nil && o.Reads != nil && len(o.Reads) == 0 && len(crds.ServedVersions(o.CRD)) > 1 {
		found = append(found, o.certain(ConversionUnproven, "",
			"there is no object of this kind, so the audit converted nothing", "create one and audit again, or test the converter in another way"))
	}
	return found
}

func (r Read) cure() string {
	const intact = "; the object is intact: do not delete it as corrupt"
	if r.Hint == "" {
		return "read the webhook's log" + intact
	}
	return r.Hint + intact
}
